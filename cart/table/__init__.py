"""X as the trees see it: columns as ranks of distinct values, bins, floats or sparse lists."""

from cart.table.table import Table

__all__ = ["Table"]
