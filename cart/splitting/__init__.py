"""The search for the best split of one node: criteria, feature draws, thresholds, subsets."""
