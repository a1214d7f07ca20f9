"""Memory that was freed, given back to the system."""

import ctypes
from functools import cache

_MUCH = 1 << 26  # bytes: less is soon used again, and took little time to get


@cache
def _trim():
    """The C library's function, or None where it has none: glibc alone keeps so much."""
    try:
        return ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):  # TypeError: Windows
        return None


def give_back(n_bytes):
    """Have the C library give back what was freed, after work on tables of so many bytes.

    It keeps arrays of up to 32 MB for what comes next, in every thread: with large tables, as much
    as half of the table.
    """
    if n_bytes >= _MUCH and (trim := _trim()) is not None:
        trim(0)
