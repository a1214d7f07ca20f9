"""Ensembles as sequences of their fitted estimators."""

from collections.abc import Iterator

from sklearn.base import BaseEstimator


class EstimatorSequence:
    """Mixin that makes an ensemble a sequence of its `estimators_`."""

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
