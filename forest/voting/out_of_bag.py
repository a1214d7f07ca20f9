"""Out-of-bag predictions: votes of models on rows they were not fitted on, losses and scores."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator

from cart.estimators.class_costs import cheapest, true_shares
from cart.estimators.target import Target
from cart.primitives.user_warning import warn_user
from cart.tree.packed import Packed
from cart.tree.traversal import rows_for, sum_of_values
from forest.voting.rules import RULES, ballots, scores_of, weights_of
from forest.voting.stacking import FOLDS, Stack, cross_fit

NO_ROW = (
    "No row is out of bag for any estimator; fit with bootstrap=True, or draw fewer rows with "
    "max_samples."
)


@dataclass(frozen=True, eq=False, repr=False)
class OutOfBag:
    """Out-of-bag predictions of a forest on its training table, with losses and scores.

    It is returned by the method `out_of_bag` of a fitted forest or Bagging.

    Attributes
    ----------
    y : ndarray of shape (n_samples,) or (n_samples, n_outputs)
        The target, as it was given.
    truth : ndarray of shape (n_samples, n_outputs), float64
        The target as positions of the classes, or as numbers.
    values : ndarray of shape (n_samples, n_outputs, n_values), float64
        Predicted class shares, or numbers; nan for rows that were never out of bag.
    counts : ndarray of shape (n_samples,), int64
        Number of trees for which each row was out of bag.
    classes : list of ndarray, one per output, or None
        Labels; None in regression.
    tree_scores : ndarray of shape (n_trees,), float64
        Accuracy or R2 of each tree on its out-of-bag rows, averaged over outputs; nan if it has no
        such rows.
    curve : ndarray of shape (n_trees,), float64
        `loss` of the first 1, 2, ... trees, over the rows that were out of bag for any of them;
        nan for voting="stacked", which would need a meta-learner for every number of trees.
    costs : ndarray of shape (n_classes, n_classes), or None
        The loss matrix that the forest was fitted with. Shares are then the true ones, and
        predictions are the classes of least expected loss, as the forest's are.
    groups : ndarray of shape (n_samples,), or None
        Groups of rows that the forest draws together; standard errors count a group as one unit.
    """

    y: np.ndarray
    truth: np.ndarray
    values: np.ndarray
    counts: np.ndarray
    classes: list | None
    tree_scores: np.ndarray
    curve: np.ndarray
    costs: np.ndarray | None = None
    groups: np.ndarray | None = None

    def __repr__(self) -> str:
        n_known = np.count_nonzero(self.is_known)
        n_trees = len(self.tree_scores)
        trees = f"{n_trees} tree{'s' * (n_trees > 1)}"
        return f"<OutOfBag: {n_known} of {len(self.y)} rows, {trees}>"

    @classmethod
    def of(
        cls, votes: "OutOfBagVotes", y: np.ndarray, target: Target,
        costs: np.ndarray | None = None, groups: np.ndarray | None = None,
    ) -> Self:  # fmt: skip
        """Make an OutOfBag of the results of `vote_out_of_bag`.

        Raises
        ------
        ValueError
            If no row was ever out of bag.
        """
        if not votes.n_models.any():
            raise ValueError(NO_ROW)
        return cls(
            y, target.codes, true_shares(votes.values, costs), votes.n_models, target.labels,
            votes.scores.mean(axis=1), votes.curve, costs, groups,
        )  # fmt: skip

    @property
    def is_known(self) -> np.ndarray:
        """Whether each row was ever out of bag, (n_samples,) bool."""
        return self.counts > 0

    @property
    def probabilities(self) -> np.ndarray | list[np.ndarray]:
        """Class shares, (n_samples, n_classes), or a list of them, one per output; nan as `values`.

        Raises
        ------
        AttributeError
            In regression.
        """
        if self.classes is None:
            raise AttributeError("Only forests of classification trees have probabilities.")
        shares = [self.values[:, k, : len(labels)] for k, labels in enumerate(self.classes)]
        return shares if len(shares) > 1 else shares[0]

    @property
    def predictions(self) -> np.ndarray:
        """Labels or numbers, in the shape of `y`; nan as `values` (labels are then objects)."""
        if self.classes is None:
            said = self.values[:, :, 0]
        else:
            best = _preferred(self.values, self.costs).argmax(axis=2)
            said = np.column_stack([labels[best[:, k]] for k, labels in enumerate(self.classes)])
            if not self.is_known.all():
                said = said.astype(object)
                said[~self.is_known] = np.nan
        return said.reshape(self.y.shape)

    @cached_property
    def row_losses(self) -> np.ndarray:
        """0-1 loss or squared error of every row, averaged over outputs; nan as `values`."""
        return row_losses(_preferred(self.values, self.costs), self.truth)

    @property
    def loss(self) -> float:
        """Mean of `row_losses`."""
        return self.row_losses[self.is_known].mean()

    @property
    def standard_error(self) -> float:
        """Standard error of `loss` over rows (or groups) from the same source, for this forest."""
        return _standard_error(self.row_losses, self.is_known, self.groups)

    def score(self, metric: Callable, response: str = "predictions", **options: Any) -> Any:
        """Compute any metric on the rows that were ever out of bag.

        Parameters
        ----------
        metric : callable
            A function as in `sklearn.metrics`, called as `metric(y_true, y_pred, **options)`.
        response : {"predictions", "probabilities"}, default="predictions"
            What the metric gets as `y_pred`; with two classes, "probabilities" are those of the
            second class.

        Returns
        -------
        The return value of the metric.
        """
        if not callable(metric):
            raise TypeError(
                f"metric={metric!r} must be callable, such as sklearn.metrics.accuracy_score."
            )
        if response not in ("predictions", "probabilities"):
            raise ValueError(
                f'response must be "predictions" or "probabilities", but is {response!r}.'
            )
        known, said = self.is_known, getattr(self, response)
        if response == "probabilities" and isinstance(said, list):
            raise ValueError('response="probabilities" needs a forest with a single output.')
        if response == "probabilities" and said.shape[1] == 2:
            said = said[:, 1]
        said = said[known]
        if response == "predictions" and self.classes is not None:
            said = said.astype(self.y.dtype)
        return metric(self.y[known], said, **options)

    def compare(self, other: "OutOfBag") -> "OutOfBagComparison":
        """Compare this forest's loss with another's, paired by row.

        Parameters
        ----------
        other : OutOfBag
            Of the same rows in the same order.

        Returns
        -------
        OutOfBagComparison

        Raises
        ------
        TypeError
            If `other` is not an OutOfBag.
        ValueError
            If it has other rows.
        """
        if not isinstance(other, OutOfBag):
            raise TypeError(
                f"compare needs another OutOfBag, but got {type(other).__name__}; pass "
                "forest.out_of_bag(X, y)."
            )
        if not np.array_equal(self.y, other.y):
            raise ValueError("The forests were not fitted on the same rows: their y differ.")
        both = self.is_known & other.is_known
        difference = self.row_losses - other.row_losses
        groups = other.groups if self.groups is None else self.groups
        error = _standard_error(difference, both, groups)
        return OutOfBagComparison(difference[both].mean(), error, int(both.sum()))


class OutOfBagComparison(NamedTuple):
    """Comparison of the losses of two forests on the same rows."""

    difference: float  # of the mean losses, first minus second
    standard_error: float  # over rows, or groups of them, for this pair of forests
    n_rows: int  # rows that were out of bag in both forests


def _standard_error(x, is_known, groups):
    """Standard error of the mean of x over known rows, with groups as units if they are given."""
    beyond = x[is_known] - x[is_known].mean()
    if groups is not None:
        beyond = np.bincount(np.unique(groups[is_known], return_inverse=True)[1], beyond)
    n = len(beyond)
    scale = np.sqrt(n / (n - 1)) / np.count_nonzero(is_known) if n > 1 else np.nan
    return scale * np.sqrt(np.square(beyond).sum())


class OutOfBagVotes(NamedTuple):
    """Out-of-bag votes of models on the rows of their training table."""

    total: np.ndarray  # (n_samples, n_outputs, n_values) float64: sum of weighted ballots
    weight: np.ndarray  # (n_samples, n_outputs, 1) float64: sum of weights, 0 if no model votes
    n_models: np.ndarray  # (n_samples,) int64: number of models for which the row is out of bag
    scores: np.ndarray  # (n_models, n_outputs) float64: accuracy or R2 of each model judged
    curve: np.ndarray  # (n_models,) float64: see OutOfBag; nan while no row was out of bag

    @property
    def values(self) -> np.ndarray:
        """The votes, (n_samples, n_outputs, n_values) float64; nan if no model votes."""
        with np.errstate(invalid="ignore"):
            return self.total / self.weight


Answers = Iterable[tuple[np.ndarray, np.ndarray]]  # rows and outputs, model by model


def vote_out_of_bag(
    answers: Answers, truth: np.ndarray, n_values: int, rule: str,
    costs: np.ndarray | None = None, groups: np.ndarray | None = None, judges: bool = True,
) -> OutOfBagVotes:  # fmt: skip
    """Let models vote on the rows that are out of bag for them.

    If the rule weights models, a model's weight for a row is computed without that row and the
    others of its group.

    Parameters
    ----------
    answers : iterable of (rows, outputs)
        For each model, its out-of-bag rows, (n_rows,) int64, and its outputs for them,
        (n_rows, n_outputs, n_values) float64.
    truth : ndarray of shape (n_samples, n_outputs), float64
        Positions of the classes, or numbers.
    n_values : int
    rule : {"soft", "majority", "oob_weighted", "oob_weighted_soft"}
    costs : ndarray of shape (n_classes, n_classes), optional
        The loss matrix, by which classes are predicted for scores and losses.
    groups : ndarray of shape (n_samples,), int, optional
        Groups of rows that are drawn together: 0, 1, ...
    judges : bool, default=True
        False leaves out the scores and the curve, if the rule does not need them.

    Returns
    -------
    OutOfBagVotes
    """

    def decide(shares):
        return _preferred(true_shares(shares, costs), costs)

    is_hard, is_weighted = RULES[rule]
    shape = (*truth.shape, n_values)
    equal = _Tally.create(shape)
    tally = _Tally.create(shape) if is_weighted else equal
    n_models = np.zeros(len(truth), np.int64)
    model_scores, curve = [], []
    losses = np.zeros(len(truth))
    for rows, outputs in answers:
        n_models[rows] += 1
        ballot = ballots(outputs, is_hard)
        equal.add(rows, ballot, 1.0)
        if not judges and not is_weighted:
            continue
        together = None if groups is None else groups[rows]
        scores, without = scores_of(decide(outputs), truth[rows], together)
        model_scores.append(scores)
        if is_weighted:
            tally.add(rows, ballot, weights_of(without)[:, :, np.newaxis])
        total, weight = tally.sums(rows, equal)
        losses[rows] = row_losses(decide(total / weight), truth[rows])
        n_known = np.count_nonzero(n_models)
        curve.append(losses.sum() / n_known if n_known else np.nan)
    total, weight = tally.sums(slice(None), equal)
    return OutOfBagVotes(total, weight, n_models, np.array(model_scores), np.array(curve))


def stack_out_of_bag(
    answers: Answers,
    n_models: int,
    truth: np.ndarray,
    learner: BaseEstimator | None,
    n_values: Sequence[int],
    seed: int,
    groups: np.ndarray | None = None,
) -> tuple[OutOfBagVotes, Stack]:
    """Train a stack on the out-of-bag outputs of models, and cross-fit it to predict its rows.

    Parameters
    ----------
    answers, truth : see `vote_out_of_bag`
    n_models : int
    learner, n_values : see `forest.voting.stacking.Stack`
    seed : int
        Seed of the folds.
    groups : see `vote_out_of_bag`

    Returns
    -------
    votes : OutOfBagVotes
        Votes on each row by a stack that was not trained on it, nor on others of its group.
    stack : Stack
        Trained on all rows.

    Raises
    ------
    ValueError
        If fewer rows (or groups) were ever out of bag than there are folds.
    """
    n_outputs, width = len(n_values), max(1, *n_values)
    outputs = np.zeros((len(truth), n_models, n_outputs, width))
    has_output = np.zeros((len(truth), n_models), bool)
    scores = np.empty((n_models, n_outputs))
    for model, (rows, said) in enumerate(answers):
        outputs[rows, model] = said
        has_output[rows, model] = True
        scores[model], _ = scores_of(said, truth[rows])
    is_known = np.asarray(has_output.any(axis=1))
    known = np.flatnonzero(is_known)
    what, n_known = "rows", len(known)
    if groups is not None:
        groups = groups[known]
        what, n_known = "groups of rows", len(np.unique(groups))
    if n_known < FOLDS:
        raise ValueError(
            f'voting="stacked" learns from out-of-bag {what}, but only {n_known} were ever out '
            f"of bag, and {FOLDS} are needed. Fit more estimators, or draw fewer {what} with "
            "max_samples."
        )
    table = outputs[known], has_output[known], truth[known]
    values = np.zeros((len(truth), n_outputs, width))
    values[known] = cross_fit(learner, n_values, *table, seed, groups)
    weight = np.tile(is_known[:, np.newaxis, np.newaxis].astype(np.float64), (1, n_outputs, 1))
    n_times = has_output.sum(axis=1)
    votes = OutOfBagVotes(values, weight, n_times, scores, np.full(n_models, np.nan))
    return votes, Stack(learner, n_values).fit(*table, groups)


def outputs_out_of_bag(
    packed: Packed, X: Any, n_outputs: int, out_of_bag: Callable[[int], np.ndarray]
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the out-of-bag rows of each tree, and its outputs for them.

    Parameters
    ----------
    packed : cart.tree.packed.Packed
    X : ndarray of shape (n_samples, n_features), float32 or float64, or sparse
        The training table.
    n_outputs : int
    out_of_bag : callable
        `out_of_bag(t)` returns the out-of-bag rows of tree t.

    Yields
    ------
    rows : ndarray of shape (n_rows,), int64
    outputs : ndarray of shape (n_rows, n_outputs, n_values), float64
    """
    values = np.zeros((X.shape[0], packed.value.shape[1]))
    X = rows_for(packed, X)
    for tree in range(len(packed.start) - 1):
        rows = out_of_bag(tree)
        values[rows] = 0.0
        sum_of_values(packed, X, tree, tree + 1, rows, values)
        yield rows, values[rows].reshape(len(rows), n_outputs, values.shape[1] // n_outputs)


def sum_out_of_bag(
    packed: Packed, X: Any, n_outputs: int, out_of_bag: Callable[[int], np.ndarray]
) -> OutOfBagVotes:
    """Soft votes on the out-of-bag rows, as by `vote_out_of_bag`, without judging the trees.

    Outputs are summed as rows walk down the trees. Parameters are those of `outputs_out_of_bag`.
    """
    n_samples, n_values = X.shape[0], packed.value.shape[1] // n_outputs
    total, n_models = np.zeros((n_samples, n_outputs * n_values)), np.zeros(n_samples, np.int64)
    X = rows_for(packed, X)
    for tree in range(len(packed.start) - 1):
        rows = out_of_bag(tree)
        sum_of_values(packed, X, tree, tree + 1, rows, total)
        n_models[rows] += 1
    weight = np.repeat(n_models.astype(np.float64), n_outputs).reshape(n_samples, n_outputs, 1)
    total = total.reshape(n_samples, n_outputs, n_values)
    return OutOfBagVotes(total, weight, n_models, np.empty((0, n_outputs)), np.empty(0))


class _Tally(NamedTuple):
    """Sums over models, for each row."""

    total: np.ndarray  # (n_samples, n_outputs, n_values) float64: of weighted ballots
    weight: np.ndarray  # (n_samples, n_outputs, 1) float64: of weights

    @classmethod
    def create(cls, shape):
        return cls(np.zeros(shape), np.zeros((*shape[:2], 1)))

    def add(self, rows, ballot, weight):
        self.total[rows] += ballot * weight
        self.weight[rows] += weight

    def sums(self, rows, equal):
        """Sums of ballots and weights of some rows; those of `equal` where all weights are 0."""
        total, weight = self.total[rows], self.weight[rows]
        is_zero = weight == 0.0
        return (
            np.where(is_zero, equal.total[rows], total),
            np.where(is_zero, equal.weight[rows], weight),
        )


def row_losses(values: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """0-1 loss or squared error of each row, averaged over outputs; nan where a value is.

    Parameters
    ----------
    values : ndarray of shape (n_rows, n_outputs, n_values), float64
    truth : ndarray of shape (n_rows, n_outputs), float64

    Returns
    -------
    ndarray of shape (n_rows,), float64
    """
    if values.shape[2] == 1:
        with np.errstate(over="ignore"):
            return ((values[:, :, 0] - truth) ** 2).mean(axis=1)
    is_wrong = (values.argmax(axis=2) != truth).astype(np.float64)
    return np.where(np.isnan(values).any(axis=2), np.nan, is_wrong).mean(axis=1)


def _preferred(shares, costs):
    """Shares whose largest is that of the predicted class, 1 under costs; nan stays nan."""
    if costs is None:
        return shares
    return np.where(np.isnan(shares), np.nan, np.eye(len(costs))[cheapest(shares, costs)])


def score_out_of_bag(
    score: Callable, truth: np.ndarray, guess: np.ndarray, is_known: np.ndarray
) -> float:
    """Score the predictions for the rows that were ever out of bag.

    Parameters
    ----------
    score : callable
        `score(y_true, y_pred)`.
    truth, guess : ndarray of shape (n_samples,) or (n_samples, n_outputs)
    is_known : ndarray of shape (n_samples,), bool
        Whether the row was ever out of bag.

    Returns
    -------
    float
        nan if no row was.

    Warns
    -----
    UserWarning
        If some rows never were; says how many.
    """
    if not is_known.all():
        warn_user(
            "Some inputs do not have OOB scores. This probably means too few estimators were used "
            "to compute any reliable oob estimates. "
            f"{np.count_nonzero(~is_known)} of {len(is_known)} rows were never out of bag: they "
            "are nan in the out-of-bag predictions and left out of oob_score_."
        )
    return score(truth[is_known], guess[is_known]) if is_known.any() else np.nan
