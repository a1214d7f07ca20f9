r"""Check that arrays form a tree that can be walked, wherever a tree comes from outside.

Kernels do not check what they read. So before a kernel sees them, children, features and shapes
must be in range, and nodes must form a tree. Compact trees are checked without expansion:

    leaves, depth first  0 0 1 0 1 1 1     a split opens a place (+1), a leaf takes one (-1); there
    open places        1 2 3 2 3 2 1 0     is one place at first, and the last node, none before
                                           it, takes the last; a table does eight nodes at a time
"""

import math
from typing import Any

import numpy as np

from cart.files import require
from cart.tree.nodes import LEAF, Categories, Nodes, levels_of

MOST_NODES = 2**31 - 1  # so that node numbers fit into int32
_STEPS = 1 - 2 * np.unpackbits(np.arange(256, dtype=np.uint8)[:, np.newaxis], axis=1).astype("i4")
_CHANGE = _STEPS.sum(axis=1, dtype="i4")  # of the number of open places over eight nodes
_DIP = _STEPS.cumsum(axis=1, dtype="i4").min(axis=1) - _CHANGE  # its minimum, less its last value
_WHOLE = "iu"  # kinds of integer dtypes
_FORM = Nodes.create(0, 1, 1)


def check_nodes(nodes: Nodes, n_features: int, categories: Categories | None = None) -> None:
    """Check the node arrays of a tree.

    Parameters
    ----------
    nodes : cart.tree.nodes.Nodes
    n_features : int
    categories : cart.tree.nodes.Categories, optional

    Raises
    ------
    cart.files.DamagedModelError
        If they cannot be walked.
    """
    _check_n_features(n_features)
    n_nodes = len(nodes.children_left)
    require(0 < n_nodes <= MOST_NODES, f"a tree has {n_nodes} nodes")
    for name, array, like in zip(Nodes._fields, nodes, _FORM, strict=True):
        is_like = type(array) is np.ndarray and (array.dtype, array.ndim) == (like.dtype, like.ndim)
        require(
            is_like and len(array) == n_nodes, f"{name} is not an array of {n_nodes} {like.dtype}"
        )
    require(min(nodes.value.shape) > 0, f"a value has shape {nodes.value.shape[1:]}")
    check_children(nodes.children_left, nodes.children_right)
    is_split = nodes.children_left != LEAF
    _check_splits(nodes.feature[is_split], nodes.threshold[is_split], n_features, categories)
    _check_categories(categories, np.isnan(nodes.threshold) & is_split)


def _check_n_features(n_features):
    is_number = isinstance(n_features, int | np.integer) and type(n_features) is not bool
    require(is_number and 0 <= n_features < 2**31, f"a tree has {n_features!r} features")


def check_children(left: np.ndarray, right: np.ndarray) -> None:
    """Check that children form a tree whose root is node 0.

    Parameters
    ----------
    left, right : ndarray of shape (n_nodes,), int32
    """
    parents = np.flatnonzero(left != LEAF)
    require(np.array_equal(parents, np.flatnonzero(right != LEAF)), "a node has only one child")
    children = np.concatenate((left[parents], right[parents]))
    n_nodes = len(left)
    is_in_range = children.min(initial=1) > 0 and children.max(initial=0) < n_nodes
    require(is_in_range, "a child number is out of range, or is the root")
    require(
        len(children) == n_nodes - 1, "the number of children does not match the number of nodes"
    )
    n_parents = np.bincount(children, minlength=n_nodes)
    require(n_parents[1:].min(initial=1) == 1, "a node has two parents, or none")
    if np.all(np.tile(parents, 2) < children):
        return  # no node can be below itself
    n_met = sum(map(len, levels_of(left, right)))  # which end, as no node has two parents
    require(n_met == n_nodes, "the children form a cycle")


def _check_splits(features, thresholds, n_features, categories):
    """Check the features and thresholds of splits."""
    if not len(features):
        return
    is_known = features.min() >= 0 and features.max() < n_features
    require(is_known, f"a split is on a feature outside the {n_features} features")
    if categories is None:
        require(
            not math.isnan(thresholds.min()), "a threshold is nan, but the tree has no categories"
        )


def _check_categories(categories, is_subset):
    """Check the lists of categories of the nodes that split on a subset."""
    if categories is None:
        return
    require(type(categories) is Categories, "the categories are not a Categories object")
    (start, listed, listed_left), n_nodes = categories, len(is_subset)
    for array, dtype, name in (
        (start, np.int64, "start"), (listed, np.uint32, "listed"),
        (listed_left, None, "listed_left"),
    ):  # fmt: skip
        is_array = type(array) is np.ndarray and array.ndim == 1
        require(
            is_array and array.dtype.kind in _WHOLE,
            f"{name} of categories is not an array of whole numbers",
        )
        require(
            dtype is None or array.dtype == dtype, f"{name} of categories has dtype {array.dtype}"
        )
    require(
        len(start) == n_nodes + 1 and len(listed_left) == n_nodes,
        "the categories do not match the number of nodes",
    )
    require(
        start[0] == 0 and start[-1] == len(listed),
        "the lists of categories do not cover the listed codes",
    )
    sizes = np.diff(start)
    require(sizes.min() >= 0, "the lists of categories overlap")
    require(not np.any(sizes[~is_subset]), "a split at a threshold lists categories")
    is_flag = listed_left.min() >= 0 and listed_left.max() <= 1
    require(is_flag, "listed_left of categories is neither 0 nor 1")


def check_compact(kept: dict[str, Any], n_features: int, categories: Categories | None) -> None:
    """Check what a compact tree stores; see `cart.tree.compact`.

    Parameters
    ----------
    kept : dict
        Its arrays, `n_nodes` and `shape`.
    n_features : int
    categories : cart.tree.nodes.Categories or None
    """
    _check_n_features(n_features)
    missing = {"n_nodes", "shape", "leaves"} - kept.keys()
    require(not missing, f"a tree has no {', '.join(sorted(missing))}")
    n_nodes, shape = kept["n_nodes"], kept["shape"]
    require(type(n_nodes) is int and 0 < n_nodes <= MOST_NODES, f"a tree has {n_nodes!r} nodes")
    is_shape = type(shape) is tuple and len(shape) == 2 and all(type(n) is int for n in shape)
    require(
        is_shape and min(shape) > 0 and math.prod(shape) < 2**31, f"a value has shape {shape!r}"
    )
    leaves = kept["leaves"]
    _check_bits(leaves, n_nodes, "leaves")
    if "children_left" in kept:
        is_leaf = np.unpackbits(leaves, count=n_nodes).view(bool)
        n_leaves = int(np.count_nonzero(is_leaf))
    else:
        _check_depth_first(leaves, n_nodes)
        n_leaves = (n_nodes + 1) // 2
    _check_lengths(kept, n_nodes, n_leaves)
    if "children_left" in kept:
        is_same = np.array_equal(kept["children_left"] == LEAF, is_leaf)
        require(is_same, "the children do not match the leaves")
        check_children(kept["children_left"], kept["children_right"])
    if "features" in kept:
        features, thresholds = kept["features"], kept["thresholds"]
    else:
        is_leaf = np.unpackbits(leaves, count=n_nodes).view(bool)
        features, thresholds = kept["feature"][~is_leaf], kept["threshold"][~is_leaf]
    _check_splits(features, thresholds, n_features, categories)
    if categories is not None:
        is_subset = np.unpackbits(leaves, count=n_nodes) == 0
        is_subset[is_subset] = np.isnan(thresholds)
        _check_categories(categories, is_subset)


def _check_bits(bits, n, name):
    is_bytes = type(bits) is np.ndarray and bits.dtype == np.uint8
    require(is_bytes and bits.shape == ((n + 7) // 8,), f"{name} are not {n} bits")


def _check_depth_first(leaves, n_nodes):
    """Check that nodes, numbered depth first, form one tree."""
    n_whole = (n_nodes - 1) // 8  # bytes before the byte of the last node
    whole = leaves[:n_whole].astype(np.intp)
    n_open = 1 + _CHANGE.take(whole).cumsum(dtype="i4")  # below 2**31, as the nodes are
    places = int(n_open[-1]) if n_whole else 1
    n_open += _DIP.take(whole)
    is_open = n_open.min(initial=1) > 0
    for bit in np.unpackbits(leaves[n_whole:], count=n_nodes - 8 * n_whole):
        is_open &= places > 0
        places += -1 if bit else 1
    require(bool(is_open) and places == 0, "the leaf bits do not form one tree")


def _check_lengths(kept, n_nodes, n_leaves):
    """Check which arrays a compact tree has, and their dtypes and shapes."""
    shape, n_values = kept["shape"], math.prod(kept["shape"])
    n_splits = n_nodes - n_leaves
    has_counts = "value" not in kept and "totals" not in kept
    width = n_values if has_counts else 1
    n_impure = 0
    if "impure" in kept:
        _check_bits(kept["impure"], n_nodes, "impure nodes")
        n_impure = int(np.count_nonzero(np.unpackbits(kept["impure"], count=n_nodes)))
    forms = {
        "children_left": ("i", (n_nodes,)), "children_right": ("i", (n_nodes,)),
        "feature": ("i", (n_nodes,)), "threshold": ("f", (n_nodes,)),
        "missing_go_to_left": ("u", (n_nodes,)), "n_node_samples": ("i", (n_nodes,)),
        "weighted_n_node_samples": ("f", (n_nodes,)), "value": ("f", (n_nodes, *shape)),
        "features": (_WHOLE, (n_splits,)), "thresholds": ("f", (n_splits,)),
        "samples": (_WHOLE, (n_leaves,)), "counts": (_WHOLE, (n_leaves, width)),
        "totals": (_WHOLE, (n_leaves,)), "squares": (_WHOLE, (n_impure,)),
        "impurities": ("f", (n_impure,)),
    }  # fmt: skip
    for name in kept.keys() - {"n_nodes", "shape", "leaves", "impure"}:
        require(name in forms, f"a tree has an unknown array {name!r}")
        (kinds, form), array = forms[name], kept[name]
        is_array = type(array) is np.ndarray and array.dtype.kind in kinds
        is_full = kinds != "f" or array.dtype == np.float64
        is_full &= name not in Nodes._fields or array.dtype == getattr(_FORM, name).dtype
        require(
            is_array and is_full and array.shape == form,
            f"{name} of a tree has the wrong dtype, or not the shape {form}",
        )
    for pair in (("children_left", "children_right"), ("feature", "threshold"),
                 ("features", "thresholds")):  # fmt: skip
        require(
            (pair[0] in kept) == (pair[1] in kept),
            f"a tree has only one of {pair[0]} and {pair[1]}",
        )
    for one, other in (("feature", "features"), ("n_node_samples", "samples"),
                       ("weighted_n_node_samples", "counts")):  # fmt: skip
        require((one in kept) != (other in kept), f"a tree needs either {one} or {other}")
    require(("totals" in kept) == ("squares" in kept), "a tree has only one of totals and squares")
    require("totals" not in kept or n_values == 1, "the sums of a tree are of several values")
    require(has_counts <= ("counts" in kept), "the class counts of a tree are missing")
    require("totals" not in kept or "counts" in kept, "the sums of a tree have no weights")
    require(
        bool({"squares", "impurities"} & kept.keys()) == ("impure" in kept),
        "the impurities do not match the impure nodes",
    )
