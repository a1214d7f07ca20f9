"""Trees in words: the way of a row, and the whole tree as text."""
