"""Return freed memory to the operating system."""

import ctypes
from functools import cache

_MUCH = 1 << 26  # bytes: less is soon reused, and cheap to allocate


@cache
def _trim():
    """The C library's `malloc_trim`, or None: only glibc, which keeps so much memory, has it."""
    try:
        return ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):  # TypeError: Windows
        return None


def give_back(n_bytes):
    """Make the C library release freed memory, after work on tables of `n_bytes` bytes.

    glibc keeps freed arrays of up to 32 MB for reuse, in every thread. With large tables that can
    add up to half the size of the table.
    """
    if n_bytes >= _MUCH and (trim := _trim()) is not None:
        trim(0)
