"""Drop-column importance: what the forest loses when it is refitted without a feature."""

from collections.abc import Callable
from contextlib import closing
from typing import Any

import numpy as np

from cart.primitives.progress import ProgressReporter
from cart.splitting.feature_draw import DRAW_SEED_MAX
from importance.core.adoption import of_fitted_forest, refuse_refits
from importance.core.fitted_forest import NO_ROW, names_of
from importance.core.given import require_count
from importance.core.groups import parse_groups
from importance.core.losses import choose_loss
from importance.core.result import Importances, mean_and_error
from importance.drop_column.refits import NO_COLUMNS, choose_design, losses_without

BIAS = (
    "If two features carry the same information, neither is missed, so both can have 0: it "
    "measures what nothing else can replace."
)


@of_fitted_forest
def drop_column(
    forest: Any, X: Any, y: Any, *, loss: str | None = None, groups: Any = None, n_refits: int = 1,
    on: Any = "oob", sample_weight: Any = None, n_jobs: int | None = None, verbose: int = 0,
    callback: Callable | None = None,
) -> Importances:  # fmt: skip
    """Increase in the loss of predictions after a refit without the feature.

    The forest is refitted without each feature, or group of columns, on the same draws of rows with
    the same seeds. The value is the mean over rows of the loss of the forest's vote without the
    feature minus the loss with it. Its standard error is that of the mean of these paired
    differences over rows, or over groups of rows that the forest draws as a whole
    (`fit(..., groups=)`). Refits are made of our trees, also for forests of scikit-learn.

    Parameters
    ----------
    forest : fitted random forest, ours or scikit-learn's
        With bootstrap=True if it is judged out of bag; with voting="soft" or "majority".
    X : array-like or sparse matrix of shape (n_samples, n_features)
        The table the forest was fitted on; at least two features.
    y : array-like of shape (n_samples,)
    loss : str, default=None
        Loss of a prediction, see `importance.core.losses`; "brier" in classification and
        "squared_error" in regression by default.
    groups : dict of str to list of columns, or list of lists of columns, default=None
        Columns that are left out together: there is a value per group, and one per column that is
        in no group. See `one_hot_groups` and `correlation_groups`.
    n_refits : int, default=1
        Number of pairs of forests. The first pair is this forest and its refit; in further pairs
        both forests are grown with other seeds, which follow from those of this forest. The value
        is the mean over pairs.
    on : {"oob"}, (X_test, y_test), int, cross-validation splitter or iterable of splits, \
    default="oob"
        How the forests are judged. "oob": by the votes of the trees for which a row is out of bag.
        A tuple: on other rows. Otherwise on the held-out rows of each fold, by forests with the
        same parameters and seeds grown on the other folds (row and class weights are those of the
        fit on the whole table). A splitter that needs groups of rows must be passed as its list of
        splits.
    sample_weight : array-like of shape (n_samples,), default=None
        Weight of each row in the loss; of the rows of X_test if there is one. (The weights of the
        fit are used by the trees.)
    %(n_jobs)s
    verbose : int, default=0
        Above 0, a progress bar shows the trees that are grown.
    callback : callable, default=None
        Called with a `cart.primitives.progress.Progress` after every tree.

    Returns
    -------
    Importances
        `per_row` holds the paired differences, one row for each row of X (or X_test), averaged over
        pairs; nan for rows that were never judged. `per_class` is their mean over each class. With
        several refits, `other_errors["over refits"]` is the standard error of the value over pairs;
        that of a single pair is sqrt(n_refits) times as large. `per_tree` compares each tree's own
        loss with that of its refit, pair after pair, fold after fold; it concerns single trees, so
        its mean is not the value.

    Raises
    ------
    TypeError, ValueError
        If no row is out of bag, votes are weighted or stacked, the forest has parameters that our
        trees do not support, or is part of a pipeline and judged fold by fold; if (X, y) cannot be
        its training table, groups overlap or hold every column, folds divide groups of rows that
        the forest was fitted with, or the loss does not fit the task.

    Notes
    -----
    On held-out rows this is known as LOCO (Lei et al. 2018, with the absolute error) and as
    drop-and-relearn (Hooker, Mentch and Zhou 2021).

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from cartwood import RandomForestRegressor, drop_column
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> forest = RandomForestRegressor(50, max_features=1 / 3, random_state=0).fit(X, y)
    >>> drop_column(forest, X, y)
    <Importances drop_column, squared_error, ± over rows, for this pair of forests: bmi 380 ± 170,
     s5 230 ± 150, s6 50 ± 130, s4 30 ± 110, s3 30 ± 120, ...>
    """
    refuse_refits(forest, "drop_column")
    design = choose_design(forest, X, y, on, sample_weight)
    name, make_loss = choose_loss(loss, forest)
    columns = parse_groups(groups, names_of(forest))
    _refuse_what_cannot_be_refitted(design.fitted, columns, n_refits)
    known = np.array(design.fitted.seeds)  # of the trees; further pairs derive theirs from these
    further = np.random.RandomState(known).randint(DRAW_SEED_MAX, size=(n_refits - 1, len(known)))
    seeds = np.vstack((known, further))
    sets = [NO_COLUMNS, *(group.columns for group in columns)]
    weight, units = design.evaluation.weight, design.fitted.units
    if design.evaluation is not design.fitted:  # groups of other rows are not known
        units = np.arange(len(weight))
    n_forests = len(sets) * n_refits * design.n_folds - design.is_fitted
    values, per_tree = [], []
    per_row = _RowMeans(len(weight), len(columns))
    with ProgressReporter(n_forests * seeds.shape[1], "tree", verbose, callback) as watch:
        for pair, own in enumerate(seeds):
            rows, trees = _evaluate_pair(design, own, pair == 0, sets, make_loss, n_jobs, watch)
            if not weight[~np.isnan(rows[:, 0])].any():
                raise ValueError("sample_weight is 0 in every judged row.")
            values.append(mean_and_error(rows, units, weight)[0])
            per_row.add(slice(None), rows)
            per_tree.append(trees)
    _, error = mean_and_error(per_row.means, units, weight)
    n_pairs = n_refits * design.n_folds
    pairs = "this pair" if n_pairs == 1 else f"these {n_pairs} pairs"
    other_errors = {}
    if n_refits > 1:
        other_errors["over refits"] = np.std(values, axis=0, ddof=1) / np.sqrt(n_refits)
    return Importances(
        "drop_column", np.mean(values, axis=0), error, np.concatenate(per_tree), columns.names,
        unit=f"increase in {design.where} {name.replace('_', '-')} loss of the forest",
        loss=name,
        uncertainty=f"over rows, for {pairs} of forests",
        bias=BIAS,
        other_errors=other_errors,
        per_row=per_row.means,
        per_class=_per_class(per_row.means, design),
    )  # fmt: skip


def _refuse_what_cannot_be_refitted(fitted, groups, n_refits):
    voting = getattr(fitted.forest, "voting", "soft")
    if voting not in ("soft", "majority"):
        raise ValueError(
            f"drop_column does not support voting={voting!r}, in which trees do not count the "
            'same; fit a forest with voting="soft".'
        )
    for group in groups:
        if len(group.columns) == fitted.X.shape[1]:
            raise ValueError(
                f"drop_column: without {group.name!r} no column is left to fit; X needs at least "
                "two, and no group may hold them all."
            )
    require_count("n_refits", n_refits)


def _evaluate_pair(design, seeds, is_first, sets, make_loss, n_jobs, watch):
    """Increase of the losses without each of the sets, except the first, which is empty.

    Returns the increase by row, (n_rows, n_sets - 1), nan for rows that are not evaluated, and by
    tree, fold after fold.
    """
    per_row, per_tree = _RowMeans(len(design.evaluation.codes), len(sets) - 1), []
    for refit, rows in design.refits(seeds, is_first):
        with closing(losses_without(refit, sets, make_loss, n_jobs, watch)) as losses:
            row_loss, tree_loss = next(losses)
            if np.isnan(row_loss).all():
                raise ValueError(NO_ROW)
            more = [(of_rows - row_loss, of_trees - tree_loss) for of_rows, of_trees in losses]
        per_row.add(rows, np.column_stack([of_rows for of_rows, _ in more]))
        per_tree.append(np.column_stack([of_trees for _, of_trees in more]))
    return per_row.means, np.concatenate(per_tree)


class _RowMeans:
    """Means of repeated values for each row; nan for rows without a value."""

    def __init__(self, n_rows, n_columns):
        self._total = np.zeros((n_rows, n_columns))
        self._n_times = np.zeros((n_rows, 1))

    def add(self, rows, said):
        is_known = ~np.isnan(said[:, :1])
        self._total[rows] += np.where(is_known, said, 0.0)
        self._n_times[rows] += is_known

    @property
    def means(self):
        with np.errstate(invalid="ignore"):
            return self._total / self._n_times


def _per_class(per_row, design):
    """The value over the rows of each class, (n_classes, n_features); None in regression."""
    if not design.fitted.is_classification:
        return None
    out = np.full((design.fitted.n_classes, per_row.shape[1]), np.nan)
    for k, of_class in enumerate(out):
        mine = (design.evaluation.codes == k) & ~np.isnan(per_row[:, 0])
        weight = design.evaluation.weight[mine]
        if weight.any():
            of_class[:] = np.average(per_row[mine], axis=0, weights=weight)
    return out
