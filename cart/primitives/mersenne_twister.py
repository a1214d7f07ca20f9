"""The Mersenne Twister as NumPy's `RandomState` has it: for each seed, draws below a bound.

For a few draws `RandomState` spends most of its time on getting ready, for many on asking whether a
word is made yet and whether it is to be passed over. This is its generator, MT19937 (Matsumoto and
Nishimura 1998), with loops that become instructions on vectors.
"""

import numpy as np

from cart.jit.decorators import entry_kernel, inline_kernel

_LENGTH, _MIDDLE = 624, 397
_SIDE_BY_SIDE = 8  # states that are filled so, as a word waits for the one before


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
    drawn, no_counts = np.empty_like(seeds), np.empty((len(seeds), 0))
    _draw(seeds, high, 1, _create_scratch(), drawn, no_counts)
    return drawn


def counts_below(seeds, high, n_draws, dtype=np.float64):
    """How often each number is among `RandomState(seed).randint(0, high, n_draws)`, for each seed.

    Parameters
    ----------
    seeds : array-like of shape (n_seeds,), int, from 0 to 2**32 - 1
    high : int, from 1 to 2**32
    n_draws : int
    dtype : dtype, default=float64
        Of the counts, as weights are; another takes less memory.

    Returns
    -------
    ndarray of shape (n_seeds, high)
    """
    seeds = np.array(seeds, np.int64)
    counts = np.zeros((len(seeds), high), dtype)
    _draw(seeds, high, n_draws, _create_scratch(), np.empty_like(seeds), counts)
    return counts


def _create_scratch():
    return np.empty((_SIDE_BY_SIDE + 1, _LENGTH), np.uint32)


@inline_kernel
def _begin(states, seeds):
    """Fill the state of every seed."""
    for k in range(seeds.shape[0]):
        states[k, 0] = seeds[k]
    for i in range(1, _LENGTH):
        for k in range(seeds.shape[0]):
            word = states[k, i - 1]
            states[k, i] = np.uint32(
                (word ^ (word >> np.uint32(30))) * np.uint32(1812433253) + np.uint32(i)
            )


@inline_kernel
def _make_words(state, words):
    """Make the next state, and the words that follow from it."""
    n_before = _LENGTH - _MIDDLE  # whose partners are of the old state
    for i in range(n_before):
        state[i] = _mixed(state[i], state[i + 1], state[i + _MIDDLE])
    for i in range(n_before, _LENGTH - 1):
        state[i] = _mixed(state[i], state[i + 1], state[i - n_before])
    state[_LENGTH - 1] = _mixed(state[_LENGTH - 1], state[0], state[_MIDDLE - 1])
    for i in range(_LENGTH):
        word = state[i]
        word ^= word >> np.uint32(11)
        word ^= np.uint32(word << np.uint32(7)) & np.uint32(0x9D2C5680)
        word ^= np.uint32(word << np.uint32(15)) & np.uint32(0xEFC60000)
        words[i] = word ^ (word >> np.uint32(18))


@inline_kernel
def _mixed(word, following, partner):
    mixed = (word & np.uint32(0x80000000)) | (following & np.uint32(0x7FFFFFFF))
    twist = np.uint32(0x9908B0DF) & (np.uint32(0) - (mixed & np.uint32(1)))
    return np.uint32(partner ^ (mixed >> np.uint32(1)) ^ twist)


@inline_kernel
def _keep_words(words, mask, last):
    """Cut words to the bits of `mask`, pass over those above `last`, and return how many stay."""
    n = 0
    for i in range(_LENGTH):
        word = words[i] & mask
        words[n] = word
        n += np.uint64(word) <= last
    return n


@inline_kernel
def _mask_of(last):
    """All bits up to the highest of `last`, uint32."""
    mask = np.uint64(last)
    for shift in (1, 2, 4, 8, 16):
        mask |= mask >> np.uint64(shift)
    return np.uint32(mask)


@entry_kernel
def _draw(seeds, high, n_draws, scratch, drawn, counts):
    """Draw from each stream: `drawn` gets the last number, `counts` all if it has room for them.

    `scratch` has room for the states, and words of one.
    """
    words = scratch[_SIDE_BY_SIDE]
    last = np.uint64(high - 1)
    mask = _mask_of(last)
    for i in range(seeds.shape[0]):
        k = i % _SIDE_BY_SIDE
        if k == 0:
            _begin(scratch, seeds[i : i + _SIDE_BY_SIDE])
        state = scratch[k]
        n_left = n_draws
        while n_left > 0:
            _make_words(state, words)
            n = min(_keep_words(words, mask, last), n_left)
            n_left -= n
            if n > 0:
                drawn[i] = words[n - 1]
            if counts.shape[1] > 0:
                for j in range(n):
                    counts[i, words[j]] += 1
