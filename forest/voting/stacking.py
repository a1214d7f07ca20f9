"""Stacking: a meta-learner that is trained on the out-of-bag outputs of the models.

A model has no output for its in-bag rows, so the row x model matrix has gaps. The features of a row
are the mean over the models that have an output for it, and the departure of each model from that
mean, which is 0 for a model without one. A penalty on the departures therefore pulls the stack
towards the soft vote; without departures, it is the soft vote, recalibrated. All models have an
output for rows to be predicted. Their departures are multiplied by the share of the training rows
for which the model was out of bag, so that the sum is as large as in training.
"""

from collections.abc import Sequence
from typing import Self

import numpy as np
from sklearn.base import BaseEstimator, clone

from cart.files import storable, with_state

# Means are scaled up so that a penalty hardly affects them. Logits are scaled less, since they are
# fitted iteratively.
_MEAN_SCALE, _LOGIT_SCALE = 1000.0, 10.0
_PENALTIES = np.logspace(-2, 5, 8)
_INVERSE_PENALTY = 0.1
FOLDS = 5


class Stack:
    """The meta-learners of all outputs.

    Parameters
    ----------
    learner : estimator or None
        A classifier or a regressor; None is a penalised logistic regression, or a ridge regression.
    n_values : sequence of int
        Number of classes of every output; 0 in regression.
    """

    def __init__(self, learner: BaseEstimator | None, n_values: Sequence[int]) -> None:
        self.learner = learner
        self.n_values = n_values

    def fit(
        self, outputs: np.ndarray, has_output: np.ndarray, truth: np.ndarray,
        groups: np.ndarray | None = None,
    ) -> Self:  # fmt: skip
        """Train on rows that were out of bag for some model.

        Parameters
        ----------
        outputs : ndarray of shape (n_rows, n_models, n_outputs, n_values), float64
            Class shares or numbers.
        has_output : ndarray of shape (n_rows, n_models), bool
            Whether a model has an output for a row: the row is out of bag for it.
        truth : ndarray of shape (n_rows, n_outputs), float64
            Positions of the classes, or numbers.
        groups : ndarray of shape (n_rows,), optional
            Groups of dependent rows: penalties (of ridge regression) are chosen on groups that are
            left out.
        """
        self.share = has_output.mean(axis=0)
        spread = truth.std(axis=0)
        self.units = np.where((spread > 0.0) & (np.array(self.n_values) == 0), spread, 1.0)
        self.learners = []
        for k, n_values in enumerate(self.n_values):
            target = truth[:, k].astype(np.int64) if n_values else truth[:, k]
            features = self._features(outputs[:, :, k, : n_values or 1] / self.units[k], has_output)
            self.learners.append(self._learn(features, target, n_values, groups))
        return self

    def predict(self, outputs: np.ndarray, has_output: np.ndarray | None = None) -> np.ndarray:
        """Predict class shares or numbers.

        Parameters
        ----------
        outputs : ndarray of shape (n_rows, n_models, n_outputs, n_values), float64
        has_output : ndarray of shape (n_rows, n_models), bool, optional
            The models whose outputs count for each row; all by default.

        Returns
        -------
        ndarray of shape (n_rows, n_outputs, n_values), float64
        """
        said = np.zeros((len(outputs), *outputs.shape[2:]))
        every = np.arange(len(outputs))
        for k, (learner, n_values) in enumerate(zip(self.learners, self.n_values, strict=True)):
            features = self._features(outputs[:, :, k, : n_values or 1] / self.units[k], has_output)
            if hasattr(learner, "predict_proba"):
                said[:, k, learner.classes_] = learner.predict_proba(features)
            elif n_values > 1:
                said[every, k, learner.predict(features)] = 1.0
            else:
                said[:, k, 0] = learner.predict(features)
        return said

    def _learn(self, features, target, n_values, groups):
        """Fit the meta-learner of one output."""
        from sklearn.model_selection import GroupKFold  # slow to import

        if n_values and (target == target[0]).all():  # most learners need two classes
            return _only_class().fit(features, target)
        if self.learner is not None:
            return clone(self.learner).fit(features, target)
        learner = _default_learner(n_values)
        if n_values or groups is None:
            return learner.fit(features, target)
        folds = GroupKFold(min(FOLDS, len(np.unique(groups))))
        learner.cv = list(folds.split(features, groups=groups))  # instead of leave-one-out
        learner.fit(features, target).cv = None  # do not keep the folds with the model
        return learner

    def _features(self, outputs, has_output):
        """Features for one output: scaled means, and departures from the means."""
        has_say = (
            np.ones(outputs.shape[:2]) if has_output is None else has_output.astype(np.float64)
        )
        counted = self.share if has_output is None else has_say
        mean = np.einsum("rm,rmv->rv", has_say, outputs) / has_say.sum(axis=1, keepdims=True)
        departures = (outputs - mean[:, np.newaxis]) * counted[..., np.newaxis]
        leading = _MEAN_SCALE * mean
        if outputs.shape[2] > 1:  # shares sum to 1, so the last one is redundant
            logits = np.log(mean + 0.5 / outputs.shape[1])
            leading = _LOGIT_SCALE * (logits[:, :-1] - logits[:, -1:])
            departures = departures[:, :, :-1]
        departures = departures.reshape(len(outputs), -1) / np.sqrt(self.share.sum())
        return np.hstack([leading, departures])


def _from_state(state):
    stack = Stack(state["learner"], state["n_values"])
    return with_state(stack, state)


def _learner_storable(module, name, create):
    """Register a default meta-learner of scikit-learn as storable, with its version."""

    def restore(state):
        learner = create()
        learner.__setstate__(vars(with_state(type("State", (), {})(), state)))
        return learner

    storable(name, f"sklearn.{module}.{name}", lambda x: x.__getstate__(), restore)


def _only_class():
    from sklearn.dummy import DummyClassifier  # slow to import

    return DummyClassifier()


storable("Stack", Stack, restore=_from_state)
_learner_storable("linear_model._logistic", "LogisticRegression", lambda: _default_learner(2))
_learner_storable("linear_model._ridge", "RidgeCV", lambda: _default_learner(0))
_learner_storable("dummy", "DummyClassifier", _only_class)


def _default_learner(n_values):
    from sklearn.linear_model import LogisticRegression, RidgeCV  # slow to import

    if not n_values:
        return RidgeCV(alphas=_PENALTIES)
    return LogisticRegression(C=_INVERSE_PENALTY, max_iter=1000)


def cross_fit(
    learner: BaseEstimator | None,
    n_values: Sequence[int],
    outputs: np.ndarray,
    has_output: np.ndarray,
    truth: np.ndarray,
    seed: int,
    groups: np.ndarray | None = None,
) -> np.ndarray:
    """Predict each row by a stack that was trained on other folds.

    Parameters
    ----------
    learner, n_values : see `Stack`
    outputs, has_output, truth : see `Stack.fit`
    seed : int
        Seed of the folds.
    groups : ndarray of shape (n_rows,), optional
        Groups of rows, each of which is in one fold.

    Returns
    -------
    ndarray of shape (n_rows, n_outputs, n_values), float64
    """
    from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold  # slow to import

    codes = truth[:, 0]
    is_spread = n_values[0] > 1 and np.bincount(codes.astype(np.int64)).min() >= FOLDS
    make_folds = StratifiedKFold if is_spread else KFold
    make_folds = make_folds if groups is None else GroupKFold
    folds = make_folds(FOLDS, shuffle=True, random_state=seed)
    said = np.empty((len(truth), *outputs.shape[2:]))
    for others, rows in folds.split(codes, codes, groups):
        stack = Stack(learner, n_values).fit(
            outputs[others],
            has_output[others],
            truth[others],
            None if groups is None else groups[others],
        )
        said[rows] = stack.predict(outputs[rows], has_output[rows])
    return said
