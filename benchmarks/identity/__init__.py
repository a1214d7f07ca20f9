"""Comparison of our trees with scikit-learn's; differences are judged in exact arithmetic."""
