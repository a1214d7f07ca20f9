"""Stacking: a meta-learner that is trained on what the models say out of bag.

A model has no say on its in-bag rows, so the row x model matrix has gaps. A row's features are the
mean over the models that have one, and by how much each of them departs from it: nothing where it
has no say. A penalty on the departures therefore pulls the stack towards the soft vote, and
without them it is the soft vote, recalibrated. When rows are predicted all models have their say:
departures count by the share of the training rows that a model was out of bag for, so that their
sum is as large as those that the meta-learner has met.
"""

from collections.abc import Sequence
from typing import Self

import numpy as np
from sklearn.base import BaseEstimator, clone

from cart.files import storable, with_state

# Means are scaled up so that a penalty hardly touches them; logits, which are fitted by iteration,
# by no more than that takes.
_MEAN_SCALE, _LOGIT_SCALE = 1000.0, 10.0
_PENALTIES = np.logspace(-2, 5, 8)
_INVERSE_PENALTY = 0.1
FOLDS = 5


class Stack:
    """The meta-learners of all outputs.

    Parameters
    ----------
    learner : estimator or None
        A classifier or a regressor; None is a logistic or ridge regression that is penalised.
    n_values : sequence of int
        Number of classes of every output; 1 in regression.
    """

    def __init__(self, learner: BaseEstimator | None, n_values: Sequence[int]) -> None:
        self.learner = learner
        self.n_values = n_values

    def fit(
        self, outputs: np.ndarray, cast: np.ndarray, truth: np.ndarray,
        groups: np.ndarray | None = None,
    ) -> Self:  # fmt: skip
        """Train on rows that some model was out of bag for.

        Parameters
        ----------
        outputs : ndarray of shape (n_rows, n_models, n_outputs, n_values), float64
            Class shares or numbers.
        cast : ndarray of shape (n_rows, n_models), bool
            Which models have not seen the row.
        truth : ndarray of shape (n_rows, n_outputs), float64
            Positions of the classes, or numbers.
        groups : ndarray of shape (n_rows,), optional
            Rows that are not independent: penalties are chosen on groups that are left out.
        """
        self.share = cast.mean(axis=0)
        spread = truth.std(axis=0)
        self.units = np.where((spread > 0.0) & (np.array(self.n_values) == 1), spread, 1.0)
        self.learners = []
        for k, n_values in enumerate(self.n_values):
            target = truth[:, k] if n_values == 1 else truth[:, k].astype(np.int64)
            features = self._features(outputs[:, :, k, :n_values] / self.units[k], cast)
            self.learners.append(self._learn(features, target, n_values, groups))
        return self

    def predict(self, outputs: np.ndarray, cast: np.ndarray | None = None) -> np.ndarray:
        """Class shares or numbers.

        Parameters
        ----------
        outputs : ndarray of shape (n_rows, n_models, n_outputs, n_values), float64
        cast : ndarray of shape (n_rows, n_models), bool, optional
            Which models have a say; all by default.

        Returns
        -------
        ndarray of shape (n_rows, n_outputs, n_values), float64
        """
        said = np.zeros((len(outputs), *outputs.shape[2:]))
        every = np.arange(len(outputs))
        for k, (learner, n_values) in enumerate(zip(self.learners, self.n_values, strict=True)):
            features = self._features(outputs[:, :, k, :n_values] / self.units[k], cast)
            if n_values == 1:
                said[:, k, 0] = learner.predict(features)
            elif hasattr(learner, "predict_proba"):
                said[:, k, learner.classes_] = learner.predict_proba(features)
            else:
                said[every, k, learner.predict(features)] = 1.0
        return said

    def _learn(self, features, target, n_values, groups):
        """A meta-learner of one output, fitted."""
        from sklearn.dummy import DummyClassifier  # slow to import
        from sklearn.model_selection import GroupKFold

        if n_values > 1 and (target == target[0]).all():  # most learners need two classes
            return DummyClassifier().fit(features, target)
        if self.learner is not None:
            return clone(self.learner).fit(features, target)
        learner = _default_learner(n_values)
        if n_values > 1 or groups is None:
            return learner.fit(features, target)
        folds = GroupKFold(min(FOLDS, len(np.unique(groups))))
        learner.cv = list(folds.split(features, groups=groups))  # not rows, one by one
        learner.fit(features, target).cv = None  # nor are the folds kept with the model
        return learner

    def _features(self, outputs, cast):
        """Means, scaled up, and departures from them, of one output."""
        has_say = np.ones(outputs.shape[:2]) if cast is None else cast.astype(np.float64)
        counted = self.share if cast is None else has_say
        mean = np.einsum("rm,rmv->rv", has_say, outputs) / has_say.sum(axis=1, keepdims=True)
        departures = (outputs - mean[:, np.newaxis]) * counted[..., np.newaxis]
        leading = _MEAN_SCALE * mean
        if outputs.shape[2] > 1:  # shares add up to 1
            logits = np.log(mean + 0.5 / outputs.shape[1])
            leading = _LOGIT_SCALE * (logits[:, :-1] - logits[:, -1:])
            departures = departures[:, :, :-1]
        departures = departures.reshape(len(outputs), -1) / np.sqrt(self.share.sum())
        return np.hstack([leading, departures])


def _from_state(state):
    stack = Stack(state["learner"], state["n_values"])
    return with_state(stack, state)


def _learner_storable(module, name, create):
    """Have a default meta-learner of scikit-learn stored, which says of what version it is."""

    def restore(state):
        learner = create()
        learner.__setstate__(vars(with_state(type("State", (), {})(), state)))
        return learner

    storable(name, f"sklearn.linear_model.{module}.{name}", lambda x: x.__getstate__(), restore)


storable("Stack", Stack, restore=_from_state)
_learner_storable("_logistic", "LogisticRegression", lambda: _default_learner(2))
_learner_storable("_ridge", "RidgeCV", lambda: _default_learner(1))


def _default_learner(n_values):
    from sklearn.linear_model import LogisticRegression, RidgeCV  # slow to import

    if n_values == 1:
        return RidgeCV(alphas=_PENALTIES)
    return LogisticRegression(C=_INVERSE_PENALTY, max_iter=1000)


def cross_fit(
    learner: BaseEstimator | None,
    n_values: Sequence[int],
    outputs: np.ndarray,
    cast: np.ndarray,
    truth: np.ndarray,
    seed: int,
    groups: np.ndarray | None = None,
) -> np.ndarray:
    """What stacks say of rows that they were not trained on.

    Parameters
    ----------
    learner, n_values : see `Stack`
    outputs, cast, truth : see `Stack.fit`
    seed : int
        Of the folds.
    groups : ndarray of shape (n_rows,), optional
        Rows that are in one fold, all of them.

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
            outputs[others], cast[others], truth[others], None if groups is None else groups[others]
        )
        said[rows] = stack.predict(outputs[rows], cast[rows])
    return said
