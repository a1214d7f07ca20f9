"""Find values that differ though they have the same code, without sorting.

Codes that occur only once are skipped: as in a Bloom filter, two bits per hash tell which codes may
occur more than once.

hash of a code      h
once  [ ..0 1 1.. ] ^     set by the first code that has this hash
twice [ ..0 0 1.. ] ^     set by any further one: codes with this hash are candidates

Candidates are put into a hash table, and compared with the first candidate of the same code.
"""

from typing import NamedTuple

import numpy as np

from cart.jit.decorators import entry_kernel, inline_kernel
from cart.table.ranking import MISSING

# Bits per code: if all codes are distinct, one in fifty becomes a candidate.
_BITS = 26
_WHOLE_NONZERO, _FLOAT_NONZERO = np.int64(-1), np.int64(2**63 - 1)


class Values(NamedTuple):
    """The values of some columns, compared by their bits: kernels are compiled for one type."""

    bits: np.ndarray  # (n_rows, n_columns) int64, C order
    column: np.ndarray  # (n,) int64: where in `bits` each of the columns is
    row: np.ndarray  # (n,) int64: the row of its first value
    nonzero: np.int64  # bits that are all 0 in the number 0 only, which may have a sign

    @classmethod
    def of(cls, numbers, column, row=None):
        """Wrap numbers, (n_rows, n_columns) float64 or int64; copies what kernels cannot take."""
        nonzero = _FLOAT_NONZERO if numbers.dtype.kind == "f" else _WHOLE_NONZERO
        row = np.zeros(len(column), np.int64) if row is None else row
        bits = np.require(numbers, requirements=("C", "A", "W")).view(np.int64)
        return cls(bits, np.asarray(column, np.int64), row, nonzero)

    def distinct(self, k, places):
        """How many of the values of column k at these places are distinct."""
        bits = self.bits[self.row[k] + places, self.column[k]]
        return len(np.unique(bits if self.nonzero == _WHOLE_NONZERO else bits.view(np.float64)))


@inline_kernel
def differs(values, k, one, other):
    """Do two values of column k differ?"""
    first, column = values.row[k], values.column[k]
    a, b = values.bits[first + one, column], values.bits[first + other, column]
    return (a != b) & ((a | b) & values.nonzero != 0)


class RepeatedCodes(NamedTuple):
    """Work space to compare columns of up to n codes, one after another."""

    once: np.ndarray  # (n_words,) uint64: a bit per hash, set by the first code that has it
    twice: np.ndarray  # (n_words,) uint64: a bit per hash, set by further codes that have it
    candidates: np.ndarray  # (n,) uint32: positions of the candidates
    first: np.ndarray  # (at least 2 * n,) uint32: hash table of each code's first candidate

    @classmethod
    def create(cls, n):
        n_words = 1 << max(0, int(_BITS * n - 1).bit_length() - 6)
        words = np.empty((2, min(n_words, 1 << 26)), np.uint64)
        return cls(*words, np.empty(n, np.uint32), np.empty(2 << n.bit_length(), np.uint32))

    def compare(self, values, codes, start):
        """Compare every value of a column with the first one that has the same code.

        Parameters
        ----------
        values : Values
        codes : ndarray of shape (n,), uint32
            MISSING ones are skipped.
        start : ndarray of shape (n_columns + 1,), int64
            Column c has codes start[c]:start[c + 1].

        Returns
        -------
        differing : ndarray, int64
            Positions of the values that differ from that first one, ascending.
        n_codes : ndarray of shape (n_columns,), int64
            How many distinct codes each column has.
        """
        differing, n_codes = np.empty(len(codes), np.int64), np.empty(len(start) - 1, np.int64)
        return differing[: _compare(values, codes, start, self, differing, n_codes)], n_codes


@entry_kernel
def _compare(values, codes, start, room, differing, n_codes):
    n_found = 0
    for column in range(n_codes.shape[0]):
        first = start[column]
        mine = codes[first : start[column + 1]]
        n_candidates, n_known = _sift(mine, room)
        size, shift = np.int64(2), np.uint32(31)
        while size < 2 * n_candidates:
            size, shift = 2 * size, shift - np.uint32(1)
        room.first[:size] = MISSING
        n_first = 0
        for k in range(n_candidates):
            i = room.candidates[k]
            at = np.int64(_hash(mine[i]) >> shift)
            while room.first[at] != MISSING and mine[room.first[at]] != mine[i]:
                at = (at + 1) & (size - 1)
            if room.first[at] == MISSING:
                room.first[at] = i
                n_first += 1
            elif differs(values, column, np.int64(room.first[at]), i):
                differing[n_found] = first + i
                n_found += 1
        n_codes[column] = n_known - n_candidates + n_first
    return n_found


@inline_kernel
def _sift(codes, room):
    """Find the candidates; return how many there are, and how many codes are not missing."""
    n_words, shift = 1, np.uint32(26)
    while n_words < room.once.shape[0] and 64 * n_words < _BITS * codes.shape[0]:
        n_words, shift = 2 * n_words, shift - np.uint32(1)
    room.once[:n_words] = 0
    room.twice[:n_words] = 0
    for i in range(codes.shape[0]):
        word, bit = _place(codes[i], shift)
        room.twice[word] |= room.once[word] & bit
        room.once[word] |= bit
    n = 0
    n_known = 0
    for i in range(codes.shape[0]):
        word, bit = _place(codes[i], shift)
        room.candidates[n] = i
        n += (room.twice[word] & bit) != 0
        n_known += codes[i] != MISSING
    return n, n_known


@inline_kernel
def _place(code, shift):
    """The word and the bit of a code. For MISSING no bit is set, which needs no branch."""
    place = _hash(code) >> shift
    bit = np.uint64(code != MISSING) << np.uint64(place & np.uint32(63))
    return np.int64(place >> np.uint32(6)), bit


@inline_kernel
def _hash(code):
    """A multiplicative hash (Knuth 1998, 6.4); its leading bits are used."""
    return np.uint32(np.uint64(code) * np.uint64(2654435769))
