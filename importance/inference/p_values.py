"""Which importances are more than chance: p-values from refits on a target that means nothing."""

from dataclasses import dataclass

import numpy as np

from importance.core.docs import with_shared_parameters
from importance.core.result import Importances
from importance.inference.refit import Refits, default_measure, for_each, seeds_of


@dataclass(frozen=True, eq=False)
class Significance:
    """P-value of every feature.

    Attributes
    ----------
    importances : Importances
        What was tested.
    p_values : ndarray of shape (n_features,), float64
        Of each feature by itself.
    family_wise : ndarray of shape (n_features,), float64, or None
        Adjusted so that the smallest of all is below alpha with probability alpha at most where
        no feature has any information.
    false_discovery : ndarray of shape (n_features,), float64
        Adjusted by Benjamini and Hochberg (1995): the share of false ones expected among the
        features whose value is not larger.
    null : ndarray of shape (n_repeats, n_features) or (n_null,), float64
        Importances without information that they were compared with; of each feature by itself,
        or of all in one.
    method : str
    """

    importances: Importances
    p_values: np.ndarray
    family_wise: np.ndarray | None
    false_discovery: np.ndarray
    null: np.ndarray
    method: str

    @property
    def feature_names(self):
        """(n_features,) str."""
        return self.importances.feature_names

    def to_frame(self):
        """A pandas.DataFrame, one row per feature, the most important first."""
        frame = self.importances.to_frame()
        columns = {"p_value": self.p_values, "family_wise": self.family_wise}
        columns["false_discovery"] = self.false_discovery
        order = np.argsort(-self.importances.values, kind="stable")
        for name, values in columns.items():
            if values is not None:
                frame[name] = values[order]
        return frame

    def __repr__(self):
        order = np.argsort(-self.importances.values, kind="stable")
        leaders = ", ".join(
            f"{self.feature_names[j]} {self.importances.values[j]:.4g} (p = {self.p_values[j]:.2g})"
            for j in order[:5]
        )
        more = ", ..." if len(order) > 5 else ""
        return f"<Significance of {self.importances.measure}, {self.method}: {leaders}{more}>"


@with_shared_parameters
def permutation_test(
    forest, X, y, *, measure=None, n_repeats=199, random_state=None, n_jobs=None, verbose=0,
    callback=None,
):  # fmt: skip
    """P-values by permuting y: how often a forest without information does as well.

    y is permuted n_repeats = B times, each time the forest is refitted and measured (Altmann et
    al. 2010, without fitting a distribution): p_j = (1 + #{null_bj >= I_j}) / (1 + B). The same
    refits give the family-wise p-values (maxT in a single step, Westfall and Young 1993): with
    z = (importance - m_j) / s_j, of which mean m_j and deviation s_j are taken over the B null
    importances and I_j alike, #{max_k z_bk >= z_j} is counted instead; and Benjamini-Hochberg's
    values of the p-values.

    Permuted, y is independent of all features at once: that is the hypothesis the p-values are
    exact under. Beside strong features those of the others are approximate.

    Parameters
    ----------
    %(refitted)s
    %(measure)s
    n_repeats : int, default=199
        Refits, B; no p-value is below 1 / (1 + B).
    %(random_state)s
    %(progress)s

    Returns
    -------
    Significance

    %(refit_errors)s
    """
    if n_repeats < 1:
        raise ValueError(f"n_repeats={n_repeats} must be at least 1.")
    refits = Refits.of(forest, X, y)
    measure = default_measure(forest) if measure is None else measure
    found = measure(forest, X, y)

    def without_information(seed):
        stream = np.random.RandomState(seed)
        permuted = refits.y[stream.permutation(refits.n_samples)]
        return measure(*refits.fit(stream.randint(np.iinfo(np.int32).max), y=permuted)).values

    seeds = seeds_of(random_state, n_repeats)
    null = np.array(for_each(without_information, seeds, n_jobs, verbose, callback))
    p_values = share_as_large(null, found.values)
    return Significance(
        found,
        p_values,
        family_wise_p_values(null, found.values),
        false_discovery_p_values(p_values),
        null,
        f"permuting y, {n_repeats} refits",
    )


def share_as_large(null, values):
    """P-values: (1 + #{null >= value}) / (1 + B), by column.

    Parameters
    ----------
    null : ndarray of shape (B, n_features) or (B, 1)
    values : ndarray of shape (n_features,)

    Returns
    -------
    ndarray of shape (n_features,), float64
    """
    slack = 1e-10 * np.abs(values)  # equal values may differ by the order of their sums
    return (1 + (null >= values - slack).sum(axis=0)) / (1 + len(null))


def family_wise_p_values(null, values):
    """P-values of the maximum of standardised importances, see `permutation_test`.

    Parameters
    ----------
    null : ndarray of shape (B, n_features)
    values : ndarray of shape (n_features,)

    Returns
    -------
    ndarray of shape (n_features,), float64
        1 at most; a feature that is never used has z = 0.
    """
    # The null importances and the observed ones are treated alike, so that without information
    # each row is as likely the largest as any other: the test is exact.
    z = np.vstack((values, null))
    mean, deviation = z.mean(axis=0), z.std(axis=0)
    z = np.divide(z - mean, deviation, out=np.zeros_like(z), where=deviation > 1e-10 * np.abs(mean))
    return share_as_large(z[1:].max(axis=1, keepdims=True), z[0])


def false_discovery_p_values(p_values):
    """Adjusted by Benjamini and Hochberg, (n_features,)."""
    from scipy.stats import false_discovery_control  # slow to import

    return false_discovery_control(p_values)
