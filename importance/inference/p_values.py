"""P-values of importances from refits on a permuted target."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from importance.core.adoption import of_fitted_forest
from importance.core.given import require_count
from importance.core.numbers import descending, list_leaders, past_rounding, significant
from importance.core.result import Importances
from importance.inference.refit import Measure, Refits


@dataclass(frozen=True, eq=False)
class Significance:
    """P-values of the importances of all features.

    Attributes
    ----------
    importances : Importances
        The importances that were tested.
    p_values : ndarray of shape (n_features,), float64
        P-value of each feature by itself.
    family_wise : ndarray of shape (n_features,), float64, or None
        Adjusted so that the smallest one is below alpha with probability at most alpha if no
        feature has any information (given the others, if that is what is tested).
    false_discovery : ndarray of shape (n_features,), float64
        Adjusted by Benjamini and Hochberg (1995), or in `conditional_test` by Benjamini and
        Yekutieli (2001): the expected share of false discoveries among the features whose value is
        not larger.
    null : ndarray of shape (n_repeats, n_features) or (n_null,), float64, or None
        Importances without information that the observed ones were compared with: of each feature
        by itself, or of all features pooled; None if the test needs none.
    method : str

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from cartwood import RandomForestRegressor, permutation_test
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> forest = RandomForestRegressor(50, max_features=1 / 3, random_state=0).fit(X, y)
    >>> found = permutation_test(forest, X, y, n_repeats=9, random_state=0)
    >>> found.p_values
    array([0.3, 0.7, 0.1, 0.1, 0.6, 0.5, 0.2, 0.1, 0.1, 0.2])
    """

    importances: Importances
    p_values: np.ndarray
    family_wise: np.ndarray | None
    false_discovery: np.ndarray
    null: np.ndarray | None
    method: str

    @property
    def feature_names(self) -> np.ndarray:
        """Names of the features, (n_features,) str."""
        return self.importances.feature_names

    def to_frame(self) -> Any:
        """A pandas.DataFrame, one row per feature, the most important first."""
        frame = self.importances.to_frame()
        order = descending(self.importances.values)
        frame["p_value"] = self.p_values[order]
        if self.family_wise is not None:
            frame["family_wise"] = self.family_wise[order]
        frame["false_discovery"] = self.false_discovery[order]
        return frame

    def __repr__(self) -> str:
        values, name = self.importances.values, self.importances.measure
        texts = [
            f"{significant(value)} (p = {p:.2g})"
            for value, p in zip(past_rounding(values, values), self.p_values, strict=True)
        ]
        leaders = list_leaders(self.feature_names, values, texts)
        return f"<Significance of {name}, {self.method}: {leaders}>"


@of_fitted_forest
def permutation_test(
    forest: Any, X: Any, y: Any, *, measure: Measure | None = None, n_repeats: int = 199,
    random_state: Any = None, n_jobs: int | None = None, verbose: int = 0,
    callback: Callable | None = None,
) -> Significance:  # fmt: skip
    """P-values from permuting y: how often a forest without information does as well.

    y is permuted n_repeats = B times, and each time the forest is refitted and measured (Altmann
    et al. 2010, without fitting a distribution): p_j = (1 + #{null_bj >= I_j}) / (1 + B). The same
    refits give family-wise p-values (single-step maxT, Westfall and Young 1993), which count
    #{max_k z_bk >= z_j} instead. Here z = (importance - m_j) / s_j, where the mean m_j and standard
    deviation s_j are taken over the B null importances and I_j together. Benjamini-Hochberg
    adjusted values are computed from the p-values.

    A permuted y is independent of all features at once; the p-values are exact under this
    hypothesis. If some features are strong, the p-values of the others are approximate. Weights of
    the fit are permuted along with y, so that they too are independent of the features.

    Parameters
    ----------
    %(refitted)s
    %(measure)s
    n_repeats : int, default=199
        Number of refits, B; no p-value is below 1 / (1 + B).
    %(random_state)s
    %(progress)s

    Returns
    -------
    Significance

    %(refit_errors)s

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from cartwood import RandomForestRegressor, permutation_test
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> forest = RandomForestRegressor(50, max_features=1 / 3, random_state=0).fit(X, y)
    >>> permutation_test(forest, X, y, n_repeats=9, random_state=0)
    <Significance of oob_permutation, permuting y, 9 refits: s5 1,570 (p = 0.1), bmi 1,470 (p =
     0.1), bp 623 (p = 0.1), s4 433 (p = 0.1), s3 239 (p = 0.2), ...>
    """
    require_count("n_repeats", n_repeats)
    refits = Refits.of(forest, X, y, measure)
    found = refits.measure(forest, X, y)

    def permute(stream):
        order, weight = stream.permutation(len(refits.y)), refits.weight
        # Weights may depend on y, as class weights do: the null forests must keep that relation.
        return {"y": refits.y[order], "weight": None if weight is None else weight[order]}

    null = np.array(
        refits.measure_each(
            permute, lambda each: each.values, n_repeats, random_state, n_jobs, verbose, callback
        )
    )
    p_values = share_as_large(null, found.values)
    return Significance(
        found, p_values, family_wise_p_values(null, found.values),
        false_discovery_p_values(p_values), null, f"permuting y, {n_repeats} refits",
    )  # fmt: skip


def share_as_large(null: np.ndarray, values: np.ndarray) -> np.ndarray:
    """P-values (1 + #{null >= value}) / (1 + B), by column of null, (B, n_features) or (B, 1)."""
    slack = 1e-10 * np.abs(values)  # equal values may differ in rounding, by the order of sums
    if null.shape[1] == 1:  # all pairs of a wide table's values would not fit into memory
        known = np.sort(null[~np.isnan(null)])
        n_as_large = len(known) - np.searchsorted(known, values - slack)
    else:
        n_as_large = (null >= values - slack).sum(axis=0)
    return (1 + n_as_large) / (1 + len(null))


def family_wise_p_values(null: np.ndarray, values: np.ndarray) -> np.ndarray:
    """P-values from the maximum of the standardised importances, see `permutation_test`.

    `null` is (B, n_features); a feature that is never used has z = 0.
    """
    # Null and observed importances are treated alike, so that without information each row is as
    # likely to be the largest as any other: the test is exact.
    z = np.vstack((values, null))
    mean, deviation = z.mean(axis=0), z.std(axis=0)
    z = np.divide(z - mean, deviation, out=np.zeros_like(z), where=deviation > 1e-10 * np.abs(mean))
    return share_as_large(z[1:].max(axis=1, keepdims=True), z[0])


def holm(p_values: np.ndarray) -> np.ndarray:
    """P-values adjusted by Holm (1979) for the number of tests."""
    n = len(p_values)
    order = np.argsort(p_values, kind="stable")
    adjusted = np.empty(n)
    adjusted[order] = np.maximum.accumulate((n - np.arange(n)) * p_values[order])
    return np.minimum(adjusted, 1.0)


def false_discovery_p_values(
    p_values: np.ndarray, method: Literal["bh", "by"] = "bh"
) -> np.ndarray:
    """P-values adjusted by Benjamini and Hochberg, or Benjamini and Yekutieli, (n_features,)."""
    from scipy.stats import false_discovery_control  # slow to import

    return false_discovery_control(p_values, method=method)
