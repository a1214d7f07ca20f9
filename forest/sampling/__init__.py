"""The rows and features drawn for each estimator of an ensemble, and the weights of rows."""
