"""Plot of a table of complexities."""

from typing import Any

import numpy as np

from cart.estimators.pruning.cp_table import CpTable, cp_table


def plot_cp(tree: Any, ax: Any = None) -> Any:
    """Plot risk against complexity, cross-validated with its standard error; rpart's `plotcp`.

    Parameters
    ----------
    tree : a fitted tree of `cart`, or a CpTable
        The cross-validated risk is drawn if the tree comes from `cv_prune`,
        `PrunedTreeClassifier` or `PrunedTreeRegressor`; else only the risk on the training rows.
    ax : matplotlib axes, default=None
        Axes to draw into; by default those of a new figure.

    Returns
    -------
    matplotlib axes
        A dotted line lies one standard error above the least risk. The smallest tree that is not
        above it, which the rule "1se" chooses, is ringed.

    Raises
    ------
    ModuleNotFoundError
        If matplotlib is not installed.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from cartwood import PrunedTreeClassifier, plot_cp
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> axes = plot_cp(PrunedTreeClassifier(random_state=0).fit(X, y))  # doctest: +SKIP
    """
    import matplotlib.pyplot as plt

    table = tree if isinstance(tree, CpTable) else cp_table(tree)
    if ax is None:
        _, ax = plt.subplots(figsize=(6.0, 4.0), layout="constrained")
    place = np.arange(len(table.cp))
    ax.plot(place, table.rel_error, color="0.6", marker=".", label="training rows")
    if table.xerror is not None and table.xstd is not None:
        ax.errorbar(
            place, table.xerror, table.xstd, color="C0", marker="o", markersize=4, capsize=2,
            label="held-out rows, with standard error",
        )  # fmt: skip
        least = int(np.argmin(table.xerror))
        bound = table.xerror[least] + table.xstd[least]
        ax.axhline(bound, color="C0", linestyle=":", label="minimum + 1 standard error")
        best = table.best("1se")
        ax.plot(best, table.xerror[best], "o", markersize=12, fillstyle="none", color="C3")
    _name_places(ax, table)
    ax.set_ylabel("risk relative to the root")
    ax.set_ylim(bottom=0.0)
    ax.legend(frameon=False)
    return ax


def _name_places(ax, table):
    """Label some subtrees by their leaves (below) and the complexities between them (above)."""
    halfway = np.append(np.inf, np.sqrt(table.cp[:-1] * table.cp[1:]))
    shown = np.unique(np.linspace(0, len(table.cp) - 1, 10).round().astype(int))
    ax.set_xticks(shown, [str(table.n_splits[i] + 1) for i in shown])
    ax.set_xlabel("leaves")
    above = ax.secondary_xaxis("top")
    some = shown[::2]  # these labels are longer
    above.set_xticks(some, ["inf" if i == 0 else f"{halfway[i]:.2g}" for i in some])
    above.set_xlabel("complexity (cp)")
