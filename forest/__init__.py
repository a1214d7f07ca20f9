"""Random forests: many trees, their bootstrap, their votes and what they say out of bag."""

from forest.estimators import RandomForestClassifier, RandomForestRegressor

__all__ = ["RandomForestClassifier", "RandomForestRegressor"]
