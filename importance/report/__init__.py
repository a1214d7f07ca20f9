"""All measures of one forest beside each other, and what they say in words."""

from importance.report.comparison import Comparison, compare
from importance.report.find_groups import correlation_groups, one_hot_groups

__all__ = ["Comparison", "compare", "correlation_groups", "one_hot_groups"]
