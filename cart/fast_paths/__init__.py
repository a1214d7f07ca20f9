"""The same trees, faster: growth for common kinds of table and criterion."""
