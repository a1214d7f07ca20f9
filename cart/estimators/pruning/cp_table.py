"""The table of complexities: how risk falls as the tree grows, in sample and cross-validated."""

from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from cart.estimators.pruning.risk import Sequence, refuse_other_risks
from cart.estimators.validation import require_tree
from cart.files import storable

RULES = ("1se", "min")
_ROUNDING = 1e-9  # so that a complexity of the table is reached by its number


class CpTable(NamedTuple):
    """The nested subtrees of a tree, the root first; rpart's cptable.

    Risks are shares of the root's: misclassified weight, or what it costs with `loss`; the sum of
    squared (or absolute) errors in regression.

    Attributes
    ----------
    cp : ndarray of shape (n_subtrees,), float64
        Complexity down to which each subtree is the best: it has the least rel_error + cp * leaves.
    n_splits : ndarray of shape (n_subtrees,), int64
        Splits; there is one leaf more.
    rel_error : ndarray of shape (n_subtrees,), float64
        Risk on the training rows.
    xerror, xstd : ndarray of shape (n_subtrees,), float64, or None
        Cross-validated risk and its standard error; None without cross-validation.
    root_risk : float
        Risk of the root per weight, which the other risks are shares of.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from cartwood import PrunedTreeClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> table = PrunedTreeClassifier(random_state=0).fit(X, y).cp_table_
    >>> table.n_splits[table.best("1se")], table.n_splits[table.best("min")]
    (np.int64(3), np.int64(21))
    """

    cp: np.ndarray
    n_splits: np.ndarray
    rel_error: np.ndarray
    xerror: np.ndarray | None
    xstd: np.ndarray | None
    root_risk: float

    def columns(self) -> dict[str, np.ndarray]:
        """The columns by rpart's names, as a DataFrame takes them."""
        named = {"CP": self.cp, "nsplit": self.n_splits, "rel error": self.rel_error}
        if self.xerror is not None and self.xstd is not None:
            named |= {"xerror": self.xerror, "xstd": self.xstd}
        return named

    def best(self, rule: str = "1se") -> int:
        """The row that a rule chooses.

        Parameters
        ----------
        rule : {"1se", "min"}, default="1se"
            The smallest subtree whose cross-validated risk is least ("min"), or not above the
            least by more than the standard error of that ("1se").

        Returns
        -------
        int

        Raises
        ------
        ValueError
            If there is no cross-validated risk, or no such rule.
        """
        if self.xerror is None or self.xstd is None:
            raise ValueError("The tree was not cross-validated; fit it with cv_prune.")
        if rule not in RULES:
            raise ValueError(f"rule must be one of {RULES}, not {rule!r}.")
        least = int(np.argmin(self.xerror))
        bound = self.xerror[least] + (self.xstd[least] if rule == "1se" else 0.0)
        return int(np.argmax(self.xerror <= bound * (1.0 + _ROUNDING)))

    def __str__(self) -> str:
        named = self.columns()
        rows = [["", *named]]
        for i in range(len(self.cp)):
            cells = [f"{value[i]:.5g}" for value in named.values()]
            rows.append([str(i), *cells])
        widths = [max(len(row[j]) for row in rows) for j in range(len(rows[0]))]
        return "\n".join(
            " ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
            for row in rows
        )


def make_table(sequence: Sequence, alphas: np.ndarray) -> CpTable:
    """The table of the subtrees at some complexities, without cross-validation."""
    sizes, risks = sequence.sizes_and_risks(alphas)
    unit = sequence.root_risk or 1.0
    return CpTable(alphas / unit, sizes, risks / unit, None, None, sequence.root_risk)


def cp_table(tree: Any) -> CpTable:
    """The nested subtrees of a fitted tree, by complexity; rpart's cptable.

    Parameters
    ----------
    tree : a fitted tree of `cart`
        With one output. From `cv_prune` or a `PrunedTreeClassifier` or `PrunedTreeRegressor` it
        has the cross-validated risks, and all subtrees of the tree before it was pruned.

    Returns
    -------
    CpTable

    Raises
    ------
    sklearn.exceptions.NotFittedError
    ValueError
        If the tree has several outputs, or criterion="poisson".

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from cartwood import DecisionTreeClassifier, cp_table
    >>> X, y = load_iris(return_X_y=True)
    >>> print(cp_table(DecisionTreeClassifier(min_samples_split=20).fit(X, y)))
        CP nsplit rel error
    0  0.5      0         1
    1 0.44      1       0.5
    2 0.02      2      0.06
    3 0.01      3      0.04
    4    0      4      0.03
    """
    tree = require_tree(tree, "cp_table")
    if hasattr(tree, "cp_table_"):
        return tree.cp_table_
    refuse_several_outputs(tree)
    refuse_other_risks(tree)
    sequence = Sequence.of(tree, tree.tree_)
    return make_table(sequence, sequence.alphas(0.0))


def prune_at(tree: Any, cp: float) -> Any:
    """The subtree of a fitted tree at a complexity; rpart's `prune`.

    Parameters
    ----------
    tree : a fitted tree of `cart`
        With one output; it stays as it is.
    cp : float
        Every split below which risk falls by less than this share of the root's risk, or as much,
        per leaf, is cut off. Rows of `cp_table` say which make a difference.

    Returns
    -------
    a fitted tree of `cart`
        A copy with the smaller tree.

    Raises
    ------
    sklearn.exceptions.NotFittedError
    ValueError
        If the tree has several outputs, criterion="poisson", or cp is negative.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from cartwood import DecisionTreeClassifier, prune_at
    >>> X, y = load_iris(return_X_y=True)
    >>> whole = DecisionTreeClassifier(random_state=0).fit(X, y)
    >>> whole.get_n_leaves(), prune_at(whole, 0.1).get_n_leaves()
    (9, 3)
    """
    tree = require_tree(tree, "prune_at")
    require_cp(cp)
    refuse_several_outputs(tree)
    refuse_other_risks(tree)
    sequence = Sequence.of(tree, tree.tree_)
    alpha = cp * sequence.root_risk * (1.0 + _ROUNDING)
    return tree.holding(sequence.pruned(alpha), tree.random_state)


def require_cp(cp: Any) -> None:
    """Refuse what is no complexity.

    Raises
    ------
    ValueError
    """
    if not (isinstance(cp, Real) and float(cp) >= 0.0):
        raise ValueError(f"cp must be a number and not negative, but is {cp!r}.")


def refuse_several_outputs(tree: Any) -> None:
    """Refuse trees of several outputs.

    Raises
    ------
    ValueError
    """
    if tree.n_outputs_ > 1:
        raise ValueError(
            f"The tree has {tree.n_outputs_} outputs, and risks are of one; fit a tree for each."
        )


storable("CpTable", CpTable)
