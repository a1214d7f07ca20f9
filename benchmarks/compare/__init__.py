"""Our forest and scikit-learn's on one table, as a report."""
