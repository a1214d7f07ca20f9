"""A table in partitions: reading and checking it, its bins, targets, weights and in-bag rows."""
