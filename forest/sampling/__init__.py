"""Which rows and columns an estimator of a forest sees, and their weights."""
