"""What a fitted forest says about rows beside its prediction: quantiles, errors, proximity."""

from forest.inference.proximity import nearest_rows, outlier_scores, proximity

__all__ = ["nearest_rows", "outlier_scores", "proximity"]
