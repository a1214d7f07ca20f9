"""Random draws of the rows that judge a tree, and the factor that keeps importances unbiased.

The mean over n receivers and n donors of a value includes the n pairs of a row with itself, which
lose nothing: a share of 1 / n. Among m drawn rows that share is 1 / m. Multiplied by

    (1 - 1 / n) / (1 - 1 / m)

the mean over draws equals exactly the value from all n rows (if all rows count the same). Every
tree draws its own rows, so the effect of the draws differs from tree to tree and is part of the
error over trees.
"""

from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.utils import check_random_state

_KEY = 66  # separates these draws from the others that derive from a tree's seed


class DrawnRows(NamedTuple):
    """At most `most` rows of each tree, drawn without replacement from a seed per tree."""

    most: int
    seeds: np.ndarray  # (n_trees,) int64

    @classmethod
    def of(cls, most: int, seeds: list[int], random_state: Any) -> Self:
        """Draws seeded by `random_state` or, if it is None, by the seeds of the trees themselves.

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
    """The rows that judge a tree: all of `rows`, or a draw of them, ascending.

    Also returns their share of `rows`, and the factor by which to multiply their increase of the
    loss so that it stands for all rows.
    """
    n = len(rows)
    if drawn is None or n <= drawn.most:
        return rows, 1.0, 1.0
    m = drawn.most
    stream = np.random.default_rng([_KEY, int(drawn.seeds[tree])])
    picked = np.sort(stream.choice(n, m, replace=False, shuffle=False))
    return rows[picked], m / n, (1.0 - 1.0 / n) / (1.0 - 1.0 / m)
