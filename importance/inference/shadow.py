"""How large an importance noise reaches: a copy of every feature whose rows are permuted."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import hstack, issparse

from importance.core.adoption import of_fitted_forest
from importance.core.docs import with_shared_parameters
from importance.core.fitted_forest import names_of, take_rows
from importance.core.numbers import significant
from importance.core.ordering import descending, leading, list_leaders
from importance.core.plots import as_written, plot_bars
from importance.core.result import Importances
from importance.inference.refit import Measure, Refits

BIAS = (
    "Of forests with twice as many columns, in which every feature competes with the shadows: "
    "values differ from those of the forest without them."
)


@dataclass(frozen=True, eq=False)
class Shadows:
    """Importance of every feature beside that of its shadow.

    Attributes
    ----------
    importances, shadows : Importances
        Of the features and of their shadows, means over rounds; standard errors over rounds.
    rounds, shadow_rounds : ndarray of shape (n_rounds, n_features), float64
        Round by round.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from cartwood import RandomForestRegressor, shadow
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> forest = RandomForestRegressor(50, max_features=1 / 3, random_state=0).fit(X, y)
    >>> found = shadow(forest, X, y, n_rounds=2, random_state=0)
    >>> found.rounds.shape
    (2, 10)
    """

    importances: Importances
    shadows: Importances
    rounds: np.ndarray
    shadow_rounds: np.ndarray

    def to_frame(self) -> Any:
        """A pandas.DataFrame, one row per feature, the most important first."""
        frame = self.importances.to_frame()
        order = descending(self.importances.values)
        frame["shadow"] = self.shadows.values[order]
        frame["shadow_standard_error"] = self.shadows.standard_error[order]
        frame["largest_shadow"] = self.shadow_rounds.max(axis=0)[order]
        return frame

    @as_written
    def plot(self, ax: Any = None, max_features: int = 30) -> Any:
        """Bars of the features, and what their shadows reached: the mean, and all rounds.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; a new figure by default.
        max_features : int, default=30
            Leave out all but so many of the most important; the title says so.

        Returns
        -------
        matplotlib.axes.Axes
        """
        ax = plot_bars(self.importances, ax, max_features)
        shown = leading(self.importances.values, max_features)
        position = np.arange(len(shown))
        reached = self.shadow_rounds[:, shown]
        low, high = reached.min(axis=0), reached.max(axis=0)
        ax.hlines(position, low, high, color="#d98032", linewidth=4, alpha=0.5, zorder=3)
        ax.plot(
            self.shadows.values[shown], position, "D", color="#a85510", markersize=4, zorder=4,
            linestyle="none", label="its shadow: mean, and range over rounds",
        )  # fmt: skip
        ax.axvline(
            self.shadow_rounds.max(axis=1).mean(), color="#a85510", linestyle="--", linewidth=1,
            label="largest shadow of all features, mean over rounds",
        )  # fmt: skip
        ax.legend(loc="lower right", frameon=False, fontsize="small")
        return ax

    def __repr__(self) -> str:
        found = self.importances
        texts = [
            f"{significant(value)} (shadow {significant(shadow, 2)})"
            for value, shadow in zip(found.values, self.shadows.values, strict=True)
        ]
        leaders = list_leaders(found.feature_names, found.values, texts)
        return f"<Shadows of {found.measure}: {leaders}>"


@with_shared_parameters
@of_fitted_forest
def shadow(
    forest: Any, X: Any, y: Any, *, measure: Measure | None = None, n_rounds: int = 10,
    random_state: Any = None, n_jobs: int | None = None, verbose: int = 0,
    callback: Callable | None = None,
) -> Shadows:  # fmt: skip
    """Importance of every feature beside that of a noise copy of it.

    In every round the rows of the whole table are permuted once and stand beside it as so many
    further columns, its shadows: they have the distribution of the features and their
    correlations among each other, and no information about y (Kursa and Rudnicki 2010, who permute
    each column by itself). The forest is refitted on both and measured.

    Parameters
    ----------
    %(refitted)s
    measure : callable, default=None
        `measure(forest, X, y)` returns Importances of every column; exact `oob_permutation` with
        the Brier score or squared error by default. (Of `mdi`: `lambda forest, X, y: mdi(forest)`.)
    n_rounds : int, default=10
        Refits; at least 2.
    %(random_state)s
    %(progress)s

    Returns
    -------
    Shadows

    %(refit_errors)s

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from cartwood import RandomForestRegressor, shadow
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> forest = RandomForestRegressor(50, max_features=1 / 3, random_state=0).fit(X, y)
    >>> shadow(forest, X, y, n_rounds=2, random_state=0)
    <Shadows of oob_permutation: s5 1,470 (shadow 25), bmi 1,320 (shadow -0.28), bp 392 (shadow
     -8.3), s4 197 (shadow 3.4), s6 169 (shadow -15), ...>
    """
    if n_rounds < 2:
        raise ValueError(f"n_rounds={n_rounds} must be at least 2, to have a standard error.")
    rounds, shadow_rounds, example = measure_with_shadows(
        forest, X, y, measure, n_rounds, random_state, n_jobs, verbose, callback
    )
    names = names_of(forest)
    return Shadows(
        _mean_of(rounds, names, example),
        _mean_of(shadow_rounds, np.array([f"{name} (shadow)" for name in names], object), example),
        rounds,
        shadow_rounds,
    )


def measure_with_shadows(
    forest: Any, X: Any, y: Any, measure: Measure | None, n_rounds: int, random_state: Any,
    n_jobs: int | None, verbose: int, callback: Callable | None,
) -> tuple[np.ndarray, np.ndarray, Importances]:  # fmt: skip
    """Refit with shadows, and measure; the parameters are those of `shadow`.

    Returns the importances of features and shadows, (n_rounds, n_features) each, and the last ones
    as they were measured.
    """
    refits = Refits.of(forest, X, y, measure)
    X = take_rows(forest, X)  # numbers: a DataFrame's categories as codes
    model = refits.model
    if getattr(model, "categorical_features", None) is not None:
        model.set_params(categorical_features=np.tile(forest.is_categorical_, 2))
    if model.monotonic_cst is not None:
        model.set_params(monotonic_cst=np.tile(model.monotonic_cst, 2))
    n_samples, n_features = X.shape

    def add_shadows(stream):
        shadows = X[stream.permutation(n_samples)]
        return {"X": hstack((X, shadows)).tocsr() if issparse(X) else np.hstack((X, shadows))}

    def check(found):
        if found.values.shape != (2 * n_features,):
            raise ValueError(
                f"measure gave {len(found.values)} importances of {2 * n_features} columns; a "
                "shadow is that of a single column: measure without groups."
            )
        return replace(found, per_tree=None, per_row=None)

    found = refits.measure_each(
        add_shadows, check, n_rounds, random_state, n_jobs, verbose, callback
    )
    values = np.array([each.values for each in found])
    return values[:, :n_features], values[:, n_features:], found[-1]


def _mean_of(rounds, names, example):
    return Importances(
        example.measure, rounds.mean(axis=0), rounds.std(axis=0, ddof=1) / np.sqrt(len(rounds)),
        None, names, unit=example.unit, uncertainty="over refits with shadows",
        loss=example.loss,
        bias=f"{BIAS} {example.bias}",
    )  # fmt: skip
