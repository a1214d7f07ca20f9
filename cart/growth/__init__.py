"""Growth of one tree from its root, for every table, criterion and limit."""
