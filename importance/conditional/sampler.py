"""Draws of a column given all the others: what it could have been in a row that stays as it is.

    fitted      x_j  =  line of the others  +  rest        ridge regression, of numbers alone
    drawn       x_j  =  line of this row    +  rest of a donor

The donor is a row that lies in this row's leaf of a random tree, of a forest that predicts the rest
from all other columns: a draw from the distribution that a quantile regression forest estimates
(Meinshausen 2006). So the line takes what is linear, the forest what is not, in the mean or in the
spread. Categories, columns of few values and columns with missing ones have no line: a row gets the
donor's value itself.
"""

import numpy as np

from forest import RandomForestClassifier, RandomForestRegressor
from importance.conditional.donors import find_levels

_TREES, _ROWS_A_LEAF = 50, 5
_PENALTIES = np.logspace(-3.0, 4.0, 15)


class ConditionalSampler:
    """The distribution of one column given the others, estimated from some rows.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
        Numbers, and codes of categories; nan where a value is missing.
    column : int
    is_categorical : ndarray of shape (n_features,), bool
    seed : int
        Of the forest.
    """

    def __init__(self, X: np.ndarray, column: int, is_categorical: np.ndarray, seed: int) -> None:
        self.column = column
        self._is_number = ~np.delete(is_categorical, column)
        others, x = np.delete(X, column, axis=1), X[:, column].astype(np.float64)
        has_levels = is_categorical[column] or bool(find_levels(X, [column]))
        has_gaps = bool(np.isnan(x).any())
        self._line = None
        if not has_levels and not has_gaps and self._is_number.any():
            self._line = _fit_line(others[:, self._is_number], x)
        self._rest = x - self._on_line(others)
        self._forest = None
        if others.shape[1]:
            self._forest = _fit_forest(others, ~self._is_number, self._rest, has_levels, seed)
        self._leaves = self._leaves_of(others)

    def draw(self, X: np.ndarray, n_draws: int, stream: np.random.RandomState) -> np.ndarray:
        """Values of the column for rows of such a table, (n_draws, n_rows) float64."""
        others = np.delete(X, self.column, axis=1)
        leaves = self._leaves_of(others)
        tree = stream.randint(leaves.shape[1], size=(n_draws, len(X)))
        share = stream.random_sample(size=tree.shape)
        drawn = np.empty(tree.shape)
        for t, known in enumerate(self._leaves.T):
            order = np.argsort(known, kind="stable")
            first, end = (
                np.searchsorted(known, leaves[:, t], side, sorter=order)
                for side in ("left", "right")
            )
            asked = tree == t
            row = np.nonzero(asked)[1]
            donor = first[row] + (share[asked] * (end - first)[row]).astype(np.int64)
            drawn[asked] = self._rest[order[donor]]
        return drawn + self._on_line(others)

    def _on_line(self, others):
        return 0.0 if self._line is None else self._line.predict(others[:, self._is_number])

    def _leaves_of(self, others):
        """(n_rows, n_trees); where there are no other columns all rows lie in one leaf."""
        if self._forest is None:
            return np.zeros((len(others), 1), np.int64)
        return self._forest.apply(others)


def _fit_line(others, x):
    """Ridge regression on other columns; a missing value counts as the mean."""
    from sklearn.impute import SimpleImputer  # slow to import
    from sklearn.linear_model import RidgeCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    steps = SimpleImputer(keep_empty_features=True), StandardScaler(), RidgeCV(_PENALTIES)
    return make_pipeline(*steps).fit(others, x)


def _fit_forest(others, is_categorical, rest, has_levels, seed):
    """A forest of the rest: of its levels where they are few, of its mean else."""
    kind = RandomForestClassifier if has_levels else RandomForestRegressor
    if has_levels:
        target = np.unique(rest, return_inverse=True)[1]
    else:
        is_known = ~np.isnan(rest)
        target = np.where(is_known, rest, rest[is_known].mean() if is_known.any() else 0.0)
    return kind(
        _TREES, max_features=1.0, min_samples_leaf=_ROWS_A_LEAF, random_state=seed, n_jobs=1,
        categorical_features=is_categorical if is_categorical.any() else None,
    ).fit(others, target)  # fmt: skip
