"""Shadows, copies of features with permuted rows: how important noise is, and what exceeds it."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
from scipy.sparse import hstack, issparse
from scipy.special import bdtr

from importance.core.adoption import of_fitted_forest
from importance.core.fitted_forest import names_of, take_rows
from importance.core.given import require_count
from importance.core.numbers import descending, leading, list_leaders, significant
from importance.core.plots import as_written, plot_bars
from importance.core.result import Importances
from importance.inference.p_values import holm
from importance.inference.refit import Measure, Refits

CONFIRMED, TENTATIVE, REJECTED = "confirmed", "tentative", "rejected"
METHODS = {"maximum", "boruta"}
BIAS = (
    "Values come from forests with twice as many columns, in which every feature competes with "
    "the shadows; they differ from those of the forest without them."
)


@dataclass(frozen=True, eq=False)
class Shadows:
    """Importance of every feature next to that of its shadow.

    Attributes
    ----------
    importances, shadows : Importances
        Of the features and of their shadows: means over rounds, with standard errors over rounds.
    rounds, shadow_rounds : ndarray of shape (n_rounds, n_features), float64
        The same in each round.

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
        """Bars of the features, with the mean and the range over rounds of their shadows.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; a new figure by default.
        max_features : int, default=30
            Show only this many of the most important features; the title says so.

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


@of_fitted_forest
def shadow(
    forest: Any, X: Any, y: Any, *, measure: Measure | None = None, n_rounds: int = 10,
    random_state: Any = None, n_jobs: int | None = None, verbose: int = 0,
    callback: Callable | None = None,
) -> Shadows:  # fmt: skip
    """Importance of every feature next to that of a noise copy of it.

    In every round the rows of the whole table are permuted once and appended as further columns,
    the shadows. These have the distribution of the features and the correlations among them, but no
    information about y. (Kursa and Rudnicki 2010 permute each column by itself.) The forest is
    refitted on both and measured.

    Parameters
    ----------
    %(refitted)s
    measure : callable, default=None
        `measure(forest, X, y)` returns Importances of every column; exact `oob_permutation` with
        the Brier score or squared error by default. (For `mdi`: `lambda forest, X, y: mdi(forest)`)
    n_rounds : int, default=10
        Number of refits; at least 2.
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
    require_count("n_rounds", n_rounds, 2)  # to have a standard error
    rounds, shadow_rounds, example = measure_with_shadows(
        forest, X, y, measure, n_rounds, random_state, n_jobs, verbose, callback
    )
    names = names_of(forest)
    found = _mean_of(rounds, names, example)
    return Shadows(
        found, _mean_of(shadow_rounds, names + " (shadow)", example), rounds, shadow_rounds
    )


def measure_with_shadows(
    forest: Any, X: Any, y: Any, measure: Measure | None, n_rounds: int, random_state: Any,
    n_jobs: int | None, verbose: int, callback: Callable | None,
) -> tuple[np.ndarray, np.ndarray, Importances]:  # fmt: skip
    """Refit with shadows and measure; parameters as in `shadow`.

    Returns the importances of features and of shadows, (n_rounds, n_features) each, and the
    Importances of the last round.
    """
    refits = Refits.of(forest, X, y, measure)
    X = take_rows(forest, X)  # numbers: categories of a DataFrame become codes
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
                f"measure returned {len(found.values)} importances for {2 * n_features} columns, "
                "but each column needs its own; use a measure without groups."
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


@dataclass(frozen=True, eq=False)
class Selection:
    """Decision on which features are relevant, from `select_features`.

    Attributes
    ----------
    feature_names : ndarray of shape (n_features,), str
    decision : ndarray of shape (n_features,), str
        "confirmed", "tentative" or "rejected".
    p_values : ndarray of shape (n_features,), float64
        Adjusted for the number of features; a feature is confirmed if it is at most alpha.
    hits : ndarray of shape (n_features,), int64
        Rounds in which the feature was more important than every shadow.
    rounds : ndarray of shape (n_rounds, n_features), float64
        Importances of the features in each round.
    best_shadow : ndarray of shape (n_rounds,), float64
        The largest importance of a shadow in each round.
    method : str
    alpha : float

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from cartwood import RandomForestRegressor, select_features
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> forest = RandomForestRegressor(50, max_features=1 / 3, random_state=0).fit(X, y)
    >>> found = select_features(forest, X, y, n_rounds=19, random_state=0)
    >>> found.confirmed
    array([False, False,  True,  True, False, False,  True,  True,  True,
            True])
    """

    feature_names: np.ndarray
    decision: np.ndarray
    p_values: np.ndarray
    hits: np.ndarray
    rounds: np.ndarray
    best_shadow: np.ndarray
    method: str
    alpha: float

    @property
    def confirmed(self) -> np.ndarray:
        """Mask of the confirmed features, (n_features,)."""
        return self.decision == CONFIRMED

    @property
    def tentative(self) -> np.ndarray:
        """Mask of the features that are not decided, (n_features,)."""
        return self.decision == TENTATIVE

    def to_frame(self) -> Any:
        """A pandas.DataFrame, one row per feature, the most important first."""
        import pandas as pd

        frame = pd.DataFrame(
            {
                "decision": self.decision,
                "p_value": self.p_values,
                "hits": self.hits,
                "importance": self.rounds.mean(axis=0),
            },
            index=pd.Index(self.feature_names, name="feature"),
        )
        return frame.sort_values("importance", ascending=False, kind="stable")

    def __repr__(self) -> str:
        order = descending(self.rounds.mean(axis=0))
        names = {
            decision: ", ".join(
                str(self.feature_names[j]) for j in order if self.decision[j] == decision
            )
            for decision in (CONFIRMED, TENTATIVE)
        }
        n_rejected = np.count_nonzero(self.decision == REJECTED)
        return (
            f"<Selection by {self.method}, {len(self.rounds)} rounds: confirmed "
            f"[{names[CONFIRMED]}], tentative [{names[TENTATIVE]}], {n_rejected} rejected>"
        )


@of_fitted_forest
def select_features(
    forest: Any, X: Any, y: Any, *, method: str = "maximum", alpha: float = 0.05,
    n_rounds: int = 99, measure: Measure | None = None, random_state: Any = None,
    n_jobs: int | None = None, verbose: int = 0, callback: Callable | None = None,
) -> Selection:  # fmt: skip
    """Find all features that are more important than noise, not the smallest sufficient set.

    In every round the forest is refitted together with permuted copies of all features, their
    shadows (see `shadow`). A feature scores a hit if it is more important than every shadow (Kursa
    and Rudnicki 2010, Boruta). In contrast to Boruta, the importance is measured out of bag; all
    features stay until the last round, so that the best shadow is always the best of equally many;
    and the tests are made once, after the last round, so that no correction for repeated looks is
    needed.

    Boruta tests the hits against one half. But all rounds share the data: a feature without
    information that looks informative in this sample does so in every round, and more rounds or
    more trees only make that more certain, however small alpha is (`python -m benchmarks
    calibration --only selection` counts how often). The default method therefore asks in how many
    rounds the best shadow is at least as important. It is the stricter of the two: a weak feature
    is tentative rather than confirmed.

    Parameters
    ----------
    %(refitted)s
    method : {"maximum", "boruta"}, default="maximum"
        "maximum": p = (1 + misses) / (1 + n_rounds), a maxT p-value. The best shadow is a draw of
        the maximum without information, so p is adjusted for the number of features. "boruta":
        p is that of a two-sided binomial test of the hits against 1/2, adjusted for the number of
        features by Holm's method.
    alpha : float, default=0.05
        A feature is confirmed if p <= alpha. Otherwise it is rejected if the binomial test against
        1/2 finds too few hits, and tentative if not.
    n_rounds : int, default=99
        Number of refits. "maximum" needs at least 1 / alpha - 1, "boruta" at least
        1 + log2(n_features / alpha).
    measure : callable, default=None
        `measure(forest, X, y)` returns Importances of every column; exact `oob_permutation` with
        the Brier score or squared error by default.
    %(random_state)s
    %(progress)s

    Returns
    -------
    Selection

    Raises
    ------
    TypeError, ValueError
        If the rounds are too few to confirm anything, if the forest cannot be refitted (see
        `Refits.of`), or whatever `measure` raises.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from cartwood import RandomForestRegressor, select_features
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> forest = RandomForestRegressor(50, max_features=1 / 3, random_state=0).fit(X, y)
    >>> select_features(forest, X, y, n_rounds=19, random_state=0)
    <Selection by maximum, 19 rounds: confirmed [s5, bmi, bp, s4, s3, s6], tentative [s2, s1,
     age], 1 rejected>
    """
    if method not in METHODS:
        raise ValueError(f"method={method!r} is not one of {sorted(METHODS)}.")
    if not (isinstance(alpha, Real) and 0.0 < alpha < 1.0):
        raise ValueError(f"alpha={alpha!r} must lie between 0 and 1.")
    require_count("n_rounds", n_rounds)
    least = 1.0 / alpha - 1.0
    if method == "boruta":  # the smallest possible p is n_features * 2 / 2**n_rounds
        least = 1.0 + np.log2(forest.n_features_in_ / alpha)
    least = int(np.ceil(least - 1e-9))
    if n_rounds < least:
        raise ValueError(
            f"n_rounds={n_rounds} cannot confirm anything at alpha={alpha}; use at least {least}."
        )
    rounds, shadow_rounds, _ = measure_with_shadows(
        forest, X, y, measure, n_rounds, random_state, n_jobs, verbose, callback
    )
    best_shadow = shadow_rounds.max(axis=1)
    hits = (rounds > best_shadow[:, np.newaxis]).sum(axis=0)
    p_values, decision = decide(hits, n_rounds, alpha, method)
    return Selection(names_of(forest), decision, p_values, hits, rounds, best_shadow, method, alpha)


def decide(
    hits: np.ndarray, n_rounds: int, alpha: float, method: str
) -> tuple[np.ndarray, np.ndarray]:
    """P-values and decisions from the number of hits of each feature, see `select_features`."""
    too_few, too_many = bdtr(hits, n_rounds, 0.5), bdtr(n_rounds - hits, n_rounds, 0.5)
    if method == "boruta":
        p_values = holm(np.minimum(1.0, 2.0 * too_many))
    else:
        p_values = (1.0 + n_rounds - hits) / (1.0 + n_rounds)
    is_rejected = holm(np.minimum(1.0, 2.0 * too_few)) <= alpha
    decision = np.where(is_rejected, REJECTED, TENTATIVE)
    return p_values, np.where(p_values <= alpha, CONFIRMED, decision)
