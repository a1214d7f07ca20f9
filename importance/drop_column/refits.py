"""Drop-column refits: forests that are grown again without some columns, and their votes.

For every set of columns there are batches of trees; all batches form one queue for the threads.
Votes are added batch by batch, so that sums do not depend on the number of threads:

    sets       all columns          without a            without b, c
    queue      [ 0-15 | 16-31 | .. ][ 0-15 | 16-31 | .. ][ 0-15 | 16-31 | .. ]
    votes        total + total + ..   total + total + ..   -> loss by row, and of each tree

A `Design` says what forests are grown on and how they are judged: out of bag, on other rows, or
fold by fold.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from numbers import Integral
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from cart.estimators.encoding import encode_columns
from cart.estimators.validation import require_weight
from cart.growth.plan import make_plan
from cart.splitting import criteria
from cart.tree.packed import pack
from cart.tree.traversal import leaf_ids, rows_for
from forest.growing.thread_pool import Job, bytes_of, grow_each
from forest.growing.workers import each_step, results_of, shares_memory
from forest.sampling.bootstrap import Bootstrap
from forest.sampling.plan import plan_bootstrap
from forest.sampling.weights import in_bag_weight
from forest.voting.rules import ballots
from importance.core.adoption import refuse_steps
from importance.core.fitted_forest import (
    FittedForest,
    check_evaluation_rows,
    check_forest,
    row_weight_of,
)
from importance.core.given import require_count
from importance.core.held_out_rows import require_held_out
from importance.core.losses import MakeLoss, of_predictions

# Trees per task. Votes are added task by task, so it is fixed: sums do not depend on `n_jobs`.
BATCH = 16
NO_COLUMNS = np.empty(0, np.int64)


class Training(NamedTuple):
    """The data that trees are grown on."""

    table: Any  # cart.table.table.Table
    codes: np.ndarray  # (n_samples,) float64
    bootstrap: Bootstrap  # with the seeds of the trees
    row_weight: np.ndarray | None  # (n_samples,) float64: of the fit

    @classmethod
    def of_rows(cls, fitted: FittedForest, seeds: np.ndarray, rows: np.ndarray) -> "Training":
        """Some rows of the table, with draws as the forest would make them from these rows."""
        forest, weight, codes = fitted.forest, row_weight_of(fitted.forest), fitted.codes[rows]
        if weight is not None:
            weight = weight[rows]
            require_weight(weight)
        groups, given = (getattr(fitted.draws, name, None) for name in ("groups", "given"))
        ours = {"replace": True, "stratify": False, "bootstrap_draw": "sequence"}
        params = {**ours, **forest.get_params(), "n_estimators": len(seeds)}
        bootstrap = plan_bootstrap(
            SimpleNamespace(**params), codes[:, np.newaxis],
            weight if forest.bootstrap else None,
            None if groups is None else groups[rows],
            None if given is None else given[-len(seeds) :, rows],
        )  # fmt: skip
        table = encode_columns(forest, fitted.X[rows], forest.estimators_[0].splitter)
        return cls(table, codes, bootstrap.of_trees(seeds), weight)


@dataclass(frozen=True, eq=False)
class Refit:
    """One design of fitting the forest, which can be repeated without some of its columns.

    `evaluation` holds the forest, with its parameters and classes, and the rows it is judged on.
    If these are the training rows, `rows` is None, and each tree votes on its out-of-bag rows;
    otherwise every tree votes on `rows`, which are all. `trees` are the trees with all columns, if
    known.
    """

    training: Training
    evaluation: FittedForest
    rows: np.ndarray | None
    trees: list | None = None
    _prepared: dict = field(init=False, default_factory=dict, repr=False)

    def __sizeof__(self) -> int:
        # Dask ships objects that report a large size once, and small ones with every task.
        return bytes_of(*self.training.table, self.evaluation.X, self.evaluation.codes)

    @property
    def n_trees(self) -> int:
        return len(self.training.bootstrap.seeds)

    def grow_without(
        self, columns: np.ndarray, numbers: Iterable[int]
    ) -> Iterator[tuple[Any, np.ndarray]]:
        """Grow some trees without some columns, one after another.

        Yields trees with scikit-learn's node arrays and features numbered as in the whole table,
        each with the evaluation rows that it votes on.
        """
        if len(columns) == 0 and self.trees is not None:
            for i in numbers:
                yield self.trees[i], self._draw(i)[1]
            return
        drawn = {}

        def weigh(some):
            drawn.update({i: self._draw(i) for i in some})
            return [drawn[i][0] for i in some]

        training, n_features = self.training, self.evaluation.X.shape[1]
        kept = np.delete(np.arange(n_features), columns)
        job = Job(
            training.table.without(columns), training.codes, self._plan_without(columns),
            training.bootstrap.seeds, weigh,
        )  # fmt: skip
        for i, tree in grow_each(job, numbers):
            feature = tree.expanded.feature  # `tree.feature` is a view that is read-only
            is_split = feature >= 0
            feature[is_split] = kept[feature[is_split]]
            tree.n_features = n_features
            yield tree, drawn.pop(i)[1]

    def _plan_without(self, columns):
        """The plan for growing trees on the other columns."""
        forest = self.evaluation.forest
        params = SimpleNamespace(**{"feature_draw": "sequence", **forest.get_params()})
        if params.monotonic_cst is not None:
            params.monotonic_cst = np.delete(params.monotonic_cst, columns)
        names = getattr(forest, "feature_names_in_", np.arange(forest.n_features_in_))
        params.feature_names_in_ = np.delete(names, columns)
        has_classes = self.evaluation.is_classification
        task = criteria.CLASSIFICATION if has_classes else criteria.REGRESSION
        return make_plan(
            params, task[forest.criterion], forest.estimators_[0].splitter,
            len(self.training.codes), len(params.feature_names_in_), 1, self.evaluation.n_classes,
        )  # fmt: skip

    def _draw(self, i):
        """Weight of every training row in tree i, and the evaluation rows that it votes on."""
        training, forest = self.training, self.evaluation.forest
        if not forest.bootstrap:
            return 1.0 if training.row_weight is None else training.row_weight, self.rows
        class_weight = getattr(forest, "class_weight", None)
        factor = getattr(forest, "_class_factor", None)
        weight = in_bag_weight(training.bootstrap, i, training.codes, class_weight, factor)
        return weight, np.flatnonzero(weight == 0.0) if self.rows is None else self.rows

    def leaf_values(self, trees: Sequence, rows: Sequence[np.ndarray]) -> Iterator[np.ndarray]:
        """Yield the values that trees give to their evaluation rows, (n_rows, n_values) each."""
        X = self.evaluation.X
        packed = pack(trees, X.dtype, every_column=True)
        kind = type(packed)  # small or wide: rows are prepared once for each kind
        if kind not in self._prepared:
            self._prepared[kind] = rows_for(packed, X)
        X = self._prepared[kind]
        for t, (tree, mine) in enumerate(zip(trees, rows, strict=True)):
            yield tree.value.reshape(tree.node_count, -1)[leaf_ids(packed, t, X, mine)]


def losses_without(
    refit: Refit, sets: list[np.ndarray], make_loss: MakeLoss, n_jobs: int | None = None,
    watch: Any = None,
) -> Iterator[tuple[np.ndarray, np.ndarray]]:  # fmt: skip
    """Losses of the forest without each set of columns; all trees of all sets form one queue.

    An empty set keeps all columns. `watch`, a ProgressReporter, is stepped for every tree that a
    thread grows. Yields for each set the loss of the vote of all trees, (n_rows,), nan for rows
    that no tree votes on, and the mean loss of each tree alone, (n_trees,), nan for trees without
    rows.
    """
    batches = [range(i, min(i + BATCH, refit.n_trees)) for i in range(0, refit.n_trees, BATCH)]
    known_here = watch if shares_memory() else None
    tasks = (
        (_vote, refit, columns, batch, make_loss, known_here)
        for columns in sets
        for batch in batches
    )
    with results_of(tasks, n_jobs) as parts:
        each = iter(parts)
        for _ in sets:
            yield _judge(refit, list(islice(each, len(batches))), make_loss)


def _vote(refit, columns, batch, make_loss, watch):
    """Grow a batch of trees without some columns, and add up their votes on the evaluation rows.

    Returns the sums, (n_rows, n_values); how many trees vote on each row; and the loss of each tree
    alone, nan if it judges no row.
    """
    is_grown = len(columns) or refit.trees is None
    each = each_step(refit.grow_without(columns, batch), watch if is_grown else None)
    trees, rows = zip(*each, strict=True)
    evaluation = refit.evaluation
    is_hard = getattr(evaluation.forest, "voting", "soft") == "majority"
    n_rows = len(evaluation.codes)
    total, n_trees = np.zeros((n_rows, evaluation.n_classes)), np.zeros(n_rows)
    tree_loss = np.full(len(batch), np.nan)
    for t, (mine, values) in enumerate(zip(rows, refit.leaf_values(trees, rows), strict=True)):
        total[mine] += ballots(values, is_hard)
        n_trees[mine] += 1
        weight = evaluation.weight[mine]
        if weight.any():
            loss = of_predictions(make_loss, values, evaluation.codes[mine])
            tree_loss[t] = np.average(loss, weights=weight)
    return total, n_trees, tree_loss


def _judge(refit, parts, make_loss):
    """Losses of the vote of all batches, by row, and of the trees."""
    totals, counts, tree_losses = zip(*parts, strict=True)
    total, n_trees = sum(totals), sum(counts)
    known = np.flatnonzero(n_trees)
    row_loss = np.full(len(n_trees), np.nan)
    if len(known):
        mean = total[known] / n_trees[known, np.newaxis]
        row_loss[known] = of_predictions(make_loss, mean, refit.evaluation.codes[known])
    return row_loss, np.concatenate(tree_losses)


class Design(NamedTuple):
    """What forests are grown on, and what they are judged on."""

    where: str  # "out-of-bag", "held-out" or "cross-validated"
    fitted: FittedForest
    evaluation: FittedForest  # every row that is judged, in whichever fold
    n_folds: int
    is_fitted: bool  # whether the given forest itself is one of those judged
    # `refits(seeds, is_first)` yields, for each fold, a Refit and its rows in `evaluation`.
    refits: Callable


def choose_design(forest: Any, X: Any, y: Any, on: Any, sample_weight: Any = None) -> Design:
    """Check a forest, its training table, and what it is to be evaluated on.

    `on` is as in `importance.drop_column`; `sample_weight` weights the evaluation rows.
    """
    if isinstance(on, str):
        if on != "oob":
            raise ValueError(
                f'on={on!r} must be "oob", rows (X_test, y_test), a number of folds or a '
                "cross-validation splitter."
            )
        fitted = check_forest(forest, X, y, sample_weight)
        return _on_the_whole_table("out-of-bag", fitted, fitted)
    is_table = isinstance(on, list) and hasattr(next(iter(on), None), "shape")  # splits are pairs
    if (isinstance(on, tuple) or is_table) and len(on) == 2:
        fitted = check_forest(forest, X, y, out_of_bag=False)
        X_test, y_test = on
        rows = check_evaluation_rows(forest, X_test, y_test, sample_weight)
        require_held_out(forest, *rows, fitted)
        return _on_the_whole_table("held-out", fitted, FittedForest(forest, *rows))
    return _fold_by_fold(check_forest(forest, X, y, sample_weight, out_of_bag=False), on)


def _on_the_whole_table(where, fitted, evaluation):
    """The Design of forests that are grown on all training rows."""
    table = encode_columns(fitted.forest, fitted.X, fitted.forest.estimators_[0].splitter)
    every = np.arange(len(evaluation.codes))
    rows = None if evaluation is fitted else every

    def refits(seeds, is_first):
        draws, weight = fitted.draws.of_trees(seeds), row_weight_of(fitted.forest)
        trees = fitted.trees if is_first else None
        yield Refit(Training(table, fitted.codes, draws, weight), evaluation, rows, trees), every

    return Design(where, fitted, evaluation, 1, True, refits)


def _fold_by_fold(fitted, on):
    """The Design of forests that are grown on all folds but the one that judges them."""
    from sklearn.model_selection import check_cv  # slow to import

    refuse_steps(fitted.forest)  # steps were fitted on the held-out rows too
    X, codes, weight = fitted.X, fitted.codes, fitted.weight
    is_classifier = fitted.is_classification
    labels = codes.astype(np.int64) if is_classifier else codes
    every = np.arange(len(codes))
    if isinstance(on, Integral):
        require_folds("on", on, labels, is_classifier)
    splits = check_cv(on, labels, classifier=is_classifier).split(X, labels)
    try:
        folds = [(every[train], every[test]) for train, test in splits]
    except (IndexError, TypeError) as error:
        raise ValueError(
            "on must make pairs of training rows and held-out rows, by numbers from 0 to "
            f"{len(every) - 1}, but one is wrong: {error}"
        ) from error
    if not folds or not all(len(rows) for fold in folds for rows in fold):
        raise ValueError("on makes no folds, or one without training rows or held-out rows.")
    _refuse_parted_groups(fitted.forest, folds)

    def refits(seeds, is_first):
        for train, test in folds:
            training = Training.of_rows(fitted, seeds, train)
            evaluation = FittedForest(fitted.forest, X[test], codes[test], weight[test])
            yield Refit(training, evaluation, np.arange(len(test))), test

    return Design("cross-validated", fitted, fitted, len(folds), False, refits)


def require_folds(name: str, n_folds: int, labels: np.ndarray, is_classifier: bool) -> None:
    """Raise a ValueError unless there is a row for every fold, or one of the largest class."""
    require_count(name, n_folds, 2)
    n_rows = np.bincount(labels).max() if is_classifier else len(labels)
    if n_folds > n_rows:
        what = "the largest class has" if is_classifier else "there are"
        raise ValueError(
            f"{name}={n_folds} folds need as many rows, but {what} {n_rows}; use fewer folds."
        )


def _refuse_parted_groups(forest, folds):
    """Refuse folds that judge rows of a group by forests grown on other rows of that group."""
    groups = getattr(getattr(forest, "_bootstrap", None), "groups", None)
    if groups is None:
        return
    for train, test in folds:
        parted = np.intersect1d(groups[train], groups[test])
        if len(parted):
            raise ValueError(
                f"The forest was fitted with groups of rows, and the folds split {len(parted)} of "
                "them, so training would have seen part of what is held out. Use "
                "on=list(GroupKFold().split(X, y, groups)), or judge it out of bag."
            )
