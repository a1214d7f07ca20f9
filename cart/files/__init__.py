"""Model files: a fitted estimator's state as arrays and JSON, with a checksum, without code."""

from cart.files.checksum import checksum_of_text
from cart.files.container import read, write
from cart.files.errors import DamagedModelError, require
from cart.files.state import checksum_of, is_storable, storable, with_state

__all__ = [
    "DamagedModelError",
    "checksum_of",
    "checksum_of_text",
    "is_storable",
    "read",
    "require",
    "storable",
    "with_state",
    "write",
]
