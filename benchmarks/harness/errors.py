"""Errors that a user can act on."""


class DataError(Exception):
    """A table that cannot be had or used."""
