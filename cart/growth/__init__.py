"""Growth of one tree from its root, for any table, criterion and limits."""
