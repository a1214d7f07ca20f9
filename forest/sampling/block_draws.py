"""Uniform draws with replacement that can be computed for a range of rows alone.

A stream of draws must be replayed whole, even for a few rows. Here, draws go down a tree of ranges:
the left half of a range gets a binomial share of its draws, by a generator that is seeded with the
range. Within a block of rows, draws are uniform. The number of draws and the distribution of all
draws together are the same as in a stream.

    rows     [0, 1000)          1000 draws
             [0, 500) [500, 1000)    487 | 513       RandomState([seed, 0, 1000])
             ...
    block    [0, 250)           241 draws of 250 rows, by a generator of its own
"""

import numpy as np

BLOCK = 1 << 16  # rows


def draws_in_blocks(
    seed: int, n_samples: int, n_draws: int, first: int = 0, end: int | None = None
) -> np.ndarray:
    """The rows drawn from all blocks, or from those that overlap a range of rows.

    Parameters
    ----------
    seed : int, from 0 to 2**32 - 1
    n_samples, n_draws : int
        Number of rows and of draws of the whole table.
    first, end : int, optional
        Blocks without any of the rows first, ..., end - 1 are skipped; by default none is.

    Returns
    -------
    ndarray of shape (n_drawn,), int64
        Block after block.
    """
    wanted = range(first, n_samples if end is None else end)
    return np.concatenate([np.empty(0, np.int64), *_draw(seed, 0, n_samples, n_draws, wanted)])


def _draw(seed, begin, behind, n_draws, wanted):
    """Yield the draws of each block in rows begin, ..., behind - 1 that has rows in `wanted`."""
    if n_draws == 0 or behind <= wanted.start or begin >= wanted.stop:
        return
    random = np.random.RandomState([seed, begin, behind])
    if behind - begin <= BLOCK:
        yield random.randint(begin, behind, n_draws)
        return
    n_blocks = -(-(behind - begin) // BLOCK)
    middle = begin + n_blocks // 2 * BLOCK
    n_left = random.binomial(n_draws, (middle - begin) / (behind - begin))
    yield from _draw(seed, begin, middle, n_left, wanted)
    yield from _draw(seed, middle, behind, n_draws - n_left, wanted)


def counts_in_blocks(seed: int, n_samples: int, n_draws: int, first: int, end: int) -> np.ndarray:
    """How often each of rows first, ..., end - 1 is drawn, (end - first,) int64."""
    drawn = draws_in_blocks(seed, n_samples, n_draws, first, end)
    drawn = drawn[(drawn >= first) & (drawn < end)] - first
    return np.bincount(drawn, minlength=end - first)
