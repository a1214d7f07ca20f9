"""Model files: the state of a fitted estimator as arrays and JSON, without code, and checked."""

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
