"""Drop-column importance: the loss of a forest that is grown again without a column."""

from importance.drop_column.drop_column import drop_column

__all__ = ["drop_column"]
