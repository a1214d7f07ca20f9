"""Fit one forest on a table in partitions: bit for bit the forest of the whole table."""

from forest.partitioned.fit import fit_together
from forest.partitioned.table.targets import fixed_point

__all__ = ["fit_together", "fixed_point"]
