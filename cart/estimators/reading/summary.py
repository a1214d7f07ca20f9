"""A tree as text, node by node, in the manner of R's `summary.rpart`."""

from numbers import Integral
from typing import Any

import numpy as np

from cart.estimators.pruning.cp_table import cp_table
from cart.estimators.reading.words import (
    alternative,
    answer,
    condition,
    name_of,
    number,
    rows_in_words,
)
from cart.estimators.validation import require_tree
from cart.tree.nodes import LEAF
from cart.tree.tree import decreases


def summary(tree: Any, max_nodes: int = 30) -> str:
    """A fitted tree in words: table of complexities, importances, and every node with its splits.

    Parameters
    ----------
    tree : a fitted tree of `cart`
    max_nodes : int, default=30
        How many nodes to show, beginning with the root.

    Returns
    -------
    str
        For each node, under its number in `tree_`: its rows, its prediction, its split with the
        decrease in impurity (times weight), and its competitors and surrogates, if the tree keeps
        any. If it does, and `missing` is "surrogate" or "majority", the decrease is that among
        the rows whose value of the feature is known.

    Raises
    ------
    TypeError
        If `tree` is a forest, or not a tree of Cartwood.
    ValueError
        If `max_nodes` is not a non-negative integer.
    sklearn.exceptions.NotFittedError

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from cartwood import DecisionTreeClassifier, summary
    >>> X, y = load_iris(as_frame=True, return_X_y=True)
    >>> tree = DecisionTreeClassifier(max_depth=1, random_state=0).fit(X, y)
    >>> print(summary(tree))
    DecisionTreeClassifier: 150 rows, 2 leaves
    <BLANKLINE>
       CP nsplit rel error
    0 0.5      0         1
    1   0      1       0.5
    <BLANKLINE>
    Importance (decrease of impurity): petal width (cm) 100
    <BLANKLINE>
    Node 0: 150 rows
      predicts 0 (0 33.3%, 1 33.3%, 2 33.3%)
      split: petal width (cm) <= 0.8 to node 1 (50 rows), else to node 2 (100 rows)
      improvement 50
    Node 1: 50 rows
      predicts 0 (0 100.0%)
    Node 2: 100 rows
      predicts 1 (1 50.0%, 2 50.0%)
    """
    tree = require_tree(tree, "summary")
    if not (isinstance(max_nodes, Integral) and max_nodes >= 0):
        raise ValueError(f"max_nodes must be a non-negative whole number, but is {max_nodes!r}.")
    nodes = tree.tree_
    leaves = "1 leaf" if nodes.n_leaves == 1 else f"{nodes.n_leaves} leaves"
    parts = [f"{type(tree).__name__}: {rows_in_words(nodes.n_node_samples[0])}, {leaves}"]
    has_risk = np.isfinite(nodes.impurity[0])  # squares of the target may overflow
    if has_risk and tree.n_outputs_ == 1 and tree.criterion != "poisson":
        parts.append(str(cp_table(tree)))
    if has_risk and nodes.node_count > 1:
        parts.append(_importances(tree))
    shown = [_node(tree, node) for node in range(min(nodes.node_count, max_nodes))]
    if nodes.node_count > max_nodes:
        shown.append(f"... and {nodes.node_count - max_nodes} more nodes")
    return "\n\n".join([*parts, "\n".join(shown)])


def _importances(tree):
    """Shares of the decrease in impurity as rpart prints them: as rounded percentages."""
    shares = 100.0 * tree.tree_.compute_feature_importances()
    order = [j for j in np.argsort(-shares, kind="stable") if round(shares[j]) > 0]
    named = [f"{name_of(tree, j)} {shares[j]:.0f}" for j in order]
    return "Importance (decrease of impurity): " + ", ".join(named)


def _node(tree, node):
    nodes = tree.tree_
    weight = nodes.weighted_n_node_samples
    n_rows = nodes.n_node_samples[node]
    lines = [f"Node {node}: {rows_in_words(n_rows)}"]
    if not np.isclose(weight[node], n_rows):
        lines[0] += f", weight {number(weight[node])}"
    lines.append(f"  {answer(tree, node)}")
    left, right = nodes.children_left[node], nodes.children_right[node]
    if left == LEAF:
        return "\n".join(lines)
    sizes = nodes.n_node_samples
    lines.append(
        f"  split: {condition(tree, node, True)} to node {left} ({rows_in_words(sizes[left])}), "
        f"else to node {right} ({rows_in_words(sizes[right])})"
    )
    kept = nodes.competitors or nodes.surrogates  # these hold the gain among rows with the value
    gain = kept.primary[node] if kept else decreases(nodes, node)
    lines.append(f"  improvement {number(gain)}")
    for split in nodes.competitors.of(node) if nodes.competitors else ():
        said = alternative(tree, split)
        lines.append(f"  competitor: {said} (improvement {number(split.improvement)})")
    for split in nodes.surrogates.of(node) if nodes.surrogates else ():
        said = alternative(tree, split)
        lines.append(
            f"  surrogate: {said} (agree {number(split.agree)}, adj {number(split.adj)}, "
            f"{rows_in_words(split.n_sent)} sent)"
        )
    return "\n".join(lines)
