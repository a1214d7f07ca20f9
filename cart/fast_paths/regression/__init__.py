"""Squared error: by histograms of exact sums, or in the order of sorted rows."""
