"""The path of one row down a tree, in words."""

import itertools
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import _num_samples

from cart.estimators.parameters import MatrixLike
from cart.estimators.reading.words import alternative, answer, condition, name_of, rows_in_words
from cart.estimators.validation import check_rows, require_tree
from cart.tree.packed_surrogates import goes_by_surrogates


class PathStep(NamedTuple):
    """One split on the path."""

    node: int  # its number in tree_
    condition: str  # that the row fulfils; or how the row was sent on without the value
    n_samples: int  # training rows in the child that the row goes to


class TreePath(NamedTuple):
    """The path of a row from the root to its leaf; `print` shows it.

    Attributes
    ----------
    steps : list of PathStep
    leaf : int
        Number of the leaf in `tree_`.
    n_samples : int
        Training rows in the leaf.
    answer : str
        What the leaf predicts: its class and class shares, or its mean.

    Examples
    --------
    >>> from cartwood import DecisionTreeRegressor, explain_path
    >>> path = explain_path(DecisionTreeRegressor().fit([[1.0], [3.0]], [5.0, 8.0]), [2.5])
    >>> path.steps[0].condition, path.answer
    ('x[0] > 2', 'predicts 8')
    """

    steps: list[PathStep]
    leaf: int
    n_samples: int
    answer: str

    def __str__(self) -> str:
        lines = [f"{i}. {step.condition}" for i, step in enumerate(self.steps, 1)]
        width = max((len(line) for line in lines), default=0)
        shown = [
            f"{line.ljust(width)}   {rows_in_words(step.n_samples)}"
            for line, step in zip(lines, self.steps, strict=True)
        ]
        return "\n".join([*shown, f"-> {self.answer}, from {rows_in_words(self.n_samples)}"])


def explain_path(tree: Any, x: MatrixLike) -> TreePath:
    """Explain a tree's prediction for one row: the conditions that the row fulfils, in order.

    Parameters
    ----------
    tree : a fitted tree of `cart`
        Trees of scikit-learn are accepted too.
    x : array-like of shape (n_features,) or (1, n_features)
        The row: also a DataFrame of one row, or a Series that is a row of one.

    Returns
    -------
    TreePath
        The conditions. Where the row's value is missing, it names the surrogate that decided
        instead, or the rule that sent the row on.

    Raises
    ------
    sklearn.exceptions.NotFittedError
    TypeError
        If `tree` is a forest, or not a tree.
    ValueError
        If x is not one row.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from cartwood import DecisionTreeClassifier, explain_path
    >>> X, y = load_iris(as_frame=True, return_X_y=True)
    >>> tree = DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, y)
    >>> print(explain_path(tree, X.iloc[[77]]))
    1. petal width (cm) > 0.8     100 rows
    2. petal width (cm) <= 1.75   54 rows
    -> predicts 1 (1 90.7%, 2 9.3%), from 54 rows
    """
    tree = require_tree(tree, "explain_path", takes_sklearn=True)
    row = check_rows(tree, _as_table(x))
    nodes, values = tree.tree_, row.toarray()[0] if hasattr(row, "toarray") else row[0]
    passed = nodes.decision_path(row).indices.tolist()
    leaf = passed[-1]
    steps = [
        PathStep(node, _reason(tree, node, child, values), int(nodes.n_node_samples[child]))
        for node, child in itertools.pairwise(passed)
    ]
    return TreePath(steps, leaf, int(nodes.n_node_samples[leaf]), answer(tree, leaf))


def _as_table(x):
    if hasattr(type(x), "to_frame") and hasattr(x, "index"):  # a row of a DataFrame, by names
        x = x.astype(object).where(x.notna(), np.nan)  # NaT and pandas.NA are not floats
        return x.to_frame().T.infer_objects()
    if np.ndim(x) == 1:  # the values of a list keep their types, as in `predict`
        return x.reshape(1, -1) if isinstance(x, np.ndarray) else [[*x]]
    if np.ndim(x) == 0:
        raise ValueError(f"explain_path needs one row, but x is {x!r}.")
    if (n_rows := _num_samples(x)) != 1:
        raise ValueError(
            f"explain_path needs one row, but x has {n_rows} rows; pass them one by one."
        )
    return x


def _reason(tree, node, child, values):
    """Why the row went from a node to a child."""
    nodes = tree.tree_
    is_left = child == nodes.children_left[node]
    if not np.isnan(values[nodes.feature[node]]):
        return condition(tree, node, is_left)
    name = name_of(tree, nodes.feature[node])
    for split in nodes.surrogates.of(node) if goes_by_surrogates(nodes) else ():
        sent = _sent_by(split, values)
        if sent is not None:
            return f"{name} is missing; surrogate: {alternative(tree, split, sent)}"
    learned = getattr(tree, "missing", "learned") == "learned"
    why = "the side learned in training" if learned else "the side of most rows"
    return f"{name} is missing; sent as if {condition(tree, node, is_left)}, {why}"


def _sent_by(split, values):
    """Whether a surrogate sends the row left; None if it cannot decide."""
    value = values[split.feature]
    if np.isnan(value):
        return None
    if np.isnan(split.threshold):
        code = int(value)
        return True if code in split.left else False if code in split.right else None
    return bool((value <= split.threshold) == split.low_left)
