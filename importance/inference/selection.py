"""All-relevant selection: the features that are more important than the best of their shadows."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import bdtr

from importance.core.adoption import of_fitted_forest
from importance.core.fitted_forest import names_of
from importance.core.ordering import descending
from importance.inference.p_values import holm
from importance.inference.refit import Measure
from importance.inference.shadow import measure_with_shadows

CONFIRMED, TENTATIVE, REJECTED = "confirmed", "tentative", "rejected"
METHODS = {"maximum", "boruta"}


@dataclass(frozen=True, eq=False)
class Selection:
    """Which features are relevant.

    Attributes
    ----------
    feature_names : ndarray of shape (n_features,), str
    decision : ndarray of shape (n_features,), str
        "confirmed", "tentative" or "rejected".
    p_values : ndarray of shape (n_features,), float64
        Adjusted for the number of features; a feature is confirmed where it is alpha at most.
    hits : ndarray of shape (n_features,), int64
        Rounds in which the feature was more important than every shadow.
    rounds : ndarray of shape (n_rounds, n_features), float64
        Importances of the features.
    best_shadow : ndarray of shape (n_rounds,), float64
        The largest importance of a shadow.
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
        """Mask of the features that are relevant, (n_features,)."""
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
    """The features that are more important than noise, all of them, not the fewest that suffice.

    In every round the forest is refitted beside permuted copies of all features, their shadows
    (see `shadow`); a feature has a hit where it is more important than every shadow (Kursa and
    Rudnicki 2010, Boruta). Unlike there the importance is measured out of bag, all features stay
    to the last round, so that the best shadow remains the best of as many, and the tests are made
    once, after it, so that no correction for looking at every round is needed.

    Boruta tests hits against one half. But rounds share the data: a feature without information
    that looks like some in this sample does so in every round, and more rounds, or more trees,
    make it the more certain, however small alpha is (`python -m benchmarks calibration --only
    selection` counts how often). The default method therefore asks in how many rounds the best
    shadow is as large. It is the stricter of the two: a weak feature is tentative rather than
    confirmed.

    Parameters
    ----------
    %(refitted)s
    method : {"maximum", "boruta"}, default="maximum"
        "maximum": p = (1 + misses) / (1 + n_rounds), a maxT p-value: the best shadow is drawn
        from the maximum without information, so p is adjusted for the number of features. "boruta":
        p is that of a two-sided binomial test of the hits against 1/2, adjusted for the number of
        features by Holm's method.
    alpha : float, default=0.05
        A feature is confirmed where p <= alpha, and rejected where it is not and the binomial
        test against 1/2 finds too few hits; else it is tentative.
    n_rounds : int, default=99
        Refits. "maximum" needs 1 / alpha - 1 at least.
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
        If too few rounds are asked for to confirm anything, the forest cannot be refitted (see
        `Refits.of`), or what `measure` raises.

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
    if not 0.0 < alpha < 1.0:
        raise ValueError(f"alpha={alpha!r} must lie between 0 and 1.")
    least = int(np.ceil(1.0 / alpha - 1.0 - 1e-9)) if method == "maximum" else 1
    if n_rounds < least:
        raise ValueError(
            f"n_rounds={n_rounds} cannot confirm anything at alpha={alpha}; play {least} at least."
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
