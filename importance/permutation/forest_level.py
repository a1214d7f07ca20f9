"""Permutation importance by forest: its aggregated out-of-bag prediction, judged by one metric.

This estimates another quantity than the mean over trees of `oob_permutation`: if features can
replace each other, other trees compensate for what one tree has lost, and the values are smaller.
Hence the separate function, which `oob_permutation(level="forest")` calls.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from cart.primitives.progress import ProgressReporter
from cart.primitives.threads import effective_n_threads
from forest.growing.workers import each_step, results_of, shares_memory
from forest.voting.rules import RULES, ballots
from importance.core.adoption import of_fitted_forest
from importance.core.class_share import warn_of_rare_classes
from importance.core.fitted_forest import NO_ROW, FittedForest, check_forest, names_of
from importance.core.given import require_count, require_function
from importance.core.groups import Groups, parse_groups
from importance.core.losses import MakeLoss, choose_loss, of_predictions, predictions_of
from importance.core.result import Importances
from importance.core.used_features import values_of
from importance.permutation.shuffling import PermutedTree, seeded

BIAS = (
    "Permuting one feature of a correlated group asks the trees about rows that do not occur; "
    "features that can replace each other all seem to matter little."
)
_BLOCK_VALUES = 1 << 22  # sums of votes that a thread holds at a time, for one group at least
# evaluate(values, known) scores mean votes, (n_known, n_values), of the rows `known`.
Evaluate = Callable[[np.ndarray, np.ndarray], float]


@of_fitted_forest
def forest_permutation(
    forest: Any, X: Any, y: Any, *, loss: str | None = None, metric: Callable | None = None,
    greater_is_better: bool = True, response: str = "predictions", sample_weight: Any = None,
    groups: Any = None, n_repeats: int = 5, random_state: Any = None, n_jobs: int | None = None,
    verbose: int = 0, callback: Callable | None = None,
) -> Importances:  # fmt: skip
    """Increase in the forest's out-of-bag loss when a feature is permuted.

    A feature is permuted over all training rows, in the same way for all trees. Every row is
    predicted by the trees for which it is out of bag, and the predictions of all rows are judged at
    once. The value is the mean over `n_repeats` permutations, and the standard error is that of
    this mean. A feature that no tree uses has exactly 0. Rows that are never out of bag are left
    out.

    Parameters
    ----------
    forest : fitted random forest, ours or scikit-learn's
        With bootstrap=True, and voting="soft" or "majority".
    X : array-like or sparse matrix of shape (n_samples, n_features)
        The table the forest was fitted on.
    y : array-like of shape (n_samples,)
    loss : {"brier", "zero_one", "squared_error", "absolute_error", "poisson"}, default=None
        Loss of an aggregated prediction; "brier" in classification and "squared_error" in
        regression by default.
    metric : callable, default=None
        Replaces the loss: `metric(y_true, y_pred)` as in `sklearn.metrics`. If you give
        `sample_weight`, it is passed on to the metric.
    greater_is_better : bool, default=True
        Whether the importance is the decrease of the metric or, if False, its increase.
    response : {"predictions", "probabilities"}, default="predictions"
        What the metric receives; with two classes, probabilities are those of the second.
    sample_weight : array-like of shape (n_samples,), default=None
        Weight of each row in the loss or metric.
    %(permuted_groups)s
    n_repeats : int, default=5
    random_state : int, RandomState instance or None, default=None
    %(watched)s

    Returns
    -------
    Importances
        Without `per_tree`, as trees are not judged one by one.

    Raises
    ------
    TypeError, ValueError
        If the forest has no out-of-bag rows or uses another voting rule, (X, y) cannot be its
        training table, groups overlap, the loss does not fit the task, or options of a metric are
        given without a metric.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from cartwood import RandomForestRegressor, forest_permutation
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> forest = RandomForestRegressor(50, max_features=1 / 3, random_state=0).fit(X, y)
    >>> forest_permutation(forest, X, y, n_repeats=3, random_state=0)
    <Importances forest_permutation, squared_error, ± over permutations: bmi 1,240 ± 20, s5 1,042 ±
     81, bp 346 ± 30, s4 82 ± 21, s6 67 ± 64, ...>
    """
    fitted = check_forest(forest, X, y, sample_weight)
    require_count("n_repeats", n_repeats)
    require_function("metric", metric, "sklearn.metrics.accuracy_score")
    columns = parse_groups(groups, names_of(forest))
    voting = getattr(forest, "voting", "soft")
    if voting not in ("soft", "majority"):
        raise ValueError(
            f'level="forest" supports voting="soft" and "majority", not voting={voting!r}; fit a '
            'forest with one of them, or use level="tree".'
        )
    if metric is None:
        if response != "predictions" or not greater_is_better:
            raise ValueError("response and greater_is_better describe a metric; give metric, too.")
        name, make_loss = choose_loss(loss, forest)
        evaluate, sign = mean_loss(fitted, make_loss), 1.0
        unit = f"increase in out-of-bag {name.replace('_', '-')} loss of the forest"
    else:
        if loss is not None:
            raise ValueError(f"loss={loss!r} and metric exclude each other; give only one.")
        evaluate = score_by(fitted, metric, response, sample_weight is not None)
        sign = -1.0 if greater_is_better else 1.0
        name = getattr(metric, "__name__", repr(metric))
        unit = f"{'de' if greater_is_better else 'in'}crease in out-of-bag {name} of the forest"
    donors = shared_donors(seeded(random_state, len(columns)), len(fitted.codes), n_repeats)
    base, permuted, n_times = evaluate_forest(
        fitted, evaluate, columns, donors, n_repeats, RULES[voting].is_hard, n_jobs, verbose,
        callback,
    )  # fmt: skip
    warn_of_rare_classes(fitted, n_times)
    return over_permutations(
        sign * (permuted - base), columns, measure="forest_permutation", unit=unit, bias=BIAS,
        loss=name,
    )  # fmt: skip


def over_permutations(increase: np.ndarray, groups: Groups, **words: Any) -> Importances:
    """Importances from increases of the loss, (n_repeats, n_groups)."""
    n_repeats = len(increase)
    error = np.full(increase.shape[1], np.nan)
    if n_repeats > 1:
        error = increase.std(axis=0, ddof=1) / np.sqrt(n_repeats)
    return Importances(
        values=increase.mean(axis=0), standard_error=error, per_tree=None,
        feature_names=groups.names, uncertainty="over permutations", **words,
    )  # fmt: skip


def shared_donors(shuffles: Callable, n_samples: int, n_repeats: int) -> Callable:
    """Donors from a permutation over all rows that all trees share.

    `shuffles(group)` returns `draw(repeat, n_samples)`, see `shuffling.seeded`. Returns
    `donors(group)`, which returns `find(tree, repeat, rows)`: the rows whose values `rows` get.

        rows        [ 0 1 2 3 4 ]     one order for all trees
        donors      [ 3 0 4 1 2 ]     tree t, with rows 1 and 3 out of bag: they get those of 0, 1
    """

    def donors(group):
        draw = shuffles(group)
        orders = [draw(repeat, n_samples) for repeat in range(n_repeats)]
        return lambda tree, repeat, rows: orders[repeat][rows]

    return donors


def donors_within_trees(shuffles: Callable) -> Callable:
    """Donors from permutations within each tree's out-of-bag rows; see `shared_donors`.

    `shuffles(group)` returns `draw((tree, repeat), n_rows)`.
    """

    def donors(group):
        draw = shuffles(group)
        return lambda tree, repeat, rows: rows[draw((tree, repeat), len(rows))]

    return donors


def mean_loss(fitted: FittedForest, make_loss: MakeLoss) -> Evaluate:
    """Evaluate aggregated predictions by their mean loss; see `evaluate_forest`."""

    def evaluate(values, known):
        row_loss = of_predictions(make_loss, values, fitted.codes[known])
        return np.average(row_loss, weights=fitted.weight[known])

    return evaluate


def score_by(
    fitted: FittedForest, metric: Callable, response: str = "predictions", weighs: bool = False
) -> Evaluate:
    """Evaluate aggregated predictions by a metric in the style of `sklearn.metrics`."""
    classes = fitted.forest.classes_ if fitted.is_classification else None
    if response not in ("predictions", "probabilities"):
        raise ValueError(f'response={response!r} must be "predictions" or "probabilities".')
    if response == "probabilities" and classes is None:
        raise ValueError('Regression has no probabilities; set response="predictions".')
    truth = fitted.codes if classes is None else classes[fitted.codes.astype(np.int64)]
    costs = getattr(fitted.forest, "loss_", None)

    def evaluate(values, known):
        if classes is None:
            said = values[:, 0]
        else:
            shares, best = predictions_of(values, costs)
            if response == "predictions":
                said = classes[best]
            else:
                said = shares[:, 1] if len(classes) == 2 else shares
        options = {"sample_weight": fitted.weight[known]} if weighs else {}
        score = metric(truth[known], said, **options)
        if np.shape(score) or np.asarray(score).dtype.kind not in "biuf":
            raise TypeError(f"metric must return a number, but returned {type(score).__name__}.")
        return score

    return evaluate


def evaluate_forest(
    fitted: FittedForest, evaluate: Evaluate, groups: Groups, donors: Callable, n_repeats: int,
    is_hard: bool, n_jobs: int | None = None, verbose: int = 0, callback: Callable | None = None,
) -> tuple[float, np.ndarray, np.ndarray]:  # fmt: skip
    """Evaluate the aggregated out-of-bag predictions as they are and with each group permuted.

    `donors` is as from `shared_donors`; `is_hard` says whether a tree votes for its preferred class
    rather than with its class shares. Returns the value as it is; the values with groups permuted,
    (n_repeats, n_groups); and for how many trees each row is out of bag. Raises ValueError if no
    row with a weight is out of bag.
    """
    total = np.zeros((len(fitted.codes), fitted.n_classes))
    n_times, group_of = np.zeros(len(total), np.int64), groups.group_of
    for t, tree in enumerate(fitted.trees):
        rows = fitted.out_of_bag(t)
        permuted = PermutedTree(tree, fitted.X, rows, group_of)
        total[rows] += _ballots(tree, is_hard)[permuted.leaves()]
        n_times[rows] += 1
    known = np.flatnonzero(n_times)
    if not fitted.weight[known].any():
        raise ValueError(NO_ROW)

    def judge(total):
        return evaluate(total[known] / n_times[known, np.newaxis], known)

    n_groups = len(groups)
    n_blocks = max(effective_n_threads(n_jobs), n_groups * n_repeats * total.size // _BLOCK_VALUES)
    blocks = np.array_split(np.arange(n_groups), min(n_groups, n_blocks))
    with ProgressReporter(len(blocks) * len(fitted.trees), "tree", verbose, callback) as watch:
        given = donors, n_repeats, is_hard, total.shape, watch if shares_memory() else None
        tasks = ((_evaluate_block, fitted, judge, group_of, block, *given) for block in blocks)
        with results_of(tasks, n_jobs) as parts:
            return judge(total), np.concatenate(list(parts), axis=1), n_times


def _evaluate_block(fitted, judge, group_of, block, donors, n_repeats, is_hard, shape, watch):
    """Evaluate the forest with each group of a block permuted, (n_repeats, n_block).

    Votes are added in the order of the trees, so that votes that tie unpermuted tie here too.
    """
    totals = np.zeros((len(block), n_repeats, *shape))
    find = [donors(group) for group in block]
    for t, tree in each_step(enumerate(fitted.trees), watch):
        rows = fitted.out_of_bag(t)
        permuted = PermutedTree(tree, fitted.X, rows, group_of)
        votes = _ballots(tree, is_hard)
        is_used = np.isin(block, permuted.groups)
        others = np.ix_(~is_used, np.full(n_repeats, True), rows)
        totals[others] += votes[permuted.leaves()]
        for i in np.flatnonzero(is_used):
            features = permuted.features(block[i])
            for repeat in range(n_repeats):
                values = values_of(fitted.X, find[i](t, repeat, rows), features)
                totals[i, repeat, rows] += votes[permuted.leaves_with(block[i], values)]
    return np.array([[judge(one) for one in of_group] for of_group in totals]).T


def _ballots(tree, is_hard):
    """The ballot that each node casts, (n_nodes, n_values)."""
    return ballots(tree.value.reshape(tree.node_count, -1), is_hard)
