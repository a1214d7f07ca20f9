"""Categorical trees in a form that other libraries read: columns of 0 and 1 in place of subsets.

    table --Indicators--> numbers | a column for each distinct subset --> scikit-learn's trees

A node that splits on a subset becomes one that splits such a column at a half: the same rows go
left, so that the nodes are the same in number and in all else.
"""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import validate_data

from cart.estimators.category_encoder import as_columns
from cart.estimators.reading.words import names_of_categories
from cart.tree.tree import Tree

_HALF = 0.5
_NAMED = 3  # categories that the name of a column has


class Indicators(TransformerMixin, BaseEstimator):
    """The columns that trees split on: the numbers as they are, then 1 or 0 for each subset.

    It is made by `to_sklearn(model, categories="indicators")`, and knows all that it needs: `fit`
    learns nothing.

    Parameters
    ----------
    model : a fitted tree of `cart`, or forest of `forest`, with categorical features
    trees : sequence of cart.tree.tree.Tree
        Its trees.
    """

    def __init__(self, model: Any, trees: Sequence[Tree]) -> None:
        self.model, self.trees = model, trees
        self._encoder = model._category_encoder
        self._keeps_missing = getattr(model, "missing", "learned") in ("surrogate", "majority")
        self._is_number = ~model.is_categorical_
        # Of each subset, its place among the columns of subsets.
        self._place: dict[tuple[int, bytes, int], int] = {}
        for tree in trees:
            for node in np.flatnonzero(tree.is_subset):
                self._place.setdefault(_subset_of(tree, node), len(self._place))
        if not self._place and not self._is_number.any():
            self._place[0, b"", True] = 0  # of no table without columns scikit-learn takes rows
        self._goes_right = [self._look_up(*subset) for subset in self._place]

    def _look_up(self, feature, listed, listed_left):
        """Of each category whether it goes right; the last item is of those not met in training."""
        goes_right = np.full(self._encoder.n_categories[feature] + 1, listed_left, np.float64)
        goes_right[np.frombuffer(listed, np.uint32)] = not listed_left
        return goes_right

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_clone__(self) -> Self:
        raise TypeError(
            "What to_sklearn makes of categories is of a fitted model, and cannot be fitted anew; "
            "cross-validate or search with the model that it was made of."
        )

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learns nothing."""
        return self

    def transform(self, X: Any) -> np.ndarray:
        """The columns of a table, given as to the model.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_columns), float64
            nan where a value is missing.

        Raises
        ------
        ValueError
            If it has other columns.
        """
        names, X = getattr(self.model, "feature_names_in_", ()), as_columns(X)
        if len(names) and {*names} <= {*getattr(X, "columns", ())}:
            X = X[list(names)]
        validate_data(self.model, X, reset=False, skip_check_array=True)
        codes = self._encoder.transform(X, self._keeps_missing)
        numbers = codes[:, self._is_number]
        out = np.empty((len(codes), numbers.shape[1] + len(self._place)))
        out[:, : numbers.shape[1]] = numbers
        for (feature, *_), goes_right, column in zip(
            self._place, self._goes_right, out.T[numbers.shape[1] :], strict=True
        ):
            of_rows = codes[:, feature]
            is_missing = np.isnan(of_rows)
            column[:] = goes_right[np.where(is_missing, 0, of_rows).astype(np.int64)]
            column[is_missing] = np.nan
        return out

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the columns, such as "carrier in {AA, B6}".

        Returns
        -------
        ndarray of shape (n_columns,), object
        """
        n_features = len(self._is_number)
        names = getattr(self.model, "feature_names_in_", [f"x{j}" for j in range(n_features)])
        columns = [
            name for name, is_number in zip(names, self._is_number, strict=True) if is_number
        ]
        for feature, listed, listed_left in self._place:
            codes = np.frombuffer(listed, np.uint32)
            is_in = "not in" if listed_left else "in"  # 1: the row goes right
            members = names_of_categories(self.model, feature, codes, _NAMED)
            columns.append(f"{names[feature]} {is_in} {members}")
        return np.array(columns, object)

    def rewrite(self, tree: Tree) -> Tree:
        """A tree that splits on these columns."""
        column_of = np.cumsum(self._is_number) - 1  # of features that are numbers
        feature, threshold = tree.nodes.feature.copy(), tree.nodes.threshold.copy()
        is_cut = (feature >= 0) & ~tree.is_subset
        feature[is_cut] = column_of[feature[is_cut]]
        n_numbers = int(np.count_nonzero(self._is_number))
        for node in np.flatnonzero(tree.is_subset):
            feature[node] = n_numbers + self._place[_subset_of(tree, node)]
            threshold[node] = _HALF
        nodes = tree.nodes._replace(feature=feature, threshold=threshold)
        return Tree(nodes, n_numbers + len(self._place))


def _subset_of(tree, node):
    """What tells a subset: its feature, the categories that the node lists, where they go."""
    listed, listed_left = tree.categories.of(node)
    return int(tree.feature[node]), np.asarray(listed, np.uint32).tobytes(), listed_left
