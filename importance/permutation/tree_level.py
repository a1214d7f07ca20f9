"""Every tree judges its own out-of-bag rows, with each group of columns permuted among them."""

from typing import NamedTuple

import numpy as np
from joblib import effective_n_jobs
from sklearn.utils.parallel import Parallel, delayed

from importance.permutation.expectation import expected_increase
from importance.permutation.prepared_tree import prepare_tree
from importance.permutation.shuffling import seeded, shuffled_increase


class PermutationResult(NamedTuple):
    """What the trees say, one by one: increases of the loss."""

    per_tree: np.ndarray  # (n_trees, n_groups) mean over its rows; nan where it has none
    variance: np.ndarray  # (n_groups,) sum over trees, of their means over shuffles; nan: one each
    n_times: np.ndarray  # (n_samples,) int64: for how many trees a row is out of bag
    row_sum: np.ndarray | None  # (n_samples, n_groups) over the trees where the row is out of bag
    class_sum: np.ndarray | None  # (n_classes, n_groups) over trees, of the mean over its rows
    class_squares: np.ndarray | None  # (n_classes, n_groups) over trees, of that mean squared
    class_times: np.ndarray | None  # (n_classes,) int64: trees with a row of the class

    def error_over_permutations(self):
        """Standard error of the mean over trees, as other shuffles would change it, (n_groups,);
        0 where the expectation was taken, nan where each tree shuffled once."""
        n_trees = np.count_nonzero(~np.isnan(self.per_tree).any(axis=1))
        return np.sqrt(self.variance) / n_trees

    def row_mean(self):
        """Means over the trees where a row is out of bag; nan where there are none."""
        return _ratio(self.row_sum, self.n_times)

    def class_mean(self):
        """Means over the trees that have rows of the class; nan where there are none."""
        return _ratio(self.class_sum, self.class_times)


class Options(NamedTuple):
    """What a user asks for beside the loss; see `importance.oob_permutation`.

    Parameters
    ----------
    per_row, per_class, scale : bool
    loss : str or None
    n_repeats : int or None
        Permutations per tree and group; None takes the expectation over all of them.
    random_state : int, RandomState instance or None
    n_jobs : int or None
    shuffles : callable or None
        Given permutations: `shuffles(tree)` gives `draw(group, n)`, see
        `importance.permutation.shuffling.seeded`.
    """

    per_row: bool = False
    per_class: bool = False
    scale: bool = False
    loss: str | None = None
    n_repeats: int | None = None
    random_state: object = None
    n_jobs: int | None = None
    shuffles: object = None


class _Task(NamedTuple):
    """What is asked of every tree."""

    is_weighted: bool  # do some rows count more than others?
    make_loss: object
    group_of: np.ndarray
    by_row: bool
    by_class: bool
    shuffles: object  # None: the expectation
    n_repeats: int


class TreeResult(NamedTuple):
    """What one tree says of the groups that it uses; of all others it says 0."""

    tree: int
    groups: np.ndarray  # (n_used,)
    has_weight: bool  # has any of the rows?
    increase: np.ndarray  # (n_used,)
    variance: np.ndarray  # (n_used,) of `increase`, over shuffles; nan where there is but one
    rows: np.ndarray | None  # (n_rows,): out of bag
    of_rows: np.ndarray | None  # (n_used, n_rows)
    of_classes: np.ndarray | None  # (n_classes, n_used): 0 where no row is of the class
    has_class: np.ndarray | None  # (n_classes,) bool


def evaluate_trees(fitted, make_loss, grouping, options):
    """Ask every tree.

    Parameters
    ----------
    fitted : FittedForest
        Its weights count in means over rows.
    make_loss : see importance.core.losses
    grouping : importance.core.grouping.Grouping
    options : Options

    Returns
    -------
    PermutationResult

    Raises
    ------
    ValueError
        If no row with a weight is out of bag for any tree.
    """
    shuffles, n_groups = options.shuffles, len(grouping.names)
    if shuffles is None and options.n_repeats is not None:
        shuffles = seeded(options.random_state, len(fitted.trees))
    task = _Task(
        bool((fitted.weight != fitted.weight[0]).any()), make_loss, grouping.group_of,
        options.per_row, options.per_class, shuffles, options.n_repeats or 1,
    )  # fmt: skip
    n_samples = len(fitted.codes)
    per_tree = np.full((len(fitted.trees), n_groups), np.nan)
    variance = np.zeros(n_groups)
    n_times = np.zeros(n_samples, np.int64)
    row_sum = np.zeros((n_samples, n_groups)) if task.by_row else None
    class_sum = class_squares = class_times = None
    if task.by_class:
        class_sum, class_squares = np.zeros((2, fitted.n_classes, n_groups))
        class_times = np.zeros(fitted.n_classes, np.int64)
    for results, times in _evaluate_batches(fitted, task, options.n_jobs):
        n_times += times
        for result in results:
            if task.by_row:
                row_sum[result.rows[:, np.newaxis], result.groups] += result.of_rows.T
            if not result.has_weight:
                continue
            per_tree[result.tree] = 0.0
            per_tree[result.tree, result.groups] = result.increase
            variance[result.groups] += result.variance
            if task.by_class:
                class_sum[:, result.groups] += result.of_classes
                class_squares[:, result.groups] += np.square(result.of_classes)
                class_times += result.has_class
    if np.isnan(per_tree).all():
        raise ValueError("No row is out of bag for any tree; draw fewer rows with max_samples.")
    return PermutationResult(
        per_tree, variance, n_times, row_sum, class_sum, class_squares, class_times
    )


def _evaluate_batches(fitted, task, n_jobs):
    """What batches of trees say, in their order; see `_evaluate_batch`."""
    n_trees, n_threads = len(fitted.trees), effective_n_jobs(n_jobs)
    # By rows an answer is as large as the tree's share of the table: few are held at a time.
    n_batches = n_trees if task.by_row else min(n_trees, 8 * n_threads)
    batches = np.array_split(np.arange(n_trees), n_batches)
    step = 8 * n_threads
    with Parallel(n_jobs=n_jobs, prefer="threads") as parallel:
        for first in range(0, n_batches, step):
            yield from parallel(
                delayed(_evaluate_batch)(fitted, task, batch)
                for batch in batches[first : first + step]
            )


def _evaluate_batch(fitted, task, trees):
    """What some trees say, and for how many of them each row is out of bag."""
    results, n_times = [], np.zeros(len(fitted.codes), np.int64)
    for t in trees:
        rows = fitted.out_of_bag(t)
        n_times[rows] += 1
        results.append(_evaluate_tree(fitted, task, t, rows))
    return results, n_times


def _evaluate_tree(fitted, task, t, rows):
    tree, codes, weight = fitted.trees[t], fitted.codes[rows], fitted.weight[rows]
    has_weight = bool(weight.any())
    if task.shuffles is None:
        prepared, values = prepare_tree(tree, fitted.X, rows, task.group_of)
        groups, loss = prepared.groups, task.make_loss(values, codes)
        if not (task.by_row or task.by_class or task.is_weighted):
            increase = expected_increase(prepared, loss) / max(1, len(rows))
            none = np.zeros(len(groups))
            return TreeResult(t, groups, has_weight, increase, none, None, None, None, None)
        of_rows, variance = expected_increase(prepared, loss, by_row=True), np.zeros(len(groups))
    else:
        groups, of_rows, variance = shuffled_increase(
            tree, fitted.X, rows, task.group_of, task.make_loss, codes, weight, task.shuffles(t),
            task.n_repeats,
        )  # fmt: skip
    result = TreeResult(
        t, groups, has_weight, _mean(of_rows, weight), variance, None, None, None, None
    )
    if task.by_class:
        members = [codes == c for c in range(fitted.n_classes)]
        of_classes = [_mean(of_rows[:, mine], weight[mine]) for mine in members]
        has_class = [weight[mine].any() for mine in members]
        result = result._replace(of_classes=np.array(of_classes), has_class=np.array(has_class))
    return result._replace(rows=rows, of_rows=of_rows) if task.by_row else result


def _ratio(sums, times):
    with np.errstate(invalid="ignore"):
        return sums / times[:, np.newaxis]


def _mean(of_rows, weight):
    """Weighted means over rows, (n_used,); 0 where there is no weight."""
    return (of_rows * weight).sum(axis=1) / (weight.sum() or 1.0)
