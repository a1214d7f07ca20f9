"""Ensembles as sequences of their fitted estimators."""

from collections.abc import Iterator

from sklearn.base import BaseEstimator


class EstimatorSequence:
    """Of ensembles with `estimators_`: its length, items and iterator are theirs."""

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
