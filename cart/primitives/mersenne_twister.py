"""NumPy's `RandomState` for many seeds at once: bounded draws from the Mersenne Twister.

For a few draws, `RandomState` spends most of its time on initialization; for many, on checks of
whether the next word has been generated and must be rejected. This is the same generator, MT19937
(Matsumoto and Nishimura 1998), in loops that the compiler vectorizes.
"""

import numpy as np

from cart.jit.decorators import entry_kernel, inline_kernel

_LENGTH, _MIDDLE = 624, 397
_SIDE_BY_SIDE = 8  # states initialized together, as every word of a state needs the one before


def first_draws(seeds, high):
    """Return what `RandomState(seed).randint(high)` draws, for each seed.

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
    """Count each number in `RandomState(seed).randint(0, high, n_draws)`, for each seed.

    Parameters
    ----------
    seeds : array-like of shape (n_seeds,), int, from 0 to 2**32 - 1
    high : int, from 1 to 2**32
    n_draws : int
    dtype : dtype, default=float64
        Of the counts. The default is that of weights; a narrower one takes less memory.

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
    """Initialize the state for every seed."""
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
    """Advance the state and write the words that it generates."""
    n_before = _LENGTH - _MIDDLE  # these words have their partners in the old state
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
    """The recurrence of MT19937: the next value of a word of the state, from three of its words."""
    mixed = (word & np.uint32(0x80000000)) | (following & np.uint32(0x7FFFFFFF))
    twist = np.uint32(0x9908B0DF) & (np.uint32(0) - (mixed & np.uint32(1)))
    return np.uint32(partner ^ (mixed >> np.uint32(1)) ^ twist)


@inline_kernel
def _keep_words(words, mask, last):
    """Mask words, drop those above `last`, and return how many are kept."""
    n = 0
    for i in range(_LENGTH):
        word = words[i] & mask
        words[n] = word
        n += np.uint64(word) <= last
    return n


@inline_kernel
def _mask_of(last):
    """A mask, uint32, of all bits up to the highest bit set in `last`."""
    mask = np.uint64(last)
    for shift in (1, 2, 4, 8, 16):
        mask |= mask >> np.uint64(shift)
    return np.uint32(mask)


@entry_kernel
def _draw(seeds, high, n_draws, scratch, drawn, counts):
    """Draw from each seed's stream: `drawn` gets the last number, `counts` all if it has columns.

    `scratch` has room for the states, and for the words of one.
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
