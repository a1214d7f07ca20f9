"""Which codes of a column may occur more than once: two bits a hash, as in a Bloom filter; no sort.

hash of a code      h
once  [ ..0 1 1.. ] ^     set by the first code that has this hash
twice [ ..0 0 1.. ] ^     set by a further one: these codes are candidates
"""

from typing import NamedTuple

import numpy as np

from cart.jit.decorators import entry_kernel, inline_kernel
from cart.table.ranking import MISSING

# Bits per code: of codes that are all distinct one in fifty is a candidate.
_BITS = 26


class RepeatedCodes(NamedTuple):
    """Room to filter columns of so many codes, one after another."""

    once: np.ndarray  # (n_words,) uint64: a bit per hash, set by the first code that has it
    twice: np.ndarray  # (n_words,) uint64: set by further ones
    positions: np.ndarray  # (n,) int64

    @classmethod
    def create(cls, n):
        n_words = 1 << max(0, int(_BITS * n - 1).bit_length() - 6)
        return cls(*np.empty((2, min(n_words, 1 << 26)), np.uint64), np.empty(n, np.int64))

    def candidates(self, codes):
        """Positions of all codes that occur more than once, and of some that do not.

        Parameters
        ----------
        codes : ndarray of shape (n,), uint32
            Those that are MISSING are passed over.

        Returns
        -------
        positions : ndarray, int64
            Overwritten by the next call.
        n_others : int
            How many codes occur once for certain.
        """
        n, n_known = _filter(codes, *self)
        return self.positions[:n], n_known - n


@entry_kernel
def _filter(codes, once, twice, positions):
    once[:] = 0
    twice[:] = 0
    shift = np.uint32(26)
    while once.shape[0] >> (np.uint32(26) - shift) > 1:
        shift -= np.uint32(1)
    for i in range(codes.shape[0]):
        word, bit = _place(codes[i], shift)
        twice[word] |= once[word] & bit
        once[word] |= bit
    n = 0
    n_known = 0
    for i in range(codes.shape[0]):
        word, bit = _place(codes[i], shift)
        positions[n] = i
        n += (twice[word] & bit) != 0
        n_known += codes[i] != MISSING
    return n, n_known


@inline_kernel
def _place(code, shift):
    """Word and bit of a code: the leading bits of a multiplicative hash (Knuth 1998, 6.4).
    A missing code has no bit, in place of a branch that no processor could guess."""
    place = np.uint32(np.uint64(code) * np.uint64(2654435769)) >> shift
    bit = np.uint64(code != MISSING) << np.uint64(place & np.uint32(63))
    return np.int64(place >> np.uint32(6)), bit
