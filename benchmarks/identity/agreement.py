"""Agreement of two trees, which are walked side by side from the root."""

from typing import NamedTuple

import numpy as np

from benchmarks.harness import display

LEAF = -1
SAME = ("feature", "threshold", "n_node_samples")  # equal bit for bit in identical nodes, as is
# the side of missing values
CLOSE = ("impurity", "value")  # up to rounding
TIES = ("tie", "pure", "limit")  # verdicts on a difference that rounding decides
NOTE = (  # for a table with `share_of_trees`
    "Ties: splits that are equally good in exact arithmetic, or nodes of impurity zero, where "
    "rounding decides, also in scikit-learn; below the first tie the trees differ."
)


class Agreement(NamedTuple):
    """How far two trees agree; nodes below a difference do not count as identical."""

    identical: int  # nodes
    total: int  # nodes of the larger tree
    first_rows: int | None  # rows of the first node, depth-first, that differs
    gap: float  # largest difference of CLOSE in identical nodes, relative to the tree's largest


def agree(ours, theirs):
    """Walk two trees side by side, level by level.

    Parameters
    ----------
    ours, theirs : objects with the arrays of scikit-learn's `tree_`

    Returns
    -------
    Agreement
    """
    a = b = np.zeros(1, np.int64)
    identical, gap, differing = 0, 0.0, []
    while len(a):
        same = np.all([getattr(ours, name)[a] == getattr(theirs, name)[b] for name in SAME], axis=0)
        leaf = ours.children_left[a] == LEAF  # in a leaf, the side of missing values is arbitrary
        same &= leaf | (ours.missing_go_to_left[a] == theirs.missing_go_to_left[b])
        differing.extend(a[~same])
        a, b = a[same], b[same]
        identical += len(a)
        gap = max(gap, *(_gap(getattr(ours, name), a, getattr(theirs, name), b) for name in CLOSE))
        split = ours.children_left[a] != LEAF
        a, b = _children(ours, a[split]), _children(theirs, b[split])
    total = max(len(ours.feature), len(theirs.feature))
    first_rows = int(ours.n_node_samples[min(differing)]) if differing else None
    return Agreement(identical, total, first_rows, gap)


def agree_all(ours, theirs):
    """Agreement of two forests' trees, one by one.

    Parameters
    ----------
    ours, theirs : list of fitted decision trees

    Returns
    -------
    list of Agreement
    """
    return [agree(a.tree_, b.tree_) for a, b in zip(ours, theirs, strict=True)]


def have_same_nodes(ours, theirs):
    """Whether the trees of two of our forests are the same, bit for bit in every node."""
    return all(
        np.array_equal(mine, other)
        for a, b in zip(ours.estimators_, theirs.estimators_, strict=True)
        for mine, other in zip(a.tree_.nodes, b.tree_.nodes, strict=True)
    )


def summarize(agreements, verdicts=()):
    """Counts over many trees.

    Parameters
    ----------
    agreements : list of Agreement
    verdicts : sequence of str
        On the trees that differ, see `benchmarks.identity.run.judge_first`.

    Returns
    -------
    dict
    """
    first = [each.first_rows for each in agreements if each.first_rows is not None]
    middle = np.quantile(first, (0, 0.5, 1), method="lower").tolist() if first else []
    return {
        "trees": len(agreements),
        "identical_trees": len(agreements) - len(first),
        "ties": sum(verdict in TIES for verdict in verdicts),
        "nodes": sum(each.total for each in agreements),
        "identical_nodes": sum(each.identical for each in agreements),
        "first_difference_rows": middle,  # lowest, median, highest
        "largest_gap": max(each.gap for each in agreements),
    }


def share_of_trees(row, has_ties):
    """The share of a summary's trees that are the same node for node, in words.

    Parameters
    ----------
    row : dict
        See `summarize`.
    has_ties : bool
        Whether all trees that differ are known to differ by ties.
    """
    if has_ties and row["identical_trees"] < row["trees"]:
        return "down to ties"
    return display.share(row["identical_trees"], row["trees"])


def _gap(x, a, y, b):
    finite = np.isfinite(y)  # the Poisson deviance may be infinite
    known = np.isfinite(x[a])
    if (known != finite[b]).any():
        return np.inf
    gaps = np.abs(x[a][known] - y[b][known])
    return gaps.max(initial=0.0) / (np.abs(y[finite]).max(initial=0.0) or 1.0)


def _children(tree, nodes):
    return np.concatenate((tree.children_left[nodes], tree.children_right[nodes]))
