"""A draw of the rows that judge a tree, and what keeps its importances those of all rows.

The mean over n receivers and n donors of a value leaves out the n pairs of a row with itself, which
lose nothing. Of m rows drawn the same share is m of m * m, not n of n * n: times

    (1 - 1 / n) / (1 - 1 / m)

the mean over draws is exactly what all n rows say (where all count the same). Every tree draws its
own rows, so that what a draw changes differs from tree to tree: it is in the error over trees.
"""

from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.utils import check_random_state

_KEY = 66  # sets the draws apart from all else that follows from the seed of a tree


class DrawnRows(NamedTuple):
    """At most so many rows of each tree, drawn without replacement from a seed of its own."""

    most: int
    seeds: np.ndarray  # (n_trees,) int64

    @classmethod
    def of(cls, most: int, seeds: list[int], random_state: Any) -> Self:
        """Drawn by `random_state`; where that is None, by the seeds of the trees themselves.

        Raises ValueError if `most` is below 2: a single row has no other to get a value from.
        """
        if not isinstance(most, int | np.integer) or most < 2:
            raise ValueError(f"max_rows={most!r} must be a whole number of at least 2, or None.")
        if random_state is not None:
            stream = check_random_state(random_state)
            return cls(most, stream.randint(np.iinfo(np.int32).max, size=len(seeds)))
        return cls(most, np.asarray(seeds, np.int64))


def judges_of(
    tree: int, rows: np.ndarray, drawn: DrawnRows | None
) -> tuple[np.ndarray, float, float]:
    """All rows that could judge a tree, or those of them that are drawn, ascending.

    Also their share of the rows, and the factor of their increases of the loss with which they
    speak for all.
    """
    n = len(rows)
    if drawn is None or n <= drawn.most:
        return rows, 1.0, 1.0
    m = drawn.most
    stream = np.random.default_rng([_KEY, int(drawn.seeds[tree])])
    picked = np.sort(stream.choice(n, m, replace=False, shuffle=False))
    return rows[picked], m / n, (1.0 - 1.0 / n) / (1.0 - 1.0 / m)
