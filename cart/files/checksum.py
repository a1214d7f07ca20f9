r"""Checksums of arrays, and of texts that describe them.

A small array goes through CRC-32. A large one is seen as a table of words, 512 to a row, whose rows
and columns are summed modulo 2**64, at the speed of memory:

    w w w w | r      if a word changes, so do the sums of its row and column, and also if two
    w w w w | r      words change places; the sums are few and go through CRC-32
    --------+
    c c c c          bytes left over after the last row go through CRC-32 as they are

A checksum detects accidents, not attacks: whoever can change a file can change its checksum. What
is loaded is therefore also checked in other ways.
"""

import functools
import hashlib
from collections.abc import Iterable, Sequence
from zlib import crc32

import numpy as np

from cart.primitives.threads import in_parts
from cart.primitives.word_sums import add_columns_and_rows

_ROW = 512  # words
_SHORT = 64  # characters: checksums of shorter texts are cached
_SMALL = 1 << 15  # bytes: for smaller arrays CRC-32 is as fast
_PART = 1 << 20  # bytes of an array that are summed while they are in the cache
_MANY = 1 << 24  # bytes: larger arrays are worth starting threads for


def digest_of(array: np.ndarray) -> int:
    """Digest of the bytes of an array.

    Parameters
    ----------
    array : ndarray, in C order

    Returns
    -------
    int
        A number of 32 bits.
    """
    content = array.reshape(-1).view(np.uint8)
    if len(content) < _SMALL:
        return crc32(content.data)
    digest = 0
    for first in range(0, len(content), _PART):
        part = content[first : first + _PART]
        n_rows = len(part) // (8 * _ROW)
        n_bytes = n_rows * 8 * _ROW
        # The kernel is compiled for aligned, writable arrays; others are copied.
        words = np.require(part[:n_bytes].view(np.uint64), requirements=["A", "W"])
        sums = np.zeros(_ROW + n_rows, np.uint64)
        add_columns_and_rows(words, sums[:_ROW], sums[_ROW:])
        digest = crc32(part[n_bytes:].data, crc32(sums.data, digest))
    return digest


def checksum(texts: Iterable[str], arrays: Sequence[np.ndarray] = ()) -> str:
    """Checksum of a sequence of texts and arrays.

    Parameters
    ----------
    texts : iterable of str
        They should describe the arrays: names, dtypes and shapes.
    arrays : sequence of ndarray, in C order

    Returns
    -------
    str
        32 hexadecimal digits.
    """
    total = hashlib.blake2b(_digests_of(arrays) if arrays else b"", digest_size=16)
    for text in texts:
        content = text.encode("utf-8", "surrogatepass")
        total.update(len(content).to_bytes(8, "little") + content)
    return total.hexdigest()


def _digests_of(arrays):
    digests = np.empty(len(arrays), np.uint32)

    def fill(first, end):
        for i in range(first, end):
            digests[i] = digest_of(arrays[i])

    n_jobs = -1 if sum(array.nbytes for array in arrays) > _MANY else 1
    in_parts(fill, len(arrays), n_jobs)
    return digests.astype("<u4").tobytes()


def checksum_of_text(text: str) -> str:
    """`checksum` of one text, cached if the text is short, as many in the trees of a forest are."""
    return _kept_checksum(text) if len(text) < _SHORT else checksum([text])


@functools.lru_cache(1024)
def _kept_checksum(text):
    return checksum([text])
