"""NumPy's `RandomState` streams, begun anew for tree after tree: a seed, then draws below a bound.

For a few draws `RandomState` spends most of its time on getting ready. This is its generator,
MT19937 (Matsumoto and Nishimura 1998), of which only the words that are asked for are made.
"""

import numpy as np

from cart.jit import entry_kernel, inline_kernel

_LENGTH, _MIDDLE = np.uint64(624), np.uint64(397)
_ONE = np.uint64(1)


def first_draws(seeds, high):
    """What `RandomState(seed).randint(high)` says for each seed.

    Parameters
    ----------
    seeds : array-like of shape (n_seeds,), int, from 0 to 2**32 - 1
    high : int, from 1 to 2**32

    Returns
    -------
    ndarray of shape (n_seeds,), int64
    """
    seeds = np.array(seeds, np.int64)
    drawn = np.empty_like(seeds)
    _draw(seeds, high, 1, np.empty(_LENGTH, np.uint32), drawn, np.empty((len(seeds), 0), np.int64))
    return drawn


def counts_below(seeds, high, n_draws):
    """How often each number is among `RandomState(seed).randint(0, high, n_draws)`, for each seed.

    Parameters
    ----------
    seeds : array-like of shape (n_seeds,), int, from 0 to 2**32 - 1
    high : int, from 1 to 2**32
    n_draws : int

    Returns
    -------
    ndarray of shape (n_seeds, high), int64
    """
    seeds = np.array(seeds, np.int64)
    counts = np.zeros((len(seeds), high), np.int64)
    _draw(seeds, high, n_draws, np.empty(_LENGTH, np.uint32), np.empty_like(seeds), counts)
    return counts


@inline_kernel
def _begin(state, seed):
    """Fill the state; the first word is made from place 0."""
    word = np.uint32(seed)
    for i in range(_LENGTH):
        state[i] = word
        word = np.uint32((word ^ (word >> np.uint32(30))) * np.uint32(1812433253) + i + _ONE)
    return np.uint64(0)


@inline_kernel
def _next_word(state, at):
    """The word made from a place of the state, and the next place."""
    following = at + _ONE if at + _ONE < _LENGTH else np.uint64(0)
    far = at + _MIDDLE if at + _MIDDLE < _LENGTH else at + _MIDDLE - _LENGTH
    mixed = (state[at] & np.uint32(0x80000000)) | (state[following] & np.uint32(0x7FFFFFFF))
    twist = np.uint32(0x9908B0DF) if mixed & np.uint32(1) else np.uint32(0)
    word = state[far] ^ (mixed >> np.uint32(1)) ^ twist
    state[at] = word
    word ^= word >> np.uint32(11)
    word ^= np.uint32(word << np.uint32(7)) & np.uint32(0x9D2C5680)
    word ^= np.uint32(word << np.uint32(15)) & np.uint32(0xEFC60000)
    return word ^ (word >> np.uint32(18)), following


@inline_kernel
def _next_below(state, at, last, mask):
    """The next number up to `last`: words above it, cut to the bits of `mask`, are passed over."""
    word, at = _next_word(state, at)
    while np.uint64(word & mask) > last:
        word, at = _next_word(state, at)
    return np.uint64(word & mask), at


@inline_kernel
def _mask_of(last):
    """All bits up to the highest of `last`, uint32."""
    mask = np.uint64(last)
    for shift in (1, 2, 4, 8, 16):
        mask |= mask >> np.uint64(shift)
    return np.uint32(mask)


@entry_kernel
def _draw(seeds, high, n_draws, state, drawn, counts):
    """Draw from each stream: `drawn` gets the last number, `counts` all if it has room for them."""
    last = np.uint64(high - 1)
    mask = _mask_of(last)
    for i in range(seeds.shape[0]):
        at = _begin(state, seeds[i])
        for _ in range(n_draws):
            number, at = _next_below(state, at, last, mask)
            drawn[i] = number
            if counts.shape[1] > 0:
                counts[i, number] += 1
