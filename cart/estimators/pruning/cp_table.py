"""The table of nested subtrees: how their risk falls with size, in training and cross-validated."""

from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from cart.estimators.pruning.risk import NestedSubtrees, refuse_other_risks
from cart.estimators.validation import require_tree
from cart.files import storable

RULES = ("1se", "min")
_ROUNDING = 1e-9  # tolerance, so that a number read from the table selects its row


class CpTable(NamedTuple):
    """The nested subtrees of a tree, the root first; rpart's cptable.

    Risks are shares of the root's risk. Risk is the misclassified weight (its cost, with `loss`)
    in classification, and the sum of squared (or absolute) errors in regression.

    Attributes
    ----------
    cp : ndarray of shape (n_subtrees,), float64
        Lowest complexity at which each subtree is the best: it has the least
        rel_error + cp * leaves.
    n_splits : ndarray of shape (n_subtrees,), int64
        Number of splits; there is one leaf more.
    rel_error : ndarray of shape (n_subtrees,), float64
        Risk on the training rows.
    xerror, xstd : ndarray of shape (n_subtrees,), float64, or None
        Cross-validated risk and its standard error; None without cross-validation.
    root_risk : float
        Risk of the root per unit of weight; the other risks are shares of it.

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

    def __eq__(self, other: object) -> bool:
        """Whether all columns are equal; tuples would ask for the truth of arrays."""
        if not isinstance(other, CpTable):
            return False
        mine, its = (table.columns() for table in (self, other))
        same = mine.keys() == its.keys() and self.root_risk == other.root_risk
        return same and all(np.array_equal(mine[name], its[name]) for name in mine)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def columns(self) -> dict[str, np.ndarray]:
        """The columns as a dict under rpart's names, which `pandas.DataFrame` takes."""
        named = {"CP": self.cp, "nsplit": self.n_splits, "rel error": self.rel_error}
        if self.xerror is not None and self.xstd is not None:
            named |= {"xerror": self.xerror, "xstd": self.xstd}
        return named

    def best(self, rule: str = "1se") -> int:
        """Number of the row that a rule chooses.

        Parameters
        ----------
        rule : {"1se", "min"}, default="1se"
            "min" chooses the smallest subtree of least cross-validated risk; "1se" the smallest
            one whose risk exceeds the least by at most the standard error of the least.

        Returns
        -------
        int

        Raises
        ------
        ValueError
            If there is no cross-validated risk, or the rule is unknown.
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


def make_table(sequence: NestedSubtrees, alphas: np.ndarray) -> CpTable:
    """The table of the subtrees at the given complexities, without cross-validated risks."""
    sizes, risks = sequence.sizes_and_risks(alphas)
    unit = sequence.root_risk or 1.0
    return CpTable(alphas / unit, sizes, risks / unit, None, None, sequence.root_risk)


def cp_table(tree: Any) -> CpTable:
    """Table of the nested subtrees of a fitted tree, by complexity; rpart's cptable.

    Parameters
    ----------
    tree : a fitted tree of `cart`
        With one output.

    Returns
    -------
    CpTable
        If the tree comes from `cv_prune`, `PrunedTreeClassifier` or `PrunedTreeRegressor`, the
        table has cross-validated risks and all subtrees of the tree before it was pruned.

    Raises
    ------
    sklearn.exceptions.NotFittedError
    TypeError
        If `tree` is a forest, or not a tree of Cartwood.
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
    sequence = NestedSubtrees.of(tree, tree.tree_)
    return make_table(sequence, sequence.alphas(0.0))


def prune_at(tree: Any, cp: float) -> Any:
    """Prune a fitted tree to its subtree at a complexity; rpart's `prune`.

    Parameters
    ----------
    tree : a fitted tree of `cart`
        With one output; it is not changed.
    cp : float
        Complexity, as a share of the root's risk. A split is pruned, with all splits below it, if
        together they lower the risk by at most this per leaf that they add. `cp_table` lists the
        complexities at which the subtree changes.

    Returns
    -------
    a fitted tree of `cart`
        A copy of the estimator that holds the pruned tree.

    Raises
    ------
    sklearn.exceptions.NotFittedError
    TypeError
        If `tree` is a forest, or not a tree of Cartwood.
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
    sequence = NestedSubtrees.of(tree, tree.tree_)
    alpha = cp * sequence.root_risk * (1.0 + _ROUNDING)
    return tree.holding(sequence.pruned(alpha), tree.random_state)


def require_cp(cp: Any) -> None:
    """Raise a ValueError unless `cp` is a non-negative number.

    Raises
    ------
    ValueError
    """
    if not (isinstance(cp, Real) and float(cp) >= 0.0):
        raise ValueError(f"cp must be a non-negative number, but is {cp!r}.")


def refuse_several_outputs(tree: Any) -> None:
    """Raise a ValueError if a tree has several outputs.

    Raises
    ------
    ValueError
    """
    if tree.n_outputs_ > 1:
        raise ValueError(
            f"The tree has {tree.n_outputs_} outputs, but risk is defined for one; fit a tree "
            "per output."
        )


storable("CpTable", CpTable)
