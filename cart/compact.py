"""Trees in few bytes, for pickles: what follows from the leaves, or from the order of the nodes, is
left out.

Every array that is left out is made again before it is, and kept if a bit differs. Nothing is made
again by functions that differ between machines, such as logarithms.
"""

import sys

import numpy as np

from cart.jit import entry_kernel
from cart.nodes import LEAF, UNDEFINED, Nodes

_PLAIN = ("n_nodes", "shape")  # what is kept and no array


def shrink(nodes):
    """What is needed to make the node arrays again.

    Parameters
    ----------
    nodes : cart.nodes.Nodes

    Returns
    -------
    dict of str to int or tuple
        Arrays as their dtype and bytes.
    """
    is_leaf = nodes.children_left == LEAF
    kept = {
        "n_nodes": len(is_leaf),
        "shape": nodes.value.shape[1:],
        "leaves": np.packbits(is_leaf),
        "features": _in_few_bytes(nodes.feature[~is_leaf]),
        "thresholds": nodes.threshold[~is_leaf],
        "samples": _in_few_bytes(nodes.n_node_samples[is_leaf]),
    }
    weights = nodes.weighted_n_node_samples[is_leaf]
    if nodes.value.shape[2] > 1:
        kept["counts"] = _in_few_bytes(nodes.value[is_leaf] * weights[:, None, None])
    else:
        kept["weights"] = _in_few_bytes(weights)
    if not _follows(nodes, _make(kept), ("children_left", "children_right")):
        kept.update(children_left=nodes.children_left, children_right=nodes.children_right)
    made = _make(kept)
    kept.update(
        (name, array)
        for name, array in nodes._asdict().items()
        if not _follows(nodes, made, (name,)) and name not in kept
    )
    return {
        name: _write(item) if isinstance(item, np.ndarray) else item for name, item in kept.items()
    }


def expand(kept):
    """The node arrays, every bit as it was.

    Parameters
    ----------
    kept : dict
        From `shrink`.

    Returns
    -------
    cart.nodes.Nodes
    """
    kept = {name: item if name in _PLAIN else _read(*item) for name, item in kept.items()}
    for name in ("counts", "value"):
        if name in kept:
            kept[name] = kept[name].reshape(-1, *kept["shape"])
    made = _make(kept)
    return Nodes(**{name: kept.get(name, made[name]) for name in Nodes._fields})


def _write(array):
    """An array as bytes: pickles of small arrays consist of their descriptions."""
    return sys.intern(array.dtype.str), array.tobytes()


def _read(dtype, content):
    return np.frombuffer(content, dtype).copy()


def _make(kept):
    """All node arrays, as far as they follow from what is kept."""
    n, shape = kept["n_nodes"], kept["shape"]
    is_leaf = np.unpackbits(kept["leaves"], count=n).astype(bool)
    left = kept.get("children_left", np.empty(n, np.int32))
    right = kept.get("children_right", np.empty(n, np.int32))
    if "children_left" not in kept:
        _number_children(is_leaf, left, right, np.empty(n // 2 + 1, np.int64))
    feature = np.full(n, UNDEFINED, np.int32)
    feature[~is_leaf] = kept["features"]
    threshold = np.full(n, float(UNDEFINED))
    threshold[~is_leaf] = kept["thresholds"]
    n_samples = _sum_up(kept["samples"], is_leaf, left, right)[:, 0]
    if "counts" in kept:
        counts = _sum_up(kept["counts"], is_leaf, left, right).reshape(n, *shape)
        weight = counts[:, 0].sum(axis=1).astype(np.float64)
        squares = (counts.astype(np.float64) ** 2).sum(axis=2)
        with np.errstate(divide="ignore", invalid="ignore"):  # fractions of a weight count as none
            value = counts / weight[:, None, None]
            impurity = (1.0 - squares / (weight * weight)[:, None]).sum(axis=1) / shape[0]
    else:
        weight = _sum_up(kept["weights"], is_leaf, left, right)[:, 0].astype(np.float64)
        value, impurity = np.zeros((n, *shape)), np.zeros(n)
    goes_left = np.zeros(n, np.uint8)
    goes_left[~is_leaf] = n_samples[left[~is_leaf]] > n_samples[right[~is_leaf]]
    return Nodes(
        left, right, feature, threshold, impurity, n_samples.astype(np.int32), weight, goes_left,
        value,
    )._asdict()  # fmt: skip


def _in_few_bytes(numbers):
    """The whole numbers nearest to some that are not negative, in few bytes."""
    rounded = np.rint(np.minimum(numbers, 2.0**62)).astype(np.int64)
    return rounded.astype(np.min_scalar_type(rounded.max(initial=0)))


def _follows(nodes, made, names):
    """Are these arrays what was made, to the bit?"""
    return all(getattr(nodes, name).tobytes() == made[name].tobytes() for name in names)


def _sum_up(of_leaves, is_leaf, left, right):
    """Sums over the leaves below every node, (n_nodes, ...) int64."""
    sums = np.zeros((len(is_leaf), of_leaves[:1].size or 1), np.int64)
    sums[is_leaf] = of_leaves.reshape(len(of_leaves), -1)
    _add_children(left, right, sums)
    return sums


@entry_kernel
def _number_children(is_leaf, left, right, waiting):
    """Number the children of nodes that stand depth first, the left child behind its parent."""
    height = 0
    for node in range(is_leaf.shape[0]):
        left[node] = LEAF
        right[node] = LEAF
        if not is_leaf[node]:
            left[node] = node + 1
            waiting[height] = node
            height += 1
        elif height > 0:
            height -= 1
            right[waiting[height]] = node + 1


@entry_kernel
def _add_children(left, right, sums):
    """Let every node that has children, which stand behind it, be their sum."""
    for node in range(sums.shape[0] - 1, -1, -1):
        if left[node] != LEAF:
            for k in range(sums.shape[1]):
                sums[node, k] = sums[left[node], k] + sums[right[node], k]
