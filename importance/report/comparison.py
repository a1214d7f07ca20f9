"""`compare`: all measures of one forest side by side, and in words what their differences mean."""

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from textwrap import fill
from time import perf_counter
from typing import Any

import numpy as np
from scipy.sparse import issparse

from forest.inference.repeated_rows import doubts_on_repeated_rows
from importance.core import plots
from importance.core.adoption import (
    BaggedTrees,
    is_one_of_several,
    of_fitted_forest,
    without_steps,
)
from importance.core.fitted_forest import check_forest
from importance.core.groups import Group, parse_groups
from importance.core.numbers import descending, estimates, leading, ranks_of
from importance.core.result import Importances
from importance.drop_column.drop_column import drop_column
from importance.impurity.debiased import unbiased_mdi
from importance.impurity.mdi import mdi
from importance.permutation.oob import oob_permutation
from importance.report.advice import MOST_NAMED, SHAP, advise, doubts_on_small_targets
from importance.report.find_groups import clusters_of, rank_correlation, require_threshold
from importance.shap import mean_absolute_shap, trees_to_explain

JOINTLY = "jointly"  # permutation of correlated features together
MOST_CORRELATED = 10_000  # features whose correlations are computed: with missing values in 7 GB


@dataclass(frozen=True, eq=False)
class Comparison:
    """Results of several importance measures for the same forest.

    Attributes
    ----------
    results : dict of str to Importances
        The results by name of the measure.
    seconds : dict of str to float
        The time that each measure took.
    groups : list of importance.core.groups.Group
        Every feature is in one group, correlated features in the same one.
    jointly : Importances or None
        Out-of-bag permutation of the groups; None if no features are correlated, or if permutation
        was not asked for.
    correlation : ndarray of shape (n_features, n_features), float64, or None
        Rank correlations; None for sparse tables and those of more than 10,000 features.
    n_distinct : ndarray of shape (n_features,), int64
        Number of distinct values of every feature.
    warnings : list of str
        Sentences on what to be careful about.
    left_out : dict of str to str
        Why a measure, or "jointly", was left out, by its name.
    named : ndarray of shape (n_named,), int64
        Positions of the features that the warnings name; plots always show them.
    units : ndarray of shape (n_samples,), int, or None
        The group of each row, if the forest draws groups of rows.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from cartwood import RandomForestClassifier, compare
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> forest = RandomForestClassifier(50, random_state=0).fit(X, y)
    >>> measures = ["mdi", "oob_permutation", "mean_absolute_shap_oob"]
    >>> found = compare(forest, X, y, measures=measures)
    >>> found.to_frame()["mean_absolute_shap_oob"].round(2)
                       importance  standard_error  rank
    feature
    petal width (cm)         0.63            0.01     1
    petal length (cm)        0.59            0.01     2
    sepal length (cm)        0.10            0.01     3
    sepal width (cm)         0.02            0.00     4
    >>> len(found.groups), found.n_distinct
    (2, array([35, 23, 43, 22]))
    """

    results: dict[str, Importances]
    seconds: dict[str, float]
    groups: list[Group]
    jointly: Importances | None
    correlation: np.ndarray | None
    n_distinct: np.ndarray
    warnings: list[str]
    left_out: dict[str, str] = field(default_factory=dict)
    named: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    units: np.ndarray | None = None

    @property
    def feature_names(self) -> np.ndarray:
        """Names of the features, of shape (n_features,)."""
        return next(iter(self.results.values())).feature_names

    def to_frame(self) -> Any:
        """A pandas.DataFrame with a row per feature: value, standard error and rank per measure.

        Sorted by out-of-bag permutation importance if present, otherwise by the first measure.
        """
        import pandas as pd

        columns = {}
        for name, result in self.results.items():
            columns[name, "importance"] = result.values
            columns[name, "standard_error"] = result.standard_error
            columns[name, "rank"] = ranks_of(result.values)
        frame = pd.DataFrame(columns, index=pd.Index(self.feature_names, name="feature"))
        return frame.iloc[descending(self._leading.values)]

    @property
    def _leading(self) -> Importances:
        return self.results.get("oob_permutation", next(iter(self.results.values())))

    @plots.as_written
    def plot(self, max_features: int = 20) -> Any:
        """Bars of every measure side by side, with the features in the same order.

        Parameters
        ----------
        max_features : int, default=20
            Show only this many of the most important features, and those that the warnings name.

        Returns
        -------
        matplotlib.figure.Figure
        """
        import matplotlib.pyplot as plt

        shown = leading(self._leading.values, max_features, self.named)
        figure, axes = plt.subplots(
            1, len(self.results), sharey=True, squeeze=False, layout="constrained",
            figsize=(2.2 + 2.3 * len(self.results), plots.HEADROOM + plots.ROW_HEIGHT * len(shown)),
        )  # fmt: skip
        for ax, (name, result) in zip(axes[0], self.results.items(), strict=True):
            plots.draw_bars(ax, result, shown, result.standard_error[shown])
            ax.set_title(name, fontsize=10)
            plots.plain_numbers(ax.xaxis, 3)  # few ticks, so that long numbers do not collide
            ax.tick_params(axis="x", labelsize=8)
            ax.set_xlabel(fill(f"{result.unit} (± 1 standard error {result.uncertainty})", 30))
            ax.xaxis.label.set_fontsize(8)
        if len(shown) < len(self.feature_names):
            figure.suptitle(f"{len(shown)} of {len(self.feature_names)} features", fontsize=9)
        return figure

    @plots.as_written
    def plot_ranks(self, ax: Any = None, max_features: int = 25) -> Any:
        """The ranks by every measure, connected by lines; see `importance.core.plots.plot_ranks`.

        Parameters
        ----------
        ax : matplotlib axes, default=None
            None draws in a new figure.
        max_features : int, default=25
            Show the features that rank among this many by the first measure.

        Returns
        -------
        matplotlib axes
        """
        return plots.plot_ranks(self.results, ax, max_features, self.named)

    @plots.as_written
    def plot_clusters(self, ax: Any = None, max_features: int = 60) -> Any:
        """Rank correlations of the features; see `importance.core.plots.plot_clusters`.

        Parameters
        ----------
        ax : matplotlib axes, default=None
            None draws in a new figure.
        max_features : int, default=60
            Show at most this many features, those with the strongest correlations.

        Returns
        -------
        matplotlib axes

        Raises
        ------
        ValueError
            If rank correlations were not computed, as the table was sparse or too wide.
        """
        if self.correlation is None:
            raise ValueError(
                "Rank correlations of sparse tables, and of more than "
                f"{MOST_CORRELATED:,} features, are not computed."
            )
        return plots.plot_clusters(self.correlation, self.feature_names, ax, max_features)

    def __repr__(self) -> str:
        order = descending(self._leading.values)[:10]
        width = max(len(self.feature_names[j]) for j in order)

        def line(name, cells):
            return f"{name:<{width}}" + "".join(f"  {cell:>20}" for cell in cells)

        results = self.results.values()
        over = (f"± {result.uncertainty.partition(',')[0]}" for result in results)
        lines = [line("", self.results), line("", over)]
        columns = [estimates(result.values, result.standard_error) for result in results]
        for j in order:
            lines.append(line(self.feature_names[j], (texts[j] for texts in columns)))
        if len(self.feature_names) > len(order):
            lines.append(f"... {len(self.feature_names) - len(order)} more")
        lines += [f"! {text}" for text in self.warnings]
        lines += [f"{name} is left out: {why}" for name, why in self.left_out.items()]
        return "\n".join(lines)


@of_fitted_forest
def compare(
    forest: Any, X: Any, y: Any, *, measures: Sequence[str] | None = None,
    without: Sequence[str] = (), loss: str | None = None, correlated: float = 0.7,
    max_rows: int | None = None, n_jobs: int | None = None, verbose: int = 0,
    callback: Callable | None = None,
) -> Comparison:  # fmt: skip
    """Compute all measures of a forest in one table, with warnings in words.

    Parameters
    ----------
    forest : fitted random forest, ours or scikit-learn's
        With bootstrap=True.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        The table the forest was fitted on.
    y : array-like of shape (n_samples,)
    measures : sequence of str, default=None
        Some of "mdi", "unbiased_mdi", "oob_permutation", "drop_column" (a refit per feature),
        "mean_absolute_shap" and "mean_absolute_shap_oob" (of at most 1,000 rows). By default all
        that are possible: the last two need votes that have SHAP values and a dense table;
        "drop_column" needs at least two features, and neither Bagging nor votes that are weighted
        or stacked. `Comparison.left_out` says what was left out and why.
    without : sequence of str, default=()
        Measures to leave out, by name; with "jointly", correlated features are not permuted
        together. The most costly is "drop_column", with a forest per feature, then
        "oob_permutation" and "jointly".
    loss : str, default=None
        Loss of "oob_permutation" and "drop_column".
    correlated : float, default=0.7
        Features with at least this absolute rank correlation are also permuted together, unless the
        table is sparse or has more than 10,000 features.
    max_rows : int, default=None
        Permutation judges each tree on at most this many of its out-of-bag rows, see
        `oob_permutation`; all by default.
    n_jobs : int, default=None
        Number of threads; the result does not depend on it.
    verbose : int, default=0
        Above 0 every measure has a progress bar with the time left, and after the first refit a
        line says how long all refits will take.
    callback : callable, default=None
        Called with a `cart.primitives.progress.Progress` after every step of a measure; its `what`
        is the name of the measure.

    Returns
    -------
    Comparison

    Raises
    ------
    TypeError, ValueError
        As the measures do, or if a measure is unknown.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from cartwood import RandomForestClassifier, compare
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> forest = RandomForestClassifier(50, random_state=0).fit(X, y)
    >>> measures = ["mdi", "oob_permutation", "mean_absolute_shap_oob"]
    >>> compare(forest, X, y, measures=measures)
                                        mdi       oob_permutation  mean_absolute_shap_oob
                               ± over trees           ± over data           ± over rows
    petal width (cm)          0.448 ± 0.044         0.635 ± 0.068       0.6348 ± 0.0096
    petal length (cm)         0.442 ± 0.043         0.586 ± 0.066         0.589 ± 0.012
    sepal length (cm)         0.083 ± 0.018         0.066 ± 0.023       0.0998 ± 0.0055
    sepal width (cm)        0.0273 ± 0.0056       0.0101 ± 0.0083       0.0250 ± 0.0019
    ! petal length (cm) and petal width (cm) share their importance (Spearman 0.94): permuted
    together 1.2, alone 0.59, 0.64.
    ! The order of petal width (cm) and petal length (cm) depends on the randomness of the trees:
    they differ by 0.05 ± 0.11 over trees.
    ! 1 of 4 features cannot be told from noise by permutation at this sample size (within 2
    standard errors over data of 0): sepal width (cm).
    """
    forest, X = without_steps(forest, X)
    known = _measures(forest, X, y, loss, max_rows)
    chosen, without = _choose(list(known), measures, without)
    require_threshold("correlated", correlated)
    fitted = check_forest(forest, X, y)
    left_out = dict.fromkeys(without, "as requested")
    if measures is None:
        left_out |= _impossible(fitted)
    chosen = [name for name in chosen if name not in left_out]
    results, seconds = {}, {}
    for name in chosen:
        how = _how(fitted, name, n_jobs, verbose, callback)
        start = perf_counter()
        results[name] = known[name](**how)
        seconds[name] = perf_counter() - start
    names = next(iter(results.values())).feature_names
    correlation, groups, jointly = None, parse_groups(None, names), None
    reason = _why_no_correlations(fitted.X)
    if reason is None:
        correlation, found = _correlate(forest, fitted.X, correlated)
        groups = parse_groups(found, names)
        if len(groups) < len(names) and "oob_permutation" in results and JOINTLY not in left_out:
            how = _how(fitted, JOINTLY, n_jobs, verbose, callback)
            jointly = known["oob_permutation"](groups=found, **how)
    elif "oob_permutation" in results:
        left_out.setdefault(JOINTLY, reason)
    comparison = Comparison(
        results, seconds, groups, jointly, correlation, _count_distinct(fitted.X), [], left_out,
        units=getattr(fitted.draws, "groups", None),
    )  # fmt: skip
    said = advise(comparison)
    named = {j for sentence in said for j in sentence.features[:MOST_NAMED]}
    doubts = [*doubts_on_repeated_rows(fitted), *doubts_on_small_targets(fitted)]
    return replace(
        comparison, warnings=[*doubts, *(sentence.text for sentence in said)],
        named=np.array(sorted(named), dtype=np.int64),
    )  # fmt: skip


def _correlate(forest, X, threshold):
    """Rank correlations, 0 for categories, whose codes have no order; and the columns of each group
    of correlated features."""
    correlation = rank_correlation(X)
    is_category = getattr(forest, "is_categorical_", np.zeros(X.shape[1], bool))
    correlation[is_category] = correlation[:, is_category] = 0.0
    numbers = np.flatnonzero(~is_category)
    found = clusters_of(correlation[np.ix_(numbers, numbers)], threshold)
    return correlation, [numbers[members] for members in found]


def _measures(forest, X, y, loss, max_rows) -> dict[str, Callable[..., Importances]]:
    """The measures by name, as functions of n_jobs, verbose and callback."""
    return {
        "mdi": lambda **how: mdi(forest),
        "unbiased_mdi": partial(unbiased_mdi, forest, X, y),
        "oob_permutation": partial(oob_permutation, forest, X, y, loss=loss, max_rows=max_rows),
        "drop_column": partial(drop_column, forest, X, y, loss=loss),
        "mean_absolute_shap": partial(mean_absolute_shap, forest, X),
        "mean_absolute_shap_oob": partial(mean_absolute_shap, forest, X, out_of_bag=True),
    }


def _choose(all_names, measures, without):
    """The names of the measures that are asked for, and of those to leave out."""
    chosen = all_names if measures is None else _listed("measures", measures)
    without = _listed("without", without)
    named = ("measures", chosen, all_names), ("without", without, [*all_names, JOINTLY])
    for what, names, known in named:
        if unknown := sorted({*names} - {*known}):
            raise ValueError(f"{what}={unknown} are not known; choose from {known}.")
    if not {*chosen} - {*without}:
        raise ValueError(f"without={without!r} leaves no measure; choose from {all_names}.")
    return chosen, without


def _listed(what, names):
    """One name, several, or None, as a list."""
    names = [] if names is None else [names] if isinstance(names, str) else names
    if not (isinstance(names, Iterable) and all(isinstance(name, str) for name in names)):
        raise TypeError(f'{what}={names!r} must be names of measures, such as ["mdi"].')
    return list(names)


def _how(fitted, name, n_jobs, verbose, callback):
    """Keyword arguments of a measure: its threads, and the callback that reports its progress."""
    if verbose:
        print(f"{name}:", file=sys.stderr)

    def tell(progress):
        if verbose and name == "drop_column" and progress.n_done == len(fitted.trees):
            n_refits = progress.n_total // progress.n_done
            print(
                f"about {progress.seconds * n_refits:.0f} s for {n_refits} refits, judging by the "
                f'first ({progress.seconds:.1f} s); without=["drop_column"] leaves them out',
                file=sys.stderr,
            )
        return None if callback is None else callback(progress._replace(what=name))

    return {"n_jobs": n_jobs, "verbose": verbose, "callback": tell}


def _impossible(fitted):
    """The measures that a forest or a table does not allow, by name, with the reason."""
    left_out = {}
    if fitted.X.shape[1] < 2:
        left_out["drop_column"] = "without the only feature there is nothing to fit"
    elif isinstance(fitted.forest, BaggedTrees):
        left_out["drop_column"] = "it does not support Bagging"
    elif (voting := getattr(fitted.forest, "voting", "soft")) not in ("soft", "majority"):
        left_out["drop_column"] = f"it does not support voting={voting!r}"
    if is_one_of_several(fitted.forest):
        left_out |= dict.fromkeys(("mdi", "drop_column"), "it is of all outputs")
    if issparse(fitted.X):
        left_out |= dict.fromkeys(SHAP, "they would take as much memory as the dense table")
    else:
        try:
            trees_to_explain(fitted.forest)
        except (TypeError, ValueError) as error:
            left_out |= dict.fromkeys(SHAP, str(error))
    return left_out


def _why_no_correlations(X):
    """Why the rank correlations of a table are not computed, or None."""
    if issparse(X):
        return "rank correlations of sparse tables are not computed"
    if X.shape[1] > MOST_CORRELATED:
        return f"rank correlations of more than {MOST_CORRELATED:,} features are not computed"
    return None


def _count_distinct(X):
    """Number of distinct values of every column; missing values count as one."""
    columns = np.split(X.tocsc().data, X.tocsc().indptr[1:-1]) if issparse(X) else X.T
    return np.array([len(np.unique(x)) + (len(x) < X.shape[0]) for x in columns])
