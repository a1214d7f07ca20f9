"""Trees by sums of weights and targets: over histograms, or in scikit-learn's order of rows."""
