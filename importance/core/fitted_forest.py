"""A fitted forest, ours or scikit-learn's, with its table, as importances use it."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import issparse

from cart.estimators.target import encode_known_labels, refuse_missing_target
from cart.estimators.validation import check_rows, check_sample_weight, require_weight
from forest.growing.thread_pool import bytes_of
from forest.inference.training_rows import is_of_one_table, is_table_of, require_as_many_rows
from forest.sampling.bootstrap import Bootstrap
from forest.sampling.weights import in_bag_weight
from importance.core.adoption import is_one_of_several, take_steps
from importance.core.training_table import fills_leaves, grew_on

_LARGE = 2.0**300  # sums and squares of larger weights may overflow
NO_ROW = "No row is out of bag for any tree; draw fewer rows with max_samples."
NO_ROW_COUNTS = (
    "No row of positive weight is out of bag for any tree; draw fewer rows with max_samples."
)


@dataclass(frozen=True)
class FittedForest:
    """A forest together with the table it was fitted on.

    `forest` has `estimators_`, each with a `tree_` and a `random_state`. `X` is in the forest's
    precision: an ndarray in C order, nan where a value is missing, or a csr_matrix. `codes` are
    positions in `classes_`, or numbers; `weight` is the weight of each row in a loss.
    """

    forest: Any
    X: Any
    codes: np.ndarray
    weight: np.ndarray

    def __sizeof__(self) -> int:
        # Dask ships an object once if it says that it is large, and else with every task.
        return bytes_of(self.X, self.codes)

    @cached_property
    def trees(self) -> list:
        """Objects with scikit-learn's node arrays."""
        return trees_of(self.forest)

    @cached_property
    def draws(self) -> Any:
        """How the forest draws the rows of its trees."""
        if hasattr(self.forest, "_bootstrap"):
            return self.forest._bootstrap
        n_draws = self.forest._n_samples_bootstrap if self.forest.bootstrap else None
        weight = row_weight_of(self.forest) if self.forest.bootstrap else None
        return Bootstrap.plain(len(self.codes), n_draws, weight)

    @cached_property
    def bootstrap(self) -> Bootstrap:
        """The draws of the fitted trees, recomputed from their seeds when they are needed."""
        return self.draws.of_trees(self.seeds)

    @property
    def seeds(self) -> list[int]:
        """`random_state` of each tree."""
        return [tree.random_state for tree in self.forest.estimators_]

    @cached_property
    def units(self) -> np.ndarray:
        """The independent unit of each row: the row itself, or its group if groups are drawn."""
        groups = getattr(self.draws, "groups", None)
        return np.arange(len(self.codes)) if groups is None else groups

    @cached_property
    def is_weighted(self) -> bool:
        """Whether some rows have more weight than others."""
        return bool((self.weight != self.weight[0]).any())

    @property
    def n_classes(self) -> int:
        """Number of classes; 1 in regression."""
        return len(self.forest.classes_) if self.is_classification else 1

    @property
    def is_classification(self) -> bool:
        """Whether the forest predicts classes."""
        return is_classification(self.forest)

    def counts(self, tree: int) -> np.ndarray:
        """How often each row is in bag for a tree."""
        return self.bootstrap.counts(tree)

    def weight_in_tree(self, tree: int) -> np.ndarray:
        """Weight of each row in a tree, (n_samples,).

        With a bootstrap, this is its count in bag times any class weights.
        """
        if self.forest.bootstrap:
            class_weight = getattr(self.forest, "class_weight", None)
            factor = getattr(self.forest, "_class_factor", None)
            return in_bag_weight(self.bootstrap, tree, self.codes, class_weight, factor)
        weight = row_weight_of(self.forest)
        return self.counts(tree).astype(np.float64) if weight is None else np.asarray(weight)

    def grown_on(self, tree: int) -> np.ndarray:
        """Rows that a tree was grown on, ascending: in bag, and of positive weight."""
        weight = row_weight_of(self.forest)
        is_grown_on = self.counts(tree) > 0
        return np.flatnonzero(is_grown_on if weight is None else is_grown_on & (weight > 0.0))

    def out_of_bag(self, tree: int) -> np.ndarray:
        """Rows out of bag for a tree, ascending."""
        return self.bootstrap.out_of_bag(tree)


def check_forest(
    forest: Any, X: Any, y: Any, sample_weight: Any = None, out_of_bag: bool = True
) -> FittedForest:
    """Check an adopted forest and the table it was fitted on.

    Raises ValueError if (X, y) cannot be its training table or, with `out_of_bag`, if the forest
    has no out-of-bag rows.
    """
    if out_of_bag:
        _require_bootstrap(forest)
    X, codes, weight = check_evaluation_rows(forest, X, y, sample_weight)
    require_as_many_rows(forest, X)
    fitted = FittedForest(forest, X, codes, weight)
    _require_training_table(fitted)
    return fitted


def check_training_rows(forest: Any, X: Any) -> FittedForest:
    """As `check_forest`, without y (the codes are all 0), of rows after the pipeline's steps."""
    _require_bootstrap(forest)
    X = check_walked_rows(forest, X)
    require_as_many_rows(forest, X)
    fitted = FittedForest(forest, X, np.zeros(X.shape[0]), np.ones(X.shape[0]))
    if not fills_leaves(fitted):
        raise ValueError(
            "X is not the table that the forest was fitted on: values or the order of the rows "
            "differ. Give it the training table."
        )
    return fitted


def _require_bootstrap(forest):
    if not forest.bootstrap:
        raise ValueError(
            f"{getattr(forest, 'name', type(forest).__name__)} was fitted with bootstrap=False: no "
            "row is out of bag. Fit it with bootstrap=True."
        )


def check_evaluation_rows(
    forest: Any, X: Any, y: Any, sample_weight: Any = None
) -> tuple[Any, np.ndarray, np.ndarray]:
    """Check rows to evaluate a forest on, and return X, codes and weight as in FittedForest.

    Raises ValueError if they do not match the forest or each other, or if the weights have no
    positive and finite sum; TypeError if the forest predicts several outputs, or is one of several
    and has class weights.
    """
    require_one_output(forest, trees_of(forest)[0])
    if is_one_of_several(forest) and getattr(forest, "class_weight", None):
        raise TypeError(
            "class_weight weights rows by the classes of all outputs, which this importance of one "
            "output does not support; fit the forest without class_weight."
        )
    X = take_rows(forest, X)
    refuse_missing_target(y)
    y = np.asarray(y)
    if y.shape == (X.shape[0], 1):
        y = y[:, 0]
    if y.shape != (X.shape[0],):
        raise ValueError(f"y has shape {y.shape}, but X has {X.shape[0]} rows.")
    weight = check_sample_weight(sample_weight, X)
    weight = np.ones(X.shape[0]) if weight is None else weight
    require_weight(weight)
    if weight.max() > _LARGE:  # an exact division, which changes no mean
        weight = np.ldexp(weight, -np.frexp(weight.max())[1])
    if is_classification(forest):
        return X, encode_known_labels(y, [forest.classes_]).codes[:, 0], weight
    return X, y.astype(np.float64), weight


def take_rows(forest: Any, X: Any) -> Any:
    """Transform rows by the steps of the forest's pipeline, and check them for the forest."""
    return check_walked_rows(forest, take_steps(forest, X))


def check_walked_rows(forest: Any, X: Any) -> Any:
    """Check rows after the steps of the forest's pipeline.

    Raises ValueError for rows that surrogates send: importances walk trees by their splits only.
    """
    X = check_rows(forest, X)
    refuse_sent_by_surrogates(forest, X)
    return X


def refuse_sent_by_surrogates(forest: Any, X: Any) -> None:
    """Raise a ValueError if there are rows that surrogates would send."""
    is_sent = getattr(forest, "missing", "learned") == "surrogate" and not issparse(X)
    if is_sent and np.isnan(X).any():
        raise ValueError(
            "X has missing values, which the forest sends by surrogates (missing='surrogate'); "
            "this importance does not support surrogates. Fill in the values, fit with "
            "missing='learned', or use surrogate_importance(forest), which needs no X."
        )


def _require_training_table(fitted):
    """Raise an error if the table is not the one that the forest was fitted on.

    Our forests have fingerprints of its rows; for others, it is concluded from their leaves.
    """
    for name in getattr(fitted.forest, "_weighed_by", ()):
        raise TypeError(
            f"A {fitted.forest.name} of trees with {name} weights rows tree by tree, which this "
            f"importance does not support; fit a random forest with {name}."
        )
    is_same = is_table_of(fitted.forest, fitted.X, fitted.codes)
    if is_same is None:
        is_same = grew_on(fitted)
    if is_same:
        return
    refuse_several_tables(fitted.forest)
    raise ValueError(
        "(X, y) is not the table that the forest was fitted on: values or the order of the rows "
        "differ, or class_weight was changed after the fit. Give it the training table."
    )


def refuse_several_tables(forest: Any) -> None:
    """Raise a ValueError if the trees of a forest were grown on several tables."""
    if not is_of_one_table(forest):
        raise ValueError(
            "The forest was fitted on several tables (warm_start=True), or drew the rows of one "
            "in several ways, so no single table is that of all its trees. Fit it on one table, "
            "or judge it on held-out rows (held_out_permutation)."
        )


def require_one_output(model: Any, tree: Any) -> None:
    """Raise a TypeError if a model, of this tree among others, predicts several outputs."""
    if tree.n_outputs > 1:
        raise TypeError(
            f"This {getattr(model, 'name', type(model).__name__)} predicts {tree.n_outputs} "
            "outputs; take one of them, of_output(model, 0), with its y, y[:, 0]."
        )


def trees_of(forest: Any) -> list:
    """Trees of an adopted forest: objects with scikit-learn's node arrays."""
    return [tree.tree_ for tree in forest.estimators_]


def is_classification(forest: Any) -> bool:
    """Whether the forest predicts classes."""
    return hasattr(forest, "classes_")


def row_weight_of(forest: Any) -> np.ndarray | None:
    """Weight of every training row in the fit, (n_samples,), or None if all weigh the same."""
    return getattr(forest, "_row_weight", getattr(forest, "_sample_weight", None))


def names_of(forest: Any) -> np.ndarray:
    """Names of the features; x0, x1, ... if the forest has none."""
    unnamed = getattr(forest, "_column_names", [f"x{j}" for j in range(forest.n_features_in_)])
    return np.array(getattr(forest, "feature_names_in_", unnamed), dtype=object)
