"""Mixin of ensembles: voting rules, and what they learn from out-of-bag predictions."""

from collections.abc import Iterator

from sklearn.base import BaseEstimator, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.utils._param_validation import HasMethods, StrOptions

from forest.voting.out_of_bag import (
    score_out_of_bag,
    stack_out_of_bag,
    vote_out_of_bag,
)
from forest.voting.rules import RULES, combine, weights_of

VOTING_CONSTRAINTS = {
    "voting": [StrOptions({*RULES, "stacked"})],
    "final_estimator": [HasMethods(["fit", "predict"]), None],
}


class VotingMixin:
    """Mixin of estimators with the parameters `voting`, `final_estimator` and `bootstrap`.

    An ensemble is a sequence of its `estimators_`.
    """

    estimators_: list

    def __len__(self) -> int:
        """Number of fitted estimators."""
        return len(self.estimators_)

    def __getitem__(self, i: int) -> BaseEstimator:
        """The i-th fitted estimator."""
        return self.estimators_[i]

    def __iter__(self) -> Iterator[BaseEstimator]:
        """The fitted estimators, in order."""
        return iter(self.estimators_)

    @property
    def _learns_to_vote(self):
        """Whether the voting rule depends on the models' out-of-bag outputs."""
        return self.voting == "stacked" or RULES[self.voting].is_weighted

    def _refuse_impossible_votes(self):
        """Raise a ValueError for a score or rule that other parameters make impossible."""
        if self.oob_score and not self.bootstrap:
            raise ValueError(
                "Out of bag estimation only available if bootstrap=True. Or set oob_score=False."
            )
        if not self.bootstrap and self._learns_to_vote:
            raise ValueError(
                f"voting={self.voting!r} learns from out-of-bag rows, but bootstrap=False leaves "
                'none; set bootstrap=True or voting="soft".'
            )
        if self.voting != "soft" and getattr(self, "loss", None) is not None:
            raise ValueError(
                f"loss= weighs the mean class shares of the trees, which voting={self.voting!r} "
                'does not use; set voting="soft".'
            )
        if self.voting == "majority" and not is_classifier(self):
            raise ValueError(
                'voting="majority" counts votes for classes, which regression does not have; set '
                'voting="soft" (the mean) or "oob_weighted".'
            )

    def _votes_out_of_bag(self, answers, n_models, target, seed, groups=None, judges=True):
        """The OutOfBagVotes of the models, and the Stack that was trained on them, or None.

        `answers`, `groups` and `judges` are those of `forest.voting.out_of_bag.vote_out_of_bag`;
        `seed` is for the folds by which a stack is cross-fitted.
        """
        n_values = [0] * target.n_outputs if target.labels is None else [*map(len, target.labels)]
        if self.voting != "stacked":
            costs = getattr(self, "loss_", None)
            votes = vote_out_of_bag(
                answers, target.codes, max(1, *n_values), self.voting, costs, groups, judges
            )
            return votes, None
        return stack_out_of_bag(
            answers, n_models, target.codes, self.final_estimator, n_values, seed, groups
        )

    def _keep_out_of_bag(self, votes):
        """Keep the out-of-bag votes as an attribute, and return the predictions; for regressors."""
        values = votes.values[:, :, 0]
        self.oob_prediction_ = values[:, 0] if self.n_outputs_ == 1 else values
        return self.oob_prediction_

    def _learn_or_forget(self, X, target, truth, interruption):
        """Keep what the voting rule learns and, if they are wanted, out-of-bag votes and score.

        Called by `fit` on its table. Votes are scored against `truth`. On Ctrl-C, nothing is kept.
        """
        is_scored = self.oob_score and not hasattr(self, "oob_score_")
        if not (is_scored or self._learns_to_vote):
            return

        def learn():
            votes, stack = self._predict_out_of_bag(X, target, judges=False)
            if stack is not None:
                self._stack = stack
                self.final_estimator_ = stack.learners
            elif self._learns_to_vote:
                self.estimator_weights_ = weights_of(votes.scores)
            if is_scored:
                from sklearn.metrics import accuracy_score, r2_score  # slow to import

                usual = accuracy_score if is_classifier(self) else r2_score
                score = self.oob_score if callable(self.oob_score) else usual
                guess, is_known = self._keep_out_of_bag(votes), votes.n_models > 0
                self.oob_score_ = score_out_of_bag(score, truth, guess, is_known)

        if not interruption.run(learn):
            self._forget_out_of_bag()
            interruption.keep(
                "out-of-bag predictions are not known, so there is no score and nothing to weigh "
                "votes by (fit again with warm_start=True to find them)"
            )

    def _forget_out_of_bag(self):
        scores = ("oob_score_", "oob_decision_function_", "oob_prediction_")
        for name in (*scores, "estimator_weights_", "_stack", "final_estimator_"):
            self.__dict__.pop(name, None)

    def _decide(self, outputs):
        """The vote on some rows; see `forest.voting.rules.combine`."""
        learnt = self._learnt()
        if self.voting == "stacked":
            return learnt.predict(outputs)
        return combine(outputs, self.voting, learnt)

    def _learnt(self):
        """What the rule has learnt: a Stack, or weights of models; None for other rules."""
        if not self._learns_to_vote:
            return None
        learnt = "_stack" if self.voting == "stacked" else "estimator_weights_"
        if not hasattr(self, learnt):
            raise NotFittedError(
                f"voting={self.voting!r} learns from out-of-bag rows, but was set after the fit; "
                "call fit again."
            )
        return getattr(self, learnt)
