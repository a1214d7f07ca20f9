"""Which features are surrogates for which: a matrix, and its picture."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from cart.primitives.progress import watched
from importance.core.docs import with_shared_parameters
from importance.core.fitted_forest import names_of
from importance.core.numbers import leading
from importance.core.plots import as_written, draw_matrix, room_of, short_names
from importance.impurity.stand_ins import with_surrogates


@dataclass(frozen=True, eq=False)
class Masking:
    """How well each feature (column) replaces another (row) in its splits, as a surrogate.

    Attributes
    ----------
    values : ndarray of shape (n_features, n_features), float64
        values[i, j] is the mean `adj` of feature j over the splits on feature i, weighted by their
        improvement: 1 if j sends every row the same way as i, 0 if it is never a surrogate. nan on
        the diagonal, and in rows of features that no tree splits on.
    standard_error : ndarray of shape (n_features, n_features), float64
        Standard error of `values`, over trees; nan for a single tree.
    improvement : ndarray of shape (n_features,), float64
        Sum of the improvements of the splits on each feature, averaged over trees.
    feature_names : ndarray of shape (n_features,), str

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from cartwood import RandomForestRegressor, masking
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> forest = RandomForestRegressor(50, max_features=1 / 3, surrogates="auto", random_state=0)
    >>> masking(forest.fit(X, y)).to_frame().head(3).round(2)
      feature stand_in   adj  standard_error
    0      s1       s2  0.49            0.02
    1      s2       s1  0.47            0.02
    2      s4       s3  0.47            0.02
    """

    values: np.ndarray
    standard_error: np.ndarray
    improvement: np.ndarray
    feature_names: np.ndarray

    def to_frame(self) -> Any:
        """A pandas.DataFrame of pairs (a feature and its stand-in), the highest `adj` first."""
        import pandas as pd

        i, j = np.nonzero(np.nan_to_num(self.values) > 0.0)
        frame = pd.DataFrame({
            "feature": self.feature_names[i], "stand_in": self.feature_names[j],
            "adj": self.values[i, j], "standard_error": self.standard_error[i, j],
        })  # fmt: skip
        return frame.sort_values("adj", ascending=False, kind="stable", ignore_index=True)

    @as_written
    def plot(self, ax: Any = None, max_features: int = 30) -> Any:
        """Draw the matrix: the darker, the better the column stands in for the row.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to draw on; by default those of a new figure.
        max_features : int, default=30
            Draw at most this many features: those whose splits improve most.

        Returns
        -------
        matplotlib.axes.Axes
        """
        shown = leading(self.improvement, max_features)[::-1]
        names = short_names(self.feature_names[shown])
        side = 1.2 + room_of(names) + 0.28 * len(shown)
        drawn = np.ma.masked_invalid(self.values[np.ix_(shown, shown)])
        ax, scale = draw_matrix(ax, drawn, names, side, cmap="Blues", vmin=0, vmax=1)
        scale.set_label("adj")
        ax.set_facecolor("#eeeeee")  # shown where values are nan
        ax.set_xlabel("stands in")
        ax.set_ylabel("for the splits on")
        if len(shown) < len(self.values):
            n_all = len(self.values)
            ax.set_title(f"the {len(shown)} of {n_all} features that improve most", fontsize=9)
        return ax

    def __repr__(self) -> str:
        pairs = self.to_frame().head(5).itertuples()
        said = ", ".join(f"{pair.stand_in} for {pair.feature} {pair.adj:.2f}" for pair in pairs)
        return f"<Masking {said or 'none'}>"


@with_shared_parameters
def masking(model: Any, *, verbose: int = 0, callback: Callable | None = None) -> Masking:
    """Find which features can replace which, by the surrogates of a tree or forest.

    A feature that is hardly ever split on may be as good as another that is: it is masked by it. If
    two features carry the same information, each can replace the other. Only the surrogates that
    were kept count (the best k of every node), with their agreement on the rows that the trees were
    grown on; a little agreement arises by chance.

    Parameters
    ----------
    model : fitted tree or forest
        Fitted with surrogates=k.
    %(reported)s

    Returns
    -------
    Masking

    Raises
    ------
    TypeError, ValueError
        If the model is not a fitted tree or forest, or has no surrogates.

    See Also
    --------
    surrogate_importance : an importance that credits both features.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from cartwood import RandomForestRegressor, masking
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> forest = RandomForestRegressor(50, max_features=1 / 3, surrogates="auto", random_state=0)
    >>> masking(forest.fit(X, y))
    <Masking s2 for s1 0.49, s1 for s2 0.47, s3 for s4 0.47, s4 for s3 0.34, s2 for s4 0.34>
    """
    given, trees = with_surrogates(model)
    n_features, n_trees = given.n_features_in_, len(trees)
    lent, lent_squared, lent_own = np.zeros((3, n_features, n_features))
    own, own_squared = np.zeros((2, n_features))
    for tree in watched(trees, n_trees, "tree", verbose, callback):
        found = tree.surrogates
        is_split = tree.feature >= 0
        of_tree = np.bincount(tree.feature[is_split], found.primary[is_split], n_features)
        counts = np.diff(found.start)
        cell = np.repeat(tree.feature, counts).astype(np.int64) * n_features + found.feature
        credit = np.repeat(found.primary, counts) * found.adj
        by_pair = np.bincount(cell, credit, n_features**2).reshape(n_features, n_features)
        lent += by_pair
        lent_squared += by_pair**2
        lent_own += by_pair * of_tree[:, np.newaxis]
        own += of_tree
        own_squared += of_tree**2
    with np.errstate(invalid="ignore", divide="ignore"):
        whole = own[:, np.newaxis]
        values = lent / whole
        # Error of a ratio of sums over trees, whose residuals lent - values * own sum to 0.
        residual = lent_squared - 2.0 * values * lent_own + values**2 * own_squared[:, np.newaxis]
        error = np.sqrt(np.maximum(residual, 0.0)) / whole
    np.fill_diagonal(values, np.nan)
    error[np.isnan(values)] = np.nan
    if n_trees == 1:
        error[:] = np.nan
    return Masking(values, error, own / n_trees, names_of(given))
