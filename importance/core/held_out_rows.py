"""Detect rows, in any order, that are called held out but were in the training table."""

from typing import Any

import numpy as np

from cart.primitives.user_warning import warn_user
from forest.inference.training_rows import row_fingerprints
from importance.core.fitted_forest import FittedForest, check_forest
from importance.core.training_table import grew_on, has_rows_of

_REMEDY = (
    "Use rows that the forest was not fitted on, or judge it out of bag (oob_permutation; "
    'drop_column with on="oob").'
)
_TRAINED_ON = "{} table that the forest was fitted on, so they are not held out. " + _REMEDY
MOST_SHARED = 0.1  # a larger share of such rows is an error, a smaller one a warning


class EvaluatedForest(FittedForest):
    """A forest and rows that every tree is evaluated on, as if they were its out-of-bag rows."""

    def out_of_bag(self, tree: int) -> np.ndarray:
        return np.arange(len(self.codes))


def require_held_out(
    forest: Any, X: Any, codes: np.ndarray, weight: np.ndarray, training: Any = None
) -> None:
    """Raise a ValueError for rows (from `check_evaluation_rows`) that the forest was fitted on.

    `training` is its training table, as returned by `check_forest` or as (X, y). If it is None, the
    rows are compared with the forest's fingerprints or leaves.
    """
    if isinstance(training, tuple):
        training = check_forest(forest, training[0], training[1], out_of_bag=False)
    if training is not None:
        known: np.ndarray | None = row_fingerprints(training.X, training.codes)
    else:
        known = getattr(forest, "_row_fingerprints", None)
    if known is not None:
        compare_rows(known, row_fingerprints(X, codes))
        return
    rows = FittedForest(forest, X, codes, weight)
    if len(codes) == forest._n_samples and grew_on(rows):
        raise ValueError(_TRAINED_ON.format("The rows are the"))
    if has_rows_of(rows):
        raise ValueError(_TRAINED_ON.format("The rows hold those of the"))


def compare_rows(known: np.ndarray, rows: np.ndarray) -> None:
    """Raise a ValueError if many rows were trained on, and warn if a few were.

    If a table has few distinct rows, fresh rows equal some of its rows by chance. By the estimate
    of Good and Turing, a fresh row is new with a probability equal to the share of training rows
    that occur once. Only equal rows beyond this chance are counted.

    Parameters
    ----------
    known, rows : ndarray of uint64
        Fingerprints of the training rows, and of the others; see
        `forest.inference.training_rows`.

    Raises
    ------
    ValueError
    """
    distinct, times = np.unique(known, return_counts=True)
    n_shared = int(np.isin(rows, distinct).sum())
    n, n_once, n_twice = len(known), (times == 1).sum(), (times == 2).sum()
    chance = 1.0 - n_once / n
    variance = len(rows) * chance * (1.0 - chance)
    variance += (len(rows) / n) ** 2 * (n_once * chance + 2.0 * n_twice)
    excess = n_shared - chance * len(rows)
    if excess <= 3.0 * np.sqrt(variance):
        return
    text = f"{n_shared} of {len(rows)} rows are in the table that the forest was fitted on" + (
        f" ({chance * len(rows):.0f} expected by chance)" if chance > 0.0 else ""
    )
    if excess > MOST_SHARED * len(rows):
        raise ValueError(f"{text}: they are not held out. {_REMEDY}")
    warn_user(f"{text}, so they are not held out: remove them.")
