"""The table in partitions: read and checked, its bins, its targets, and who is in bag."""
