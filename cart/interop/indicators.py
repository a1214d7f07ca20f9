"""Categorical trees in a form that other libraries read: columns of 0 and 1 in place of subsets.

    table --Indicators--> numbers | a column for each distinct subset --> scikit-learn's trees

A node that splits on a subset becomes one that splits such a column at 0.5. The same rows go left,
so nothing else about the nodes changes.
"""

from collections.abc import Sequence
from itertools import compress
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import validate_data

from cart.estimators.category_encoder import as_columns
from cart.estimators.reading.words import names_of_categories
from cart.tree.tree import Tree

_HALF = 0.5
_NAMED = 3  # the name of a column lists at most this many categories


class Indicators(TransformerMixin, BaseEstimator):
    """Transforms a table to the columns of numbers, and a column of 0 and 1 for each subset.

    `to_sklearn(model, categories="indicators")` makes it from a fitted model, so `fit` does
    nothing.

    Parameters
    ----------
    model : a fitted tree of `cart`, or forest of `forest`, with categorical features
    trees : sequence of cart.tree.tree.Tree
        The trees of the model.
    """

    def __init__(self, model: Any, trees: Sequence[Tree]) -> None:
        self.model, self.trees = model, trees
        self._encoder = model._category_encoder
        self._keeps_missing = getattr(model, "missing", "learned") in ("surrogate", "majority")
        self._is_number = ~model.is_categorical_
        # Position of each subset among the columns of subsets.
        self._place: dict[tuple[int, bytes, int], int] = {}
        for tree in trees:
            for node in np.flatnonzero(tree.is_subset):
                self._place.setdefault(_subset_of(tree, node), len(self._place))
        if not self._place and not self._is_number.any():
            self._place[0, b"", True] = 0  # scikit-learn needs at least one column
        self._goes_right = [self._look_up(*subset) for subset in self._place]

    def _look_up(self, feature, listed, listed_left):
        """Whether each category goes right (1 or 0); the last item is for unseen categories."""
        goes_right = np.full(self._encoder.n_categories[feature] + 1, listed_left, np.float64)
        goes_right[np.frombuffer(listed, np.uint32)] = not listed_left
        return goes_right

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_clone__(self) -> Self:
        raise TypeError(
            'A pipeline made by to_sklearn(categories="indicators") belongs to a fitted model '
            "and cannot be refitted; cross-validate or search with that model instead."
        )

    def fit(self, X: Any, y: Any = None) -> Self:
        """Do nothing: all was learned from the fitted model."""
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Transform a table, given as to the model.

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
            If its columns are not the model's.
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
        columns = [*compress(names, self._is_number)]
        for feature, listed, listed_left in self._place:
            codes = np.frombuffer(listed, np.uint32)
            is_in = "not in" if listed_left else "in"  # the column is 1 if the row goes right
            members = names_of_categories(self.model, feature, codes, _NAMED)
            columns.append(f"{names[feature]} {is_in} {members}")
        return np.array(columns, object)

    def rewrite(self, tree: Tree) -> Tree:
        """Rewrite a tree to split on these columns."""
        column_of = np.cumsum(self._is_number) - 1  # for features that are numbers
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
    """Key of a subset: its feature, the categories that the node lists, whether these go left."""
    listed, listed_left = tree.categories.of(node)
    return int(tree.feature[node]), np.asarray(listed, np.uint32).tobytes(), listed_left
