"""Errors that a user can act on."""


class DataError(Exception):
    """A table that is not available or not usable."""
