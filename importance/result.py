"""What an importance is reported as: a value per feature, with what stands behind it."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class Importances:
    """Importance of every feature, with its uncertainty.

    Attributes
    ----------
    measure : str
        Name of the function that computed it.
    values : ndarray of shape (n_features,), float64
    standard_error : ndarray of shape (n_features,), float64
        Of `values`; `uncertainty` says over what.
    per_tree : ndarray of shape (n_trees, n_features), float64
        What each tree says; nan in trees that say nothing.
    feature_names : ndarray of shape (n_features,), str
    unit : str
        What the values count.
    uncertainty : str
        What would vary: what the standard error was taken over.
    bias : str
        The known bias of the measure.
    """

    measure: str
    values: np.ndarray
    standard_error: np.ndarray
    per_tree: np.ndarray
    feature_names: np.ndarray
    unit: str
    uncertainty: str
    bias: str

    def z_score(self):
        """Value over standard error; nan where the latter is 0.

        Over trees it grows with the square root of their number: no p-value follows from it
        (Strobl and Zeileis 2008).

        Returns
        -------
        ndarray of shape (n_features,), float64
        """
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(self.standard_error > 0.0, self.values / self.standard_error, np.nan)

    def to_frame(self):
        """A pandas.DataFrame, one row per feature, the most important first."""
        import pandas as pd

        frame = pd.DataFrame(
            {"importance": self.values, "standard_error": self.standard_error},
            index=pd.Index(self.feature_names, name="feature"),
        )
        return frame.sort_values("importance", ascending=False, kind="stable")

    def plot(self, ax=None, max_features=30):
        """Bars with one standard error to either side, the most important feature on top.

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
        import matplotlib.pyplot as plt

        shown = np.argsort(-self.values, kind="stable")[:max_features][::-1]
        if ax is None:
            _, ax = plt.subplots(figsize=(7, 1.2 + 0.25 * len(shown)), layout="constrained")
        position = np.arange(len(shown))
        ax.barh(
            position, self.values[shown], xerr=self.standard_error[shown],
            color="#4878a8", ecolor="#333333", capsize=2,
        )  # fmt: skip
        ax.set_yticks(position, self.feature_names[shown])
        ax.set_ylim(-0.6, len(shown) - 0.4)
        ax.axvline(0.0, color="#333333", linewidth=0.8)
        ax.set_xlabel(f"{self.unit}\n(bar: ± 1 standard error {self.uncertainty})")
        n_all = len(self.values)
        some = f": the {len(shown)} most important of {n_all}" if len(shown) < n_all else ""
        ax.set_title(self.measure + some)
        ax.spines[["top", "right"]].set_visible(False)
        return ax

    def __repr__(self):
        order = np.argsort(-self.values, kind="stable")
        leaders = ", ".join(
            f"{self.feature_names[j]} {self.values[j]:.4g} ± {self.standard_error[j]:.2g}"
            for j in order[:5]
        )
        more = ", ..." if len(order) > 5 else ""
        return f"<Importances {self.measure}: {leaders}{more}>"


def mean_and_error(per_tree):
    """Mean over trees and its standard error, sqrt((mean d^2 - mean(d)^2) / T).

    Rows of nan are left out. (The form of Breiman and Cutler, and of R's randomForest.)

    Parameters
    ----------
    per_tree : ndarray of shape (n_trees, n_features)

    Returns
    -------
    mean, standard_error : ndarray of shape (n_features,)
    """
    known = per_tree[~np.isnan(per_tree).any(axis=1)]
    return known.mean(axis=0), known.std(axis=0) / np.sqrt(len(known))
