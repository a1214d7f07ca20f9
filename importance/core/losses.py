"""Losses of single predictions: 0-1, Brier, squared, absolute and Poisson deviance.

A loss is a NamedTuple with the method `at(leaf, row)`, made for each tree from the values of its
nodes and the codes of the rows. Kernels call it for one row, `of_rows` for all of them.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.special import xlogy

from cart.estimators.class_costs import cheapest, true_shares
from cart.jit.decorators import dispatch
from importance.core.fitted_forest import is_classification

INFINITE = "The loss is infinite: y is too large to be squared; divide y by a constant."


class Loss(Protocol):
    """Loss of a row in a leaf, or of arrays of rows in their leaves."""

    def at(self, leaf: Any, row: Any) -> Any: ...


# make_loss(values, codes), with node values (n_nodes, n_values) and row codes (n_rows,)
MakeLoss = Callable[[np.ndarray, np.ndarray], Loss]


@dispatch
def at(loss, leaf, row):
    """Loss of a row in a leaf."""


def of_rows(loss: Loss, leaves: np.ndarray) -> np.ndarray:
    """Loss of every row in its leaf, (n_rows,)."""
    return loss.at(leaves, slice(None))


def of_predictions(make_loss: MakeLoss, values: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Loss of every row for the values predicted for it, (n_rows, n_values)."""
    return of_rows(make_loss(values, codes), np.arange(len(codes)))


class LabelLoss(NamedTuple):
    """A loss that depends only on the leaf and on the row's class."""

    table: np.ndarray  # (n_nodes, n_classes) float64
    codes: np.ndarray  # (n_rows,) int64

    def at(self, leaf: Any, row: Any) -> Any:
        return self.table[leaf, self.codes[row]]


class SquaredLoss(NamedTuple):
    """Squared difference of the leaf's mean and the row's target."""

    means: np.ndarray  # (n_nodes,) float64
    targets: np.ndarray  # (n_rows,) float64

    def at(self, leaf: Any, row: Any) -> Any:
        difference = self.means[leaf] - self.targets[row]
        return difference * difference


class AbsoluteLoss(NamedTuple):
    """Distance of the leaf's value from the row's target."""

    values: np.ndarray  # (n_nodes,) float64
    targets: np.ndarray  # (n_rows,) float64

    def at(self, leaf: Any, row: Any) -> Any:
        return abs(self.values[leaf] - self.targets[row])


class PoissonLoss(NamedTuple):
    """Poisson deviance: 2 (mean - target log(mean) + rest), where rest only depends on the row."""

    means: np.ndarray  # (n_nodes,) float64
    logs: np.ndarray  # (n_nodes,) float64: logarithms of the means
    targets: np.ndarray  # (n_rows,) float64
    rest: np.ndarray  # (n_rows,) float64: the part that does not depend on the leaf

    def at(self, leaf: Any, row: Any) -> Any:
        return 2.0 * (self.means[leaf] - self.targets[row] * self.logs[leaf] + self.rest[row])


def zero_one(values: np.ndarray, codes: np.ndarray) -> LabelLoss:
    """1 if the most probable class (the first, in a tie) is not the row's class, else 0."""
    wrong = np.ones_like(values)
    wrong[np.arange(len(values)), values.argmax(axis=1)] = 0.0
    return LabelLoss(wrong, codes.astype(np.int64))


def brier(values: np.ndarray, codes: np.ndarray) -> LabelLoss:
    """Sum over classes of (share - 1 if it is the row's class)^2 (Brier 1950, all classes)."""
    squares = np.square(values).sum(axis=1, keepdims=True)
    return LabelLoss(squares - 2.0 * values + 1.0, codes.astype(np.int64))


def true_class(values: np.ndarray, codes: np.ndarray) -> LabelLoss:
    """(1 - share of the row's class)^2, without other classes (ranger's probability forests)."""
    return LabelLoss(np.square(1.0 - values), codes.astype(np.int64))


def squared_error(values: np.ndarray, codes: np.ndarray) -> SquaredLoss:
    """(mean - target)^2. Raises ValueError if the sum of such squares may overflow."""
    largest = max(np.abs(values).max(), np.abs(codes).max(initial=0.0))
    if largest > np.sqrt(np.finfo(np.float64).max / (4 * max(len(codes), 1))):
        raise ValueError(INFINITE)
    return SquaredLoss(np.require(values[:, 0], requirements=["C", "W"]), codes)


def absolute_error(values: np.ndarray, codes: np.ndarray) -> AbsoluteLoss:
    """|value - target|."""
    return AbsoluteLoss(np.require(values[:, 0], requirements=["C", "W"]), codes)


def poisson(values: np.ndarray, codes: np.ndarray) -> PoissonLoss:
    """Poisson deviance, 2 (target log(target / mean) + mean - target), as in scikit-learn.

    Raises ValueError if a target is negative, or a mean is not positive.
    """
    means = np.require(values[:, 0], requirements=["C", "W"])
    if codes.min(initial=0.0) < 0.0:
        raise ValueError(
            f'loss="poisson" needs counts of at least 0, but y holds {codes.min()}; use '
            '"squared_error" or "absolute_error".'
        )
    if means.min(initial=np.inf) <= 0.0:
        raise ValueError(
            f'loss="poisson" needs predictions above 0, but the forest predicts {means.min()} in '
            'a leaf; fit it with criterion="poisson" or a larger min_samples_leaf, or use '
            '"squared_error" or "absolute_error".'
        )
    return PoissonLoss(means, np.log(means), codes, xlogy(codes, codes) - codes)


# Losses by the names that users pass. The first is the default of every measure and test. It is not
# the 0-1 loss, which only sees changes of the predicted class, and whose ties make p-values coarse.
CLASSIFICATION: dict[str, MakeLoss] = {"brier": brier, "zero_one": zero_one}
REGRESSION: dict[str, MakeLoss] = {
    "squared_error": squared_error,
    "absolute_error": absolute_error,
    "poisson": poisson,
}


def choose_loss(name: str | None, forest: Any) -> tuple[str, MakeLoss]:
    """The name and the function of a loss, by default of the Brier score or squared error.

    It judges the forest's predictions: with a loss matrix, the shares under the priors and the
    class of least expected loss. Raises ValueError if it is not a loss of the forest's task.
    """
    has_classes = is_classification(forest)
    losses = CLASSIFICATION if has_classes else REGRESSION
    task = "classification" if has_classes else "regression"
    name = next(iter(losses)) if name is None else name
    if not isinstance(name, str) or name not in losses:
        raise ValueError(f"loss={name!r} is not a loss of {task}; use one of {sorted(losses)}.")
    return name, as_predicted(losses[name], forest)


def as_predicted(make_loss: MakeLoss, forest: Any) -> MakeLoss:
    """Let a loss, which gets the values of nodes, judge the forest's predictions.

    With a loss matrix, the values are shares under altered priors (see
    `cart.estimators.class_costs`), so that they are converted first.
    """
    costs = getattr(forest, "loss_", None)
    return make_loss if costs is None else partial(_under_costs, make_loss, costs)


def _under_costs(make_loss, costs, values, codes):
    shares, classes = predictions_of(values, costs)
    return make_loss(np.eye(len(costs))[classes] if make_loss is zero_one else shares, codes)


def predictions_of(values: np.ndarray, costs: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Predicted class shares and classes, from mean votes (n_rows, n_classes).

    `costs` is the loss matrix that the forest was fitted with.
    """
    shares = true_shares(values, costs)
    return shares, cheapest(shares, costs)
