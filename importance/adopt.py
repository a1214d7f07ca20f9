"""A fitted forest as the importances see it: ours, or scikit-learn's, by its public attributes."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from sklearn.utils.validation import check_is_fitted

from cart.target import encode_known_labels
from cart.training import check_rows, encode_columns


@dataclass(frozen=True)
class FittedForest:
    """A forest together with the table it was fitted on.

    Parameters
    ----------
    forest : estimator
        With `estimators_`, each holding a `tree_`, and `estimators_samples_`.
    X : ndarray of shape (n_samples, n_features), float32 or float64, C order, or csr_matrix
        In the forest's precision; nan where a value is missing.
    codes : ndarray of shape (n_samples,), float64
        Position of the label in `classes_`, or the number.
    """

    forest: object
    X: object
    codes: np.ndarray

    @cached_property
    def trees(self):
        """Objects with scikit-learn's node arrays."""
        return trees_of(self.forest)

    @cached_property
    def draws(self):
        """Rows drawn for each tree: a list of int arrays."""
        return self.forest.estimators_samples_

    @property
    def seeds(self):
        """`random_state` of each tree."""
        return [tree.random_state for tree in self.forest.estimators_]

    @property
    def n_classes(self):
        """Number of classes; 1 in regression."""
        return len(self.forest.classes_) if is_classification(self.forest) else 1

    def encode(self):
        """The training table as trees are grown on it."""
        return encode_columns(self.forest, self.X, self.forest.estimators_[0].splitter)

    def counts(self, tree):
        """How often each row is in bag for a tree."""
        return np.bincount(self.draws[tree], minlength=len(self.codes))

    def out_of_bag(self, tree):
        """Rows out of bag for a tree, ascending."""
        return np.flatnonzero(self.counts(tree) == 0)


def adopt(forest, X, y):
    """Check a forest and the table it was fitted on.

    Raises
    ------
    TypeError
        If `forest` is not a forest of trees.
    ValueError
        If it is not fitted, has no out-of-bag rows, or (X, y) cannot be its training table.
    """
    trees_of(forest)
    if not forest.bootstrap:
        raise ValueError(
            f"{type(forest).__name__} was fitted with bootstrap=False: no row is out of bag. "
            "Fit it with bootstrap=True."
        )
    X = check_rows(forest, X)
    y = np.asarray(y)
    n_samples = X.shape[0]
    if y.shape == (n_samples, 1):
        y = y[:, 0]
    if y.shape != (n_samples,):
        raise ValueError(f"y has shape {y.shape}, but X has {n_samples} rows.")
    if n_samples != forest._n_samples:
        raise ValueError(
            f"X has {n_samples} rows, but the forest was fitted on {forest._n_samples}: "
            "out-of-bag importances need the training table."
        )
    return FittedForest(forest, X, _encode(forest, y))


def trees_of(forest):
    """Trees of a fitted forest: objects with scikit-learn's node arrays.

    Raises
    ------
    TypeError
        If `forest` is not a forest of trees with a single output.
    sklearn.exceptions.NotFittedError
    """
    if not hasattr(forest, "fit") or not hasattr(forest, "n_estimators"):
        raise TypeError(f"An importance is a function of a fitted random forest, got {forest!r}.")
    check_is_fitted(forest)
    trees = [getattr(tree, "tree_", None) for tree in np.ravel(forest.estimators_)]
    if None in trees or not hasattr(forest, "bootstrap"):
        raise TypeError(f"{type(forest).__name__} is not a random forest.")
    if trees[0].n_outputs > 1:
        raise TypeError("Importances of multi-output forests are not supported yet.")
    return trees


def is_classification(forest):
    """Does the forest predict classes?"""
    return hasattr(forest, "classes_")


def names_of(forest):
    """Names of the features; x0, x1, ... where the forest has none."""
    unnamed = [f"x{j}" for j in range(forest.n_features_in_)]
    return np.array(getattr(forest, "feature_names_in_", unnamed), dtype=object)


def _encode(forest, y):
    if not is_classification(forest):
        return y.astype(np.float64)
    return encode_known_labels(y, [forest.classes_]).codes[:, 0]
