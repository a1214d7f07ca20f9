"""Search for the best split of a node: criteria, feature draws, thresholds, category subsets."""
