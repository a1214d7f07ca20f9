"""Permutation importance by tree: each tree's loss on its own out-of-bag rows, by column group."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from cart.primitives.progress import ProgressReporter
from cart.primitives.threads import effective_n_threads
from forest.growing.workers import each_step, results_of, shares_memory
from importance.core.fitted_forest import NO_ROW, FittedForest
from importance.core.groups import Groups
from importance.core.losses import INFINITE, MakeLoss
from importance.core.result import known_trees
from importance.permutation.drawn_rows import DrawnRows, judges_of
from importance.permutation.expectation import expected_increase
from importance.permutation.influence import Influence, error_over_data
from importance.permutation.prepared_tree import prepare_tree
from importance.permutation.shuffling import seeded, shuffled_increase

_BATCH = 8  # trees


class Options(NamedTuple):
    """What a user asks for besides the loss; see `importance.oob_permutation`.

    `n_repeats` is None for the expectation over all permutations. `shuffles` supplies given
    permutations: `shuffles(tree)` returns `draw(group, n)`, see
    `importance.permutation.shuffling.seeded`. Without `drawn`, all out-of-bag rows judge a tree.
    """

    per_row: bool = False
    per_class: bool = False
    scale: bool = False
    loss: str | None = None
    n_repeats: int | None = None
    random_state: Any = None
    n_jobs: int | None = None
    shuffles: Callable | None = None
    has_influence: bool = False
    drawn: DrawnRows | None = None
    verbose: int = 0
    callback: Callable | None = None


class TreeResult(NamedTuple):
    """Increase of one tree's loss, by group that the tree uses; for other groups it is 0."""

    groups: np.ndarray  # (n_used,)
    has_weight: bool  # whether any of the rows has a weight
    share: float  # of its out-of-bag rows that judged it
    increase: np.ndarray  # (n_used,)
    variance: np.ndarray  # (n_used,) of `increase`, over shuffles; nan with a single shuffle
    rows: np.ndarray | None = None  # (n_rows,): the rows that judged it
    of_rows: np.ndarray | None = None  # (n_used, n_rows)
    of_classes: np.ndarray | None = None  # (n_classes, n_used): 0 where no row is of the class
    has_class: np.ndarray | None = None  # (n_classes,) bool


class PermutationResult(NamedTuple):
    """Increases of the loss of all trees, and sums over trees."""

    per_tree: np.ndarray  # (n_trees, n_groups) mean over its rows; nan for a tree without any
    variance: np.ndarray  # (n_groups,) `variance` summed over trees; nan with one shuffle each
    share: np.ndarray  # (n_trees,) share of a tree's out-of-bag rows that judged it
    n_times: np.ndarray  # (n_samples,) int64: for how many trees a row is out of bag
    row_times: np.ndarray  # (n_samples,) int64: how many trees it judges; empty if not asked for
    row_sum: np.ndarray  # (n_samples, n_groups) sum over the trees that the row judges
    class_sum: np.ndarray  # (n_classes, n_groups) sum over trees of the mean over class rows
    class_squares: np.ndarray  # (n_classes, n_groups) sum over trees of that mean squared
    class_times: np.ndarray  # (n_classes,) int64: trees with a row of the class
    influence: Influence | None  # if asked for

    @classmethod
    def empty(cls, fitted: FittedForest, n_groups: int, options: Options) -> "PermutationResult":
        """The result of no tree yet; sums that are not asked for have no rows."""
        n_rows = len(fitted.codes) if options.per_row else 0
        n_classes = fitted.n_classes if options.per_class else 0
        return cls(
            np.full((len(fitted.trees), n_groups), np.nan), np.zeros(n_groups),
            np.ones(len(fitted.trees)), np.zeros(len(fitted.codes), np.int64),
            np.zeros(n_rows, np.int64), np.zeros((n_rows, n_groups)),
            np.zeros((n_classes, n_groups)), np.zeros((n_classes, n_groups)),
            np.zeros(n_classes, np.int64),
            Influence.empty(fitted.units, n_groups) if options.has_influence else None,
        )  # fmt: skip

    def add(self, t: int, result: TreeResult) -> None:
        """Add the result of tree t."""
        groups = result.groups
        self.share[t] = result.share
        if result.rows is not None and result.of_rows is not None:
            self.row_times[result.rows] += 1
            self.row_sum[result.rows[:, np.newaxis], groups] += result.of_rows.T
        if not result.has_weight:
            return
        if not np.isfinite(result.increase).all():
            raise ValueError(INFINITE)
        self.per_tree[t] = 0.0
        self.per_tree[t, groups] = result.increase
        self.variance[groups] += result.variance
        if result.of_classes is not None:
            self.class_sum[:, groups] += result.of_classes
            self.class_squares[:, groups] += np.square(result.of_classes)
            self.class_times[:] += result.has_class

    def error_over_permutations(self) -> np.ndarray:
        """Standard error over shuffles of the mean over trees, (n_groups,).

        0 if the expectation was taken, nan if each tree shuffled once.
        """
        return np.sqrt(self.variance) / len(known_trees(self.per_tree))

    def error_over_data(self, fitted: FittedForest, over_trees: np.ndarray) -> np.ndarray:
        """Standard error over data of the mean over trees, (n_groups,); see `Influence`."""
        assert self.influence is not None
        _, total, of_draws = self.influence
        n_trees, n_units = len(known_trees(self.per_tree)), fitted.units.max() + 1
        has_classes = fitted.is_classification
        return error_over_data(total, n_units, n_trees, has_classes, over_trees, of_draws)

    def row_mean(self) -> np.ndarray:
        """Mean over the trees that a row judges; nan if there are none."""
        return _ratio(self.row_sum, self.row_times)

    def class_mean(self) -> np.ndarray:
        """Mean over the trees that have rows of the class; nan if there are none."""
        return _ratio(self.class_sum, self.class_times)


def evaluate_trees(
    fitted: FittedForest, make_loss: MakeLoss, groups: Groups, options: Options
) -> PermutationResult:
    """Increase of every tree's loss with each group permuted among its out-of-bag rows.

    Means over rows use the weights of `fitted`. Raises ValueError if no row with a weight is out of
    bag for any tree.
    """
    if options.shuffles is None and options.n_repeats is not None:
        options = options._replace(shuffles=seeded(options.random_state, len(fitted.trees)))
    total = PermutationResult.empty(fitted, len(groups), options)
    n_trees, n_threads = len(fitted.trees), effective_n_threads(options.n_jobs)
    # By row, a result is as large as the tree's share of the table: hold only a few at a time.
    # The influence is summed by batches that do not depend on `n_jobs`: its rounding neither.
    n_batches = -(-n_trees // _BATCH) if options.has_influence else min(n_trees, 8 * n_threads)
    n_batches = n_trees if options.per_row else n_batches
    batches = np.array_split(np.arange(n_trees), n_batches)
    step = 8 * n_threads
    with ProgressReporter(n_trees, "tree", options.verbose, options.callback) as watch:
        # Threads report every tree; processes cannot, so their trees are reported on return.
        known_here = watch if shares_memory() else None
        given = fitted, make_loss, groups.group_of, options._replace(callback=None)
        for first in range(0, n_batches, step):
            some = batches[first : first + step]
            tasks = (
                (_evaluate_batch, *given, batch, total.influence, known_here) for batch in some
            )
            with results_of(tasks, options.n_jobs) as answers:
                for batch, (results, n_times, influence) in zip(some, answers, strict=True):
                    total.n_times[:] += n_times
                    if total.influence is not None:
                        total.influence.merge(influence)
                    for t, result in zip(batch, results, strict=True):
                        total.add(t, result)
                        if known_here is None:
                            watch.step()
    if np.isnan(total.per_tree).all():
        raise ValueError(NO_ROW)
    return total


def _evaluate_batch(fitted, make_loss, group_of, options, trees, influence, watch):
    """The results of some trees, how often they leave each row out of bag, and the influence."""
    results, n_times = [], np.zeros(len(fitted.codes), np.int64)
    influence = None if influence is None else influence.again()
    for t in each_step(trees, watch):
        rows = fitted.out_of_bag(t)
        n_times[rows] += 1
        judges = judges_of(t, rows, options.drawn)
        results.append(_evaluate_tree(fitted, make_loss, group_of, options, t, judges, influence))
    return results, n_times, influence


def _evaluate_tree(fitted, make_loss, group_of, options, t, judges, influence):
    """The TreeResult of tree t; what its rows contribute is added to the influence."""
    rows, share, factor = judges
    tree, codes, weight = fitted.trees[t], fitted.codes[rows], fitted.weight[rows]
    has_weight = bool(weight.any())
    if options.shuffles is None:
        prepared, values = prepare_tree(tree, fitted.X, rows, group_of)
        groups, loss = prepared.groups, make_loss(values, codes)
        variance = np.zeros(len(groups))
        is_by_row = options.per_row or options.per_class or influence is not None
        sums, of_rows = expected_increase(prepared, loss, is_by_row or fitted.is_weighted)
        of_rows, sums = factor * of_rows, factor * sums
        increase = _mean(of_rows, weight) if fitted.is_weighted else sums / max(1, len(rows))
    else:
        groups, of_rows, variance = shuffled_increase(
            tree, fitted.X, rows, group_of, make_loss, codes, weight, options.shuffles(t),
            options.n_repeats or 1,
        )  # fmt: skip
        of_rows, variance = factor * of_rows, factor**2 * variance
        increase = _mean(of_rows, weight)
    result = TreeResult(groups, has_weight, share, increase, variance)
    if influence is not None and has_weight:
        influence.add(groups, result.increase, rows, of_rows, weight, share)
    if options.per_class:
        members = [codes == c for c in range(fitted.n_classes)]
        of_classes = [_mean(of_rows[:, mine], weight[mine]) for mine in members]
        has_class = [weight[mine].any() for mine in members]
        result = result._replace(of_classes=np.array(of_classes), has_class=np.array(has_class))
    return result._replace(rows=rows, of_rows=of_rows) if options.per_row else result


def _ratio(sums, times):
    with np.errstate(invalid="ignore"):
        return sums / times[:, np.newaxis]


def _mean(of_rows, weight):
    """Weighted mean over rows, (n_used,); 0 if there is no weight."""
    return (of_rows * weight).sum(axis=1) / (weight.sum() or 1.0)
