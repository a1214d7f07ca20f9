"""X as trees see it: columns of ranks of distinct values, bins, floats or sparse lists."""

from cart.table.table import Table

__all__ = ["Table"]
