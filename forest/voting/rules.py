"""Voting rules, which combine the outputs of many models into one.

A vote is the weighted mean of the models' ballots. A ballot is a model's class shares (or number),
or the one class that it prefers. A rule says which ballots are cast and how they are weighted;
`forest.voting.stacking` has the rule that learns its weights.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from cart.primitives.threads import in_parts
from cart.tree.packed import Packed
from cart.tree.traversal import rows_for, sum_of_values

MIN_ROWS_PER_WORKER = 1024  # with fewer rows per thread, one thread is faster
_MOST_WALKS = 1 << 23  # rows times trees between two checks for Ctrl-C: a third of a second
_BLOCK_VALUES = 1 << 21  # outputs of single trees held at a time


class Rule(NamedTuple):
    """A voting rule."""

    is_hard: bool  # whether a ballot is the preferred class, not the class shares
    is_weighted: bool  # whether a model's weight is its out-of-bag score


RULES = {
    "soft": Rule(False, False),
    "majority": Rule(True, False),
    "oob_weighted": Rule(True, True),
    "oob_weighted_soft": Rule(False, True),
}


def ballots(outputs: np.ndarray, is_hard: bool) -> np.ndarray:
    """The ballots of models with given outputs.

    Parameters
    ----------
    outputs : ndarray of shape (..., n_values), float64
        Class shares, or one number.
    is_hard : bool

    Returns
    -------
    ndarray of shape (..., n_values), float64
        With `is_hard`, 1 for the class with the largest share (the first, in a tie) and 0 for the
        others; else the outputs. Numbers do not change.
    """
    n_values = outputs.shape[-1]
    if not is_hard or n_values == 1:
        return outputs
    return (outputs.argmax(axis=-1)[..., np.newaxis] == np.arange(n_values)).astype(np.float64)


def combine(
    outputs: np.ndarray, rule: str = "soft", weight: np.ndarray | None = None
) -> np.ndarray:
    """The vote of several models on several rows.

    Parameters
    ----------
    outputs : ndarray of shape (n_rows, n_models, n_outputs, n_values), float64
        Class shares, or one number.
    rule : {"soft", "majority", "oob_weighted", "oob_weighted_soft"}, default="soft"
    weight : ndarray of shape (n_models, n_outputs), optional
        Non-negative weights of the models, for rules that weight them. If all are 0, models count
        equally.

    Returns
    -------
    ndarray of shape (n_rows, n_outputs, n_values), float64
    """
    is_hard, is_weighted = RULES[rule]
    if weight is None or not is_weighted:
        weight = np.ones(outputs.shape[1:3])
    weight = np.where(weight.sum(axis=0) > 0.0, weight, 1.0)
    return np.einsum("mk,rmkv->rkv", weight / weight.sum(axis=0), ballots(outputs, is_hard))


def scores_of(
    outputs: np.ndarray, truth: np.ndarray, groups: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """The score of a model on rows that it was not fitted on: its accuracy, or its R2.

    Parameters
    ----------
    outputs : ndarray of shape (n_rows, n_outputs, n_values), float64
    truth : ndarray of shape (n_rows, n_outputs), float64
        Positions of the classes, or numbers.
    groups : ndarray of shape (n_rows,), int, optional
        Groups of rows: 0, 1, ...; by default each row is a group.

    Returns
    -------
    scores : ndarray of shape (n_outputs,), float64
        nan if there are no rows, or if all targets are the same number.
    without : ndarray of shape (n_rows, n_outputs), float64
        For each row, the score without it and the others of its group.
    """
    n, n_others = len(truth), len(truth) - _sums(np.ones((len(truth), 1)), groups)
    if outputs.shape[2] > 1:
        good = (outputs.argmax(axis=2) == truth).astype(np.float64)
        total = good.sum(axis=0)
        return _divide(total, n), _divide(total - _sums(good, groups), n_others)
    with np.errstate(over="ignore", invalid="ignore"):  # squares of huge numbers may become nan
        error = (outputs[:, :, 0] - truth) ** 2
        beyond = truth - truth.sum(axis=0) / max(n, 1)
        spread = beyond**2
        # Leaving rows out moves the mean of the others by minus the left-out rows' summed deviation
        # from the mean, divided by the number of the others.
        total_error, total_spread = error.sum(axis=0), spread.sum(axis=0)
        moved = _sums(beyond, groups) ** 2 / np.maximum(n_others, 1)
        spread_without = total_spread - _sums(spread, groups) - moved
        scores = 1.0 - _divide(total_error, total_spread)
        return scores, 1.0 - _divide(total_error - _sums(error, groups), spread_without)


def _sums(values, groups):
    """Sums over the rows of each row's group, (n_rows, n_outputs)."""
    if groups is None:
        return values
    sums = np.zeros((groups.max(initial=-1) + 1, values.shape[1]))
    np.add.at(sums, groups, values)
    return sums[groups]


def _divide(a, b):
    return np.divide(a, b, out=np.full(np.shape(a), np.nan), where=np.greater(b, 0))


def weights_of(scores: np.ndarray) -> np.ndarray:
    """Weights of models with these scores: the scores themselves, or 0 if negative or nan."""
    return np.fmax(scores, 0.0)


def values_of_trees(packed: Packed, X: Any, n_jobs: int | None = None) -> np.ndarray:
    """The values that each tree predicts for each row.

    Parameters
    ----------
    packed : cart.tree.packed.Packed
    X : ndarray of shape (n_rows, n_features), float32 or float64, C order, or csr_matrix
    n_jobs : int or None

    Returns
    -------
    ndarray of shape (n_trees, n_rows, n_outputs * n_values), float64
    """
    n_trees = len(packed.start) - 1
    values = np.zeros((n_trees, X.shape[0], packed.value.shape[1]))
    X = rows_for(packed, X)

    def fill(first_tree, end_tree):
        for tree in range(first_tree, end_tree):
            sum_of_values(packed, X, tree, tree + 1, out=values[tree])

    in_parts(fill, n_trees, n_jobs)
    return values


def vote(
    packed: Packed,
    X: Any,
    n_outputs: int,
    decide: Callable[[np.ndarray], np.ndarray],
    n_jobs: int | None = None,
) -> np.ndarray:
    """The vote of trees by any rule; bit for bit the same for every `n_jobs`.

    Parameters
    ----------
    packed, X : see `values_of_trees`
    n_outputs : int
    decide : callable
        `decide(outputs)` returns the vote on some rows, (n_rows, n_outputs, n_values); see
        `combine`.
    n_jobs : int or None

    Returns
    -------
    ndarray of shape (n_samples, n_outputs, n_values), float64
    """
    n_trees, width = len(packed.start) - 1, packed.value.shape[1]
    shape = (n_outputs, width // n_outputs)
    out = np.empty((X.shape[0], *shape))
    # Use the same blocks for every n_jobs: the last bits of a matrix product may depend on shapes.
    block = max(1, _BLOCK_VALUES // (n_trees * width))

    def fill(first, end):
        for begin in range(first * block, min(end * block, len(out)), block):
            rows = slice(begin, begin + block)
            values = values_of_trees(packed, X[rows])
            out[rows] = decide(values.transpose(1, 0, 2).reshape(-1, n_trees, *shape))

    in_parts(fill, -(-len(out) // block), n_jobs, max_part=1)
    return out


def with_ballots(
    packed: Packed, n_outputs: int, rule: str, weight: np.ndarray | None = None
) -> Packed:
    """Trees whose leaves hold weighted ballots, so that `soft_vote` of them is the vote by a rule.

    Parameters
    ----------
    packed : cart.tree.packed.Packed
        Trees that share no leaves, unless the ballots of pure leaves are equal to their values.
    n_outputs : int
    rule, weight : see `combine`

    Returns
    -------
    cart.tree.packed.Packed
    """
    said = packed.value.reshape(len(packed.value), n_outputs, -1)
    cast = ballots(said, RULES[rule].is_hard)
    if weight is not None:
        weight = np.where(weight.sum(axis=0) > 0.0, weight, 1.0)
        weight = weight / weight.sum(axis=0)
        cast = cast * np.repeat(weight, np.diff(packed.value_start), axis=0)[:, :, np.newaxis]
    return packed._replace(value=cast.reshape(packed.value.shape))


def soft_vote(
    packed: Packed, X: np.ndarray, n_jobs: int | None = None, is_weighed: bool = False
) -> np.ndarray:
    """The mean over trees of the values of leaves: the vote by the rule "soft", or of ballots.

    Parameters
    ----------
    packed : cart.tree.packed.Packed
    X : ndarray of shape (n_samples, n_features), float32 or float64, C order
    n_jobs : int or None
    is_weighed : bool, default=False
        Whether leaves hold values times the weights of trees, so that the sum is the vote.

    Returns
    -------
    ndarray of shape (n_samples, n_values), float64
    """
    out = np.zeros((X.shape[0], packed.value.shape[1]))

    def add(first, end):
        sum_of_values(packed, X[first:end], out=out[first:end])

    n_trees = len(packed.start) - 1
    most = max(MIN_ROWS_PER_WORKER, _MOST_WALKS // n_trees)
    in_parts(add, X.shape[0], n_jobs, MIN_ROWS_PER_WORKER, most)
    if not is_weighed:
        out /= n_trees
    return out
