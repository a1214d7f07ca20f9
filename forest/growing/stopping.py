"""When to stop growing trees: when the out-of-bag loss and the order of importances are stable.

Given the table, trees are independent, so the error due to their finite number can be estimated
from them. Trees are dealt into groups, and the delete-a-group jackknife gives the standard error
and the bias of the out-of-bag loss, compared to a forest of infinitely many trees. Importances are
means over trees, whose standard error is that of a mean.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from time import perf_counter
from typing import NamedTuple

import numpy as np

from cart.estimators.class_costs import true_shares
from cart.files import storable
from cart.primitives.progress import ProgressReporter
from cart.tree.tree import Tree, impurity_decrease
from forest.growing.interruption import Interruption

FIRST_TREES, MIN_TREES, MAX_TREES = 8, 48, 10_000
_GROUPS = 12
# The loss is estimated on at most this many rows; more would hardly improve the estimate.
_MAX_ROWS = 20_000
_LEADERS = 5
_REACH = 1.96  # standard errors to either side: 95 %
# Tolerated errors: of the loss, as a share of it, or of its standard error over rows (other rows
# would then change it more than more trees); and of the difference of two importances (sum 1).
LOSS_TOLERANCE, ERROR_TOLERANCE, IMPORTANCE_TOLERANCE = 0.01, 0.5, 0.01
_ROUNDING = 1e-12  # times the largest target, squared: a smaller loss is 0 but for rounding


class Stability(NamedTuple):
    """How much a forest's loss and importances still depend on its number of trees.

    The loss is the Brier score of `predict_proba`, or the squared error, averaged over out-of-bag
    rows and outputs; the parameter `loss` does not enter it. Its interval (1.96 standard errors to
    either side, from 12 groups of trees) is for the loss of infinitely many trees. Since growth
    ends when the interval is narrow, on small tables it contains that loss in fewer than 95 % of
    cases. The importances are the mean decrease in impurity.
    """

    n_trees: int
    loss: float
    interval: tuple  # (low, high)
    # Whether the interval is within 1 % of the loss, or within half of its standard error over rows
    is_loss_settled: bool
    leaders: np.ndarray  # (n_leaders,) int64: the five most important features, in order
    # Whether neighbours differ significantly, or their difference is known to within 0.01
    is_order_settled: bool
    # "stability", "max_time", "max_memory", "callback", "interrupt" or "the number of trees"
    stopped_by: str

    @property
    def is_stable(self) -> bool:
        return self.is_loss_settled and self.is_order_settled


storable("Stability", Stability)


class StabilityEstimator:
    """Estimates `Stability` from sums of out-of-bag outputs over groups of trees.

    Parameters
    ----------
    truth : ndarray of shape (n_samples, n_outputs), float64
        Positions of the classes, or numbers.
    n_values : int
        Number of values of a leaf per output.
    costs : ndarray of shape (n_classes, n_classes), optional
        The loss matrix under which the shares of leaves are altered; true shares are judged.
    """

    def __init__(self, truth: np.ndarray, n_values: int, costs: np.ndarray | None = None) -> None:
        self._costs = costs
        self._n_samples = n_samples = len(truth)
        self.rows = np.sort(np.random.RandomState(0).permutation(n_samples)[:_MAX_ROWS])
        self._truth = truth[self.rows, :, np.newaxis]
        if n_values > 1:
            self._truth = (self._truth == np.arange(n_values)).astype(np.float64)
        self._total = np.zeros((_GROUPS, *self._truth.shape))
        self._n_votes = np.zeros((_GROUPS, len(self.rows)))
        self._importances: list[np.ndarray] = []

    @property
    def n_trees(self) -> int:
        return len(self._importances)

    def add(self, trees: Sequence[Tree], answers: Iterable[tuple[np.ndarray, np.ndarray]]) -> None:
        """Add trees.

        Parameters
        ----------
        trees : sequence of cart.tree.tree.Tree
        answers : iterable of (rows, outputs)
            For each tree, those of `self.rows` that are out of bag, and its outputs for them; see
            `forest.voting.out_of_bag`.
        """
        for tree, (rows, outputs) in zip(trees, answers, strict=True):
            group = self.n_trees % _GROUPS
            places = np.searchsorted(self.rows, rows)
            self._total[group, places] += outputs
            self._n_votes[group, places] += 1
            self._importances.append(impurity_decrease(tree, normalize=True))

    def judge(self, stopped_by: str = "") -> Stability:
        """Estimate the stability of the trees added so far.

        Returns
        -------
        Stability
        """
        loss, error, bias, error_over_rows = map(float, self._estimate_loss())
        middle, reach = loss - bias, _REACH * error
        rounding = np.square(_ROUNDING * np.abs(self._truth).max(initial=0.0))
        tolerance = max(LOSS_TOLERANCE * loss, ERROR_TOLERANCE * error_over_rows, rounding)
        leaders, is_order_settled = self._compare_leaders()
        is_loss_settled = bool(abs(bias) + reach <= tolerance)  # False for nan
        return Stability(
            self.n_trees, loss, (middle - reach, middle + reach), is_loss_settled, leaders,
            is_order_settled, stopped_by,
        )  # fmt: skip

    def _estimate_loss(self):
        """Loss, its standard error over trees, its bias, and its standard error over rows."""
        total, n_votes = self._total.sum(axis=0), self._n_votes.sum(axis=0)
        # Only rows with votes whichever group is left out, so that all losses are of the same rows.
        known = (n_votes - self._n_votes.max(axis=0)) > 0
        if not known.any():
            return np.nan, np.nan, np.nan, np.nan
        losses = self._losses(total, n_votes, known)
        without = np.array(
            [
                self._losses(total - self._total[g], n_votes - self._n_votes[g], known).mean()
                for g in range(_GROUPS)
            ]
        )
        error = np.sqrt((_GROUPS - 1) * without.var())
        bias = (_GROUPS - 1) * (without.mean() - losses.mean())
        # The error for all rows of the table, of which these are a sample.
        error_over_rows = losses.std() / np.sqrt(len(losses) * self._n_samples / len(self.rows))
        return losses.mean(), error, bias, error_over_rows

    def _losses(self, total, n_votes, known):
        mean = true_shares(total[known] / n_votes[known, np.newaxis, np.newaxis], self._costs)
        return ((mean - self._truth[known]) ** 2).sum(axis=2).mean(axis=1)

    def _compare_leaders(self):
        """The leading features, and whether their order is settled."""
        per_tree = np.array(self._importances)
        order = np.argsort(-per_tree.mean(axis=0), kind="stable")
        leaders = order[:_LEADERS]
        # Compare neighbours in the order, including the first feature behind the leaders.
        steps = per_tree[:, order[: len(leaders) + 1]]
        difference = steps[:, :-1] - steps[:, 1:]
        reach = _REACH * difference.std(axis=0) / np.sqrt(len(per_tree))
        is_settled = (difference.mean(axis=0) > reach) | (reach <= IMPORTANCE_TOLERANCE)
        return leaders, bool(is_settled.all())


class Budget:
    """Limits of growing: time, memory, number of trees, and the user's callback.

    Parameters
    ----------
    max_time : float or None
        Seconds from now.
    max_memory : int or None
        Bytes of all node arrays.
    trees : list of cart.tree.tree.Tree
        The trees that exist already.
    reporter : cart.primitives.progress.ProgressReporter
        Its callback may end growth.
    """

    def __init__(
        self,
        max_time: float | None,
        max_memory: int | None,
        trees: list[Tree],
        reporter: ProgressReporter,
    ) -> None:
        self._reporter = reporter
        self._start = perf_counter()
        self._max_time = max_time
        self._max_memory = max_memory
        self._n_trees = self._n_bytes = 0
        self.spend(trees)
        self._n_old = len(trees)

    def spend(self, trees: Sequence[Tree]) -> None:
        """Note that these trees were grown."""
        self._n_trees += len(trees)
        self._n_bytes += sum(tree.nbytes for tree in trees)

    def left(self) -> tuple[float, str]:
        """How many more trees may be grown, and which limit ends growth first.

        Returns
        -------
        n_trees : float
        reason : str
        """
        n_new = self._n_trees - self._n_old
        left: dict[str, float] = {"the number of trees": MAX_TREES - self._n_trees}
        if self._max_time is not None:
            seconds = perf_counter() - self._start
            first = FIRST_TREES if seconds < self._max_time else 0
            left["max_time"] = (self._max_time / seconds - 1.0) * n_new if n_new else first
        if self._max_memory is not None:
            per_tree = self._n_bytes / max(self._n_trees, 1)
            spare = self._max_memory - self._n_bytes
            left["max_memory"] = spare / per_tree if self._n_trees else FIRST_TREES
        if self._reporter.is_stopped:
            left["callback"] = 0
        reason = min(left, key=left.__getitem__)
        return left[reason], reason


def grow_until_stable(
    grow: Callable, ask: Callable, seeds: Iterator[int], judge: StabilityEstimator, budget: Budget,
    interruption: Interruption,
) -> tuple[list[tuple[Tree, int]], Stability]:  # fmt: skip
    """Grow trees until `judge` finds them stable.

    Parameters
    ----------
    grow : callable
        `grow(seeds)` returns a tree per seed, or None for those that Ctrl-C left out.
    ask : callable
        `ask(trees, seeds)` yields the out-of-bag (rows, outputs) of each tree, among `judge.rows`.
    seeds : iterator of int
    judge : StabilityEstimator
        Has the trees that exist already.
    budget : Budget
    interruption : forest.growing.interruption.Interruption
        The interruption of the fit.

    Returns
    -------
    grown : list of (cart.tree.tree.Tree, int)
        The trees and their seeds.
    stability : Stability

    Raises
    ------
    KeyboardInterrupt
        If the user interrupted and nothing was grown.
    """
    grown: list[tuple[Tree, int]] = []
    reason = "stability"
    while judge.n_trees < MIN_TREES or not judge.judge().is_stable:
        n_left, reason = budget.left()
        if n_left < 1 and judge.n_trees > 0:
            break
        n = max(1, min(int(n_left), max(FIRST_TREES, judge.n_trees // 4)))
        batch = list(islice(seeds, n))
        new = [pair for pair in zip(grow(batch), batch, strict=True) if pair[0]]
        reason = "interrupt" if interruption.is_cut else "stability"
        if new:
            trees, used = zip(*new, strict=True)
            judge.add(trees, ask(trees, used))
            budget.spend(trees)
        elif not grown:
            raise KeyboardInterrupt
        grown += new
        if reason == "interrupt":
            break
    return grown, judge.judge(reason)
