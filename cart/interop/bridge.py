"""Conversion between our trees and scikit-learn's, with the same nodes."""

import inspect
from collections.abc import Iterable, Sequence
from types import ModuleType
from typing import Literal

import numpy as np
import sklearn.tree
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.tree._tree import NODE_DTYPE
from sklearn.tree._tree import Tree as PeerTree
from sklearn.utils.validation import check_is_fitted

import cart
from cart.interop.indicators import Indicators
from cart.interop.versions import warn_if_unchecked
from cart.table.precision import precision_of
from cart.tree.nodes import LEAF
from cart.tree.packed_surrogates import goes_by_surrogates
from cart.tree.pruning import restricted
from cart.tree.tree import Tree, copied_nodes

warn_if_unchecked()

_TWOING = ("twoing", "ordered_twoing")
# Attributes that a fitted estimator has of its training table.
_FITTED = (
    "n_features_in_",
    "feature_names_in_",
    "n_outputs_",
    "classes_",
    "n_classes_",
    "max_features_",
)


def to_sklearn(
    estimator: BaseEstimator, *, categories: Literal["indicators"] | None = None
) -> BaseEstimator:
    """Convert a fitted tree to a fitted scikit-learn estimator with the same nodes.

    Parameters
    ----------
    estimator : a fitted tree of `cart`
    categories : {"indicators"} or None, default=None
        "indicators" converts splits on subsets of categories: the result is a Pipeline of
        `cart.interop.indicators.Indicators`, which makes a column of 0 and 1 for each distinct
        subset, and the tree on these columns. None raises an error for such splits.

    Returns
    -------
    estimator of `sklearn.tree`, with the same parameters and bit for bit the same predictions
        With categorical features, a Pipeline that ends in it. Rows with missing values go the same
        way with missing="learned" and "majority". Surrogates and competitors that only serve to be
        read are dropped. Extra trees with splitter="best" become decision trees, which they are.

    Raises
    ------
    TypeError
        If it is not a tree of `cart`.
    ValueError
        If it has something that scikit-learn's trees lack: splits on categories, double precision,
        a criterion of our own, priors, losses, missing values sent by surrogates or refused.
    sklearn.exceptions.NotFittedError
    """
    counterpart(estimator, cart, sklearn.tree)  # raises a TypeError if there is none
    check_is_fitted(estimator)
    indicators = indicators_of(estimator, [estimator.tree_], categories)
    refuse_foreign(estimator, indicators is not None)
    if indicators is None:
        return fitted_counterpart(estimator, estimator.tree_)
    return pipeline_of(
        indicators, fitted_counterpart(estimator, indicators.rewrite(estimator.tree_))
    )


def indicators_of(
    estimator: BaseEstimator, trees: Sequence[Tree], categories: str | None
) -> Indicators | None:
    """The transformer to indicator columns; None without categories, or if it is not asked for."""
    if categories not in (None, "indicators"):
        raise ValueError(f'categories must be "indicators" or None, but is {categories!r}.')
    if categories is None or not np.any(getattr(estimator, "is_categorical_", False)):
        return None
    return Indicators(estimator, trees)


def pipeline_of(indicators: Indicators, peer: BaseEstimator) -> Pipeline:
    """Pipeline of indicators and a fitted scikit-learn estimator, which it tells their names."""
    names = indicators.get_feature_names_out()
    peer.n_features_in_ = len(names)
    vars(peer).pop("feature_names_in_", None)
    return Pipeline([("indicators", indicators), ("trees", peer)])


def fitted_counterpart(estimator: BaseEstimator, tree: Tree) -> BaseEstimator:
    """The fitted scikit-learn counterpart of a tree estimator of `cart`, with the nodes of `tree`.

    Parameters
    ----------
    estimator : a fitted tree of `cart`
    tree : cart.tree.tree.Tree
        Its splits must all be at thresholds.
    """
    peer = counterpart(estimator, cart, sklearn.tree)
    extra = sklearn.tree.ExtraTreeClassifier, sklearn.tree.ExtraTreeRegressor
    if isinstance(peer, extra) and estimator.splitter == "best":  # would refuse missing values
        (decision_tree,) = type(peer).__bases__
        peer = decision_tree(**peer.get_params())
    if estimator.criterion in _TWOING:
        peer.criterion = "gini"  # the impurity of twoing's nodes
    nodes = np.zeros(tree.node_count, NODE_DTYPE)
    nodes["left_child"], nodes["right_child"] = tree.children_left, tree.children_right
    for name in NODE_DTYPE.names[2:]:
        nodes[name] = getattr(tree, name)
    n_classes = np.atleast_1d(getattr(estimator, "n_classes_", np.ones(tree.n_outputs)))
    peer.tree_ = PeerTree(tree.n_features, n_classes.astype(np.intp), tree.n_outputs)
    peer.tree_.__setstate__(
        {
            "max_depth": tree.max_depth,
            "node_count": tree.node_count,
            "nodes": nodes,
            "values": np.ascontiguousarray(tree.value),
        }
    )
    copy_attributes(estimator, peer, _FITTED)
    return peer


def from_sklearn(estimator: BaseEstimator) -> BaseEstimator:
    """Convert a fitted scikit-learn tree to a fitted tree of `cart` with the same nodes.

    Parameters
    ----------
    estimator : a fitted tree of `sklearn.tree`

    Returns
    -------
    estimator of `cart`, with the same parameters and bit for bit the same predictions
        Nodes that the root no longer reaches, because the tree was pruned by hand, are left out.

    Raises
    ------
    TypeError
        If it is not a tree of `sklearn.tree`.
    sklearn.exceptions.NotFittedError
    """
    ours = counterpart(estimator, sklearn.tree, cart)
    check_is_fitted(estimator)
    peer = estimator.tree_
    ours.tree_, ours._grown_in = Tree(_reached(copied_nodes(peer)), peer.n_features), "float32"
    if peer.n_outputs > 1:
        ours.tree_._n_classes = np.array(peer.n_classes, np.int64)
    copy_attributes(estimator, ours, _FITTED)
    return ours


def _reached(nodes):
    """The nodes that the root reaches; in scikit-learn a node without a left child is a leaf."""
    n_nodes, left = len(nodes.feature), nodes.children_left
    if 2 * np.count_nonzero(left != LEAF) == n_nodes - 1:
        return nodes  # it was not pruned by hand
    is_reached, level = np.zeros(n_nodes, bool), np.zeros(1, np.int64)
    while len(level):
        is_reached[level] = True
        split = level[left[level] != LEAF]
        level = np.concatenate((left[split], nodes.children_right[split]))
        level = level[(level > 0) & (level < n_nodes)]
        level = level[~is_reached[level]]  # each once, even in a damaged tree with cycles
    kept = np.flatnonzero(is_reached)
    return restricted(nodes, kept, left[kept] == LEAF)


def counterpart(estimator: BaseEstimator, source: ModuleType, target: ModuleType) -> BaseEstimator:
    """The unfitted estimator of package `target` that has the class name of a given one.

    Its class must be exported by package `source` under that name, or inherit from one that is. It
    gets those parameters that the class in `target` has.
    """
    for cls in type(estimator).__mro__:
        if getattr(source, cls.__name__, None) is cls and hasattr(target, cls.__name__):
            peer_class = getattr(target, cls.__name__)
            known = inspect.signature(peer_class).parameters
            params = estimator.get_params(deep=False)
            return peer_class(**{name: params[name] for name in params.keys() & known.keys()})
    raise TypeError(
        f"{type(estimator).__name__} is not an estimator of {source.__name__} that "
        f"{target.__name__} also has; pass a tree or a forest: for a Pipeline pipeline[-1], for "
        "a search best_estimator_, for Bagging each of its estimators_."
    )


def refuse_foreign(estimator: BaseEstimator, has_indicators: bool = False) -> None:
    """Raise a ValueError for an estimator with something that scikit-learn's trees lack.

    These are criteria of our own, priors and losses, splits on subsets of categories, surrogates
    that send rows, missing="refuse", and double precision (scikit-learn compares in single).
    """
    name = type(estimator).__name__
    if estimator.criterion in _TWOING:
        raise ValueError(
            f"{name} was fitted with criterion={estimator.criterion!r}, which scikit-learn does "
            'not know. Fit it with criterion="gini".'
        )
    for parameter in ("priors", "loss"):
        was_given = getattr(estimator, parameter, None) is not None
        if was_given or hasattr(estimator, f"{parameter}_"):
            raise ValueError(
                f"{name} was fitted with {parameter}=, which scikit-learn's estimators do not "
                "have. Fit it with class_weight instead, which expresses the same for two classes."
            )
    if np.any(getattr(estimator, "is_categorical_", False)) and not has_indicators:
        raise ValueError(
            f"{name} splits on subsets of categories, which scikit-learn's trees cannot "
            'represent. Use to_sklearn(..., categories="indicators") to turn them into columns '
            "of 0 and 1, or fit with categorical_features=None on ordinal codes."
        )
    trees = [each.tree_ for each in getattr(estimator, "estimators_", [estimator])]
    if any(map(goes_by_surrogates, trees)):
        raise ValueError(
            f"{name} sends rows with missing values by surrogate splits (missing='surrogate'), "
            "which scikit-learn's trees do not have. Fit it with missing='learned' or 'majority'."
        )
    if getattr(estimator, "missing", "learned") == "refuse":
        raise ValueError(
            f"{name} refuses rows with missing values (missing='refuse'), but scikit-learn's "
            "trees would accept them. Use set_params(missing='learned') first."
        )
    if precision_of(estimator) == np.float64:
        raise ValueError(
            f"{name} was fitted with precision='float64', but scikit-learn's trees compare in "
            "single precision and would send rows to other leaves. Fit it with "
            "precision='float32'."
        )


def copy_attributes(source: object, target: object, names: Iterable[str]) -> None:
    """Copy those of the named attributes that `source` has to `target`."""
    for name in names:
        if hasattr(source, name):
            setattr(target, name, getattr(source, name))
