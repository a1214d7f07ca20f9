"""The out-of-bag score of a forest over partitions, each of which judges its rows in place."""

from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator

from cart.primitives.user_warning import warn_user
from forest.partitioned.table.in_bag import InBag
from forest.partitioned.table.partitions import Kind, target_of, values_of
from forest.voting.out_of_bag import outputs_out_of_bag, vote_out_of_bag


class Judged(NamedTuple):
    """Sums over rows from which the score of out-of-bag votes follows."""

    n_rows: int
    n_known: int  # rows that were ever out of bag; the following fields are about these
    loss: float  # number of wrong votes, or the sum of squared errors
    mean: float  # of the target, in regression
    spread: float  # sum of squared deviations of the target from the mean

    def join(self, other: "Judged") -> "Judged":
        """Join the sums over two sets of rows (Chan, Golub and LeVeque 1979)."""
        n = self.n_known + other.n_known
        share = other.n_known / n if n else 0.0
        step = other.mean - self.mean
        return Judged(
            self.n_rows + other.n_rows, n, self.loss + other.loss, self.mean + share * step,
            self.spread + other.spread + self.n_known * share * step * step,
        )  # fmt: skip

    def score(self, has_classes: bool) -> float:
        """Accuracy or R2; nan if too few rows were out of bag.

        Warns
        -----
        UserWarning
            If rows were never out of bag.
        """
        if self.n_known < self.n_rows:
            warn_user(
                f"{self.n_rows - self.n_known} of {self.n_rows} rows were never out of bag, so "
                "they are left out of oob_score_. Grow more trees to reach them."
            )
        if self.n_known < (1 if has_classes else 2):
            return np.nan
        if not has_classes and self.spread == 0.0:  # as scikit-learn's r2_score
            return float(self.loss == 0.0)
        total = self.n_known if has_classes else self.spread
        # Accuracy is a ratio of whole numbers, rounded once, as on one machine.
        return (total - self.loss) / total if has_classes else 1.0 - self.loss / total


def judge(X: Any, y: Any, span: tuple, model: BaseEstimator, kind: Kind, in_bag: InBag) -> Judged:
    """Let the trees vote on the out-of-bag rows of a partition.

    Parameters
    ----------
    X, y : array-like, or functions that read them
    span : tuple of int
        Number of the partition, its first row and its end in the whole table.
    model : fitted forest of the whole table, of one output
    kind : Kind
    in_bag : InBag
        In-bag counts of its trees.

    Returns
    -------
    Judged
    """
    number, first, end = span
    X, _ = values_of(X, number, kind)
    y = target_of(y, len(X), number, kind)
    truth = np.searchsorted(model.classes_, y) if kind.has_classes else y
    truth = truth.reshape(-1, 1).astype(np.float64)
    answers = outputs_out_of_bag(
        model._packed(), X, 1,
        lambda t: np.flatnonzero(in_bag.counts(t, first, end) == 0),
    )  # fmt: skip
    n_values = model.n_classes_ if kind.has_classes else 1
    votes = vote_out_of_bag(answers, truth, n_values, model.voting, judges=False)
    is_known = votes.n_models > 0
    values, truth = votes.values[is_known, 0], truth[is_known, 0]
    if kind.has_classes:
        wrong = np.count_nonzero(values.argmax(axis=1) != truth)
        return Judged(len(y), len(truth), float(wrong), 0.0, 0.0)
    mean = float(truth.mean()) if len(truth) else 0.0
    loss = float(((values[:, 0] - truth) ** 2).sum())
    return Judged(len(y), len(truth), loss, mean, float(((truth - mean) ** 2).sum()))
