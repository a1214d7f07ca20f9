"""Draws of a column given all the others: values it could have in a row that is otherwise fixed.

    fitted      x_j  =  line of the others  +  rest        ridge regression, on numbers alone
    drawn       x_j  =  line of this row    +  rest of a donor

A forest predicts the rest from all other columns. The donor is a row from this row's leaf in a
random tree of that forest: a draw from the distribution that a quantile regression forest estimates
(Meinshausen 2006). So the line captures linear dependence, and the forest the remaining one, in the
mean or in the spread. Categories, columns of few values and columns with missing values have no
line: a row gets the donor's value itself.
"""

import numpy as np

from forest import RandomForestClassifier, RandomForestRegressor
from importance.conditional.donors import find_levels

_TREES, _ROWS_A_LEAF = 50, 5
_PENALTIES = np.logspace(-3.0, 4.0, 15)


class ConditionalSampler:
    """The conditional distribution of one column given the others, estimated from some rows.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
        Numbers, codes of categories, and nan for missing values.
    column : int
    is_categorical : ndarray of shape (n_features,), bool
    seed : int
        Seed of the forest.
    """

    def __init__(self, X: np.ndarray, column: int, is_categorical: np.ndarray, seed: int) -> None:
        self.column = column
        self._is_number = ~np.delete(is_categorical, column)
        others, x = np.delete(X, column, axis=1), X[:, column].astype(np.float64)
        has_levels = is_categorical[column] or bool(find_levels(X, [column]))
        self._line = None
        if not has_levels and not np.isnan(x).any() and self._is_number.any():
            self._line = _fit_line(others[:, self._is_number], x)
        self._rest = x - self._on_line(others)
        self._forest = None
        if others.shape[1]:
            self._forest = _fit_forest(others, ~self._is_number, self._rest, has_levels, seed)
        self._leaves = self._leaves_of(others)

    def draw(self, X: np.ndarray, n_draws: int, stream: np.random.RandomState) -> np.ndarray:
        """Draw values of the column for the rows of X, (n_draws, n_rows) float64."""
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
        """Leaves, (n_rows, n_trees); without other columns all rows are in one leaf."""
        if self._forest is None:
            return np.zeros((len(others), 1), np.int64)
        return self._forest.apply(others)


def _fit_line(others, x):
    """Ridge regression on the other columns; a missing value counts as the mean."""
    from sklearn.impute import SimpleImputer  # slow to import
    from sklearn.linear_model import RidgeCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    steps = SimpleImputer(keep_empty_features=True), StandardScaler(), RidgeCV(_PENALTIES)
    return make_pipeline(*steps).fit(others, x)


def _fit_forest(others, is_categorical, rest, has_levels, seed):
    """A forest that predicts the rest: its level if it has few, otherwise its mean."""
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
