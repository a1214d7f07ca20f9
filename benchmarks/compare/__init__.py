"""Ours beside scikit-learn on one table, as a report."""
