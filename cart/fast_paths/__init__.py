"""Faster growth of the same trees, for common kinds of table and criterion."""
