"""Out-of-bag predictions: votes of models on rows that they were not fitted on, losses, scores."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator, is_classifier

from cart.estimators.class_costs import cheapest, true_shares
from cart.estimators.target import Target
from cart.primitives.user_warning import warn_user
from cart.tree.packed import Packed
from cart.tree.traversal import rows_for, sum_of_values
from forest.voting.rules import RULES, ballots, scores_of, weights_of
from forest.voting.stacking import FOLDS, Stack, cross_fit

NO_ROW = (
    "No row is out of bag for any estimator: fit with bootstrap=True, or draw fewer rows with "
    "max_samples."
)


@dataclass(frozen=True, eq=False, repr=False)
class OutOfBag:
    """How a forest does on its own training table, every row judged by trees that have not seen it.

    From the method `out_of_bag` of a fitted forest.

    Attributes
    ----------
    y : ndarray of shape (n_samples,) or (n_samples, n_outputs)
        What was to be predicted.
    truth : ndarray of shape (n_samples, n_outputs), float64
        The same as positions of the classes, or numbers.
    values : ndarray of shape (n_samples, n_outputs, n_values), float64
        Class shares, or numbers; nan in rows that were never out of bag.
    counts : ndarray of shape (n_samples,), int64
        For how many trees each row was out of bag.
    classes : list of ndarray, one per output, or None
    tree_scores : ndarray of shape (n_trees,), float64
        Accuracy or R2 of each tree on its out-of-bag rows, the mean over outputs; nan where it
        has none.
    curve : ndarray of shape (n_trees,), float64
        `loss` of the first 1, 2, ... trees, over the rows that were out of bag for any of them;
        nan for voting="stacked", which would need a meta-learner for every number of trees.
    costs : ndarray of shape (n_classes, n_classes), or None
        The loss matrix that the forest was fitted with: shares are the true ones then, and
        predictions the classes of least expected loss, as of the forest.
    groups : ndarray of shape (n_samples,), or None
        Rows that the forest draws together: in standard errors a group counts as one.
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
        """Gather what `vote_out_of_bag` found.

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
        """(n_samples,) bool: was the row ever out of bag?"""
        return self.counts > 0

    @property
    def probabilities(self) -> np.ndarray | list[np.ndarray]:
        """Class shares, (n_samples, n_classes), or a list of them, one per output; nan as above.

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
        """Labels or numbers, of the shape of `y`; nan (so labels as objects) as above."""
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
        """0-1 loss or squared error of every row, the mean over outputs; nan as above."""
        return row_losses(_preferred(self.values, self.costs), self.truth)

    @property
    def loss(self) -> float:
        """Mean of `row_losses`."""
        return self.row_losses[self.is_known].mean()

    @property
    def standard_error(self) -> float:
        """Of `loss`, over rows, or over groups of rows: for this forest, on others from where these
        come from."""
        return _standard_error(self.row_losses, self.is_known, self.groups)

    def score(self, metric: Callable, response: str = "predictions", **options: Any) -> Any:
        """Any metric of the rows that were ever out of bag.

        Parameters
        ----------
        metric : callable
            As in `sklearn.metrics`: `metric(y_true, y_said, **options)`.
        response : {"predictions", "probabilities"}, default="predictions"
            What it is given; of two classes the probability of the second.

        Returns
        -------
        What the metric does.
        """
        if not callable(metric):
            raise TypeError(
                f"metric={metric!r} must be a function, such as sklearn.metrics.accuracy_score."
            )
        if response not in ("predictions", "probabilities"):
            raise ValueError(
                f'response must be "predictions" or "probabilities", but is {response!r}.'
            )
        known, said = self.is_known, getattr(self, response)
        if response == "probabilities" and isinstance(said, list):
            raise ValueError("A metric of probabilities needs a single output.")
        if response == "probabilities" and said.shape[1] == 2:
            said = said[:, 1]
        said = said[known]
        if response == "predictions" and self.classes is not None:
            said = said.astype(self.y.dtype)
        return metric(self.y[known], said, **options)

    def compare(self, other: "OutOfBag") -> "OutOfBagComparison":
        """How much larger this forest's loss is than another's, paired by row.

        Parameters
        ----------
        other : OutOfBag
            Of the same rows in the same order.

        Returns
        -------
        OutOfBagComparison

        Raises
        ------
        ValueError
            If it is of other rows.
        """
        if not isinstance(other, OutOfBag):
            raise TypeError(
                f"An OutOfBag is compared with another, not with {type(other).__name__}; give it "
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
    """Two forests on the same rows."""

    difference: float  # of the mean losses, first less second
    standard_error: float  # over rows, or groups of them, for this pair of forests
    n_rows: int  # rows that were out of bag in both


def _standard_error(x, is_known, groups):
    """Of the mean over the rows that are known; rows of one group go together."""
    beyond = x[is_known] - x[is_known].mean()
    if groups is not None:
        beyond = np.bincount(np.unique(groups[is_known], return_inverse=True)[1], beyond)
    n = len(beyond)
    scale = np.sqrt(n / (n - 1)) / np.count_nonzero(is_known) if n > 1 else np.nan
    return scale * np.sqrt(np.square(beyond).sum())


class OutOfBagVotes(NamedTuple):
    """What the models say of the rows of their own training table."""

    total: np.ndarray  # (n_samples, n_outputs, n_values) float64: of weighted ballots
    weight: np.ndarray  # (n_samples, n_outputs, 1) float64: their sum, 0 where no model votes
    n_models: np.ndarray  # (n_samples,) int64: for how many the row is out of bag
    scores: np.ndarray  # (n_models, n_outputs) float64: accuracy or R2 of each
    curve: np.ndarray  # (n_models,) float64: see OutOfBag; nan while no row was out of bag

    @property
    def values(self) -> np.ndarray:
        """The votes, (n_samples, n_outputs, n_values) float64; nan where no model votes."""
        with np.errstate(invalid="ignore"):
            return self.total / self.weight


Answers = Iterable[tuple[np.ndarray, np.ndarray]]  # rows and outputs, model by model


def vote_out_of_bag(
    answers: Answers, truth: np.ndarray, n_values: int, rule: str,
    costs: np.ndarray | None = None, groups: np.ndarray | None = None,
) -> OutOfBagVotes:  # fmt: skip
    """The vote of the models for which a row is out of bag.

    Where models are weighed, a model's weight leaves out the row that it votes on, and the others
    of its group.

    Parameters
    ----------
    answers : iterable of (rows, outputs)
        Model by model, its out-of-bag rows, (n_rows,) int64, and what it gives them,
        (n_rows, n_outputs, n_values) float64.
    truth : ndarray of shape (n_samples, n_outputs), float64
        Positions of the classes, or numbers.
    n_values : int
    rule : {"soft", "majority", "oob_weighted", "oob_weighted_soft"}
    costs : ndarray of shape (n_classes, n_classes), optional
        The loss matrix, by which scores and losses are those of the classes predicted.
    groups : ndarray of shape (n_samples,), int, optional
        Rows that the models draw together: 0, 1, ...

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
        together = None if groups is None else groups[rows]
        scores, without = scores_of(decide(outputs), truth[rows], together)
        model_scores.append(scores)
        n_models[rows] += 1
        ballot = ballots(outputs, is_hard)
        equal.add(rows, ballot, 1.0)
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
    """Train a stack on what models say out of bag, and say what others say of its rows.

    Parameters
    ----------
    answers, truth : see `vote_out_of_bag`
    n_models : int
    learner, n_values : see `forest.voting.stacking.Stack`
    seed : int
        Of the folds.
    groups : see `vote_out_of_bag`

    Returns
    -------
    votes : OutOfBagVotes
        Of stacks that were not trained on the row, nor on others of its group (cross-fitted).
    stack : Stack
    """
    n_outputs, width = len(n_values), max(n_values)
    outputs = np.zeros((len(truth), n_models, n_outputs, width))
    cast = np.zeros((len(truth), n_models), bool)
    scores = np.empty((n_models, n_outputs))
    for model, (rows, said) in enumerate(answers):
        outputs[rows, model] = said
        cast[rows, model] = True
        scores[model], _ = scores_of(said, truth[rows])
    is_known = np.asarray(cast.any(axis=1))
    known = np.flatnonzero(is_known)
    what, n_known = "rows", len(known)
    if groups is not None:
        groups = groups[known]
        what, n_known = "groups of rows", len(np.unique(groups))
    if n_known < FOLDS:
        raise ValueError(
            f'voting="stacked" learns from {what} that are out of bag, and only {n_known} ever '
            f"were; {FOLDS} are needed. Fit more estimators, or draw fewer {what} with max_samples."
        )
    table = outputs[known], cast[known], truth[known]
    values = np.zeros((len(truth), n_outputs, width))
    values[known] = cross_fit(learner, n_values, *table, seed, groups)
    weight = np.tile(is_known[:, np.newaxis, np.newaxis].astype(np.float64), (1, n_outputs, 1))
    votes = OutOfBagVotes(values, weight, cast.sum(axis=1), scores, np.full(n_models, np.nan))
    return votes, Stack(learner, n_values).fit(*table, groups)


def outputs_out_of_bag(
    packed: Packed, X: Any, n_outputs: int, out_of_bag: Callable[[int], np.ndarray]
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Tree by tree, its out-of-bag rows and what it gives them.

    Parameters
    ----------
    packed : cart.tree.packed.Packed
    X : ndarray of shape (n_samples, n_features), float32 or float64, C order, or csr_matrix
        The training table.
    n_outputs : int
    out_of_bag : callable
        `out_of_bag(t)` gives the out-of-bag rows of tree t.

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


class _Tally(NamedTuple):
    """Sums over models, row by row."""

    total: np.ndarray  # (n_samples, n_outputs, n_values) float64: of weighted ballots
    weight: np.ndarray  # (n_samples, n_outputs, 1) float64

    @classmethod
    def create(cls, shape):
        return cls(np.zeros(shape), np.zeros((*shape[:2], 1)))

    def add(self, rows, ballot, weight):
        self.total[rows] += ballot * weight
        self.weight[rows] += weight

    def sums(self, rows, equal):
        """Ballots and weights of some rows; those of the tally `equal` where all weights are 0."""
        total, weight = self.total[rows], self.weight[rows]
        is_zero = weight == 0.0
        return (
            np.where(is_zero, equal.total[rows], total),
            np.where(is_zero, equal.weight[rows], weight),
        )


def row_losses(values: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """0-1 loss or squared error of each row, the mean over outputs; nan where a value is.

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
    """Shares of which the largest is that of the class predicted; nan as above."""
    if costs is None:
        return shares
    return np.where(np.isnan(shares), np.nan, np.eye(len(costs))[cheapest(shares, costs)])


def default_score(estimator: BaseEstimator) -> Callable:
    """The function that scores out-of-bag predictions: accuracy of a classifier, else R2."""
    from sklearn.metrics import accuracy_score, r2_score  # as scikit-learn's mixins: slow to import

    return accuracy_score if is_classifier(estimator) else r2_score


def score_out_of_bag(
    score: Callable, truth: np.ndarray, guess: np.ndarray, is_known: np.ndarray
) -> float:
    """Score of the rows that were ever out of bag.

    Parameters
    ----------
    score : callable
        `score(y_true, y_pred)`.
    truth, guess : ndarray of shape (n_samples,) or (n_samples, n_outputs)
    is_known : ndarray of shape (n_samples,), bool
        Was the row ever out of bag?

    Returns
    -------
    float
        nan where no row was.

    Warns
    -----
    UserWarning
        If some rows never were, with their number.
    """
    if not is_known.all():
        warn_user(
            "Some inputs do not have OOB scores. This probably means too few estimators were used "
            "to compute any reliable oob estimates. "
            f"{np.count_nonzero(~is_known)} of {len(is_known)} rows were never out of bag: they "
            "are nan in the out-of-bag predictions and left out of oob_score_."
        )
    return score(truth[is_known], guess[is_known]) if is_known.any() else np.nan
