"""All importance measures of one forest side by side, with conclusions in words."""

from importance.report.comparison import Comparison, compare
from importance.report.find_groups import correlation_groups, one_hot_groups

__all__ = ["Comparison", "compare", "correlation_groups", "one_hot_groups"]
