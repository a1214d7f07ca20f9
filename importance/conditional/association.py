"""Association of each column with the others, for numbers and categories alike."""

from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, issparse

_COLUMNS_AT_ONCE = 64


class Association:
    """Association between one column and all others, from 0 to 1.

    - Two columns of numbers: absolute rank correlation (Spearman).
    - Numbers and categories: the square root of the share of the variance of the ranks that lies
      between the categories, minus the share that as many categories would get by chance (Kelley's
      epsilon squared).
    - Two columns of categories: the same for the indicators of one, between the categories of the
      other (Goodman and Kruskal's tau, corrected for chance).

    A missing number counts as the mean rank, a missing category as a category of its own.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features), or csr_matrix
        Columns of categories hold codes.
    is_categorical : ndarray of shape (n_features,), bool
    """

    def __init__(self, X: Any, is_categorical: np.ndarray) -> None:
        self.X = X
        self.is_categorical = is_categorical
        self._first = self._block = None

    def with_all(self, column: int) -> np.ndarray:
        """Association of a column with every column, (n_features,); 1 at the column itself."""
        if self.is_categorical[column]:
            found = self._share_between_categories(column)
        else:
            found = self._share_of_ranks(column)
        found = np.sqrt(np.clip(found, 0.0, 1.0))
        found[column] = 1.0
        return found

    def _share_of_ranks(self, column):
        """Share of the variance of a column's ranks that each other column explains."""
        ranks, mean, norm = self._ranks
        n = self.X.shape[0]
        product = self._products(column) - n * mean * mean[column]
        explained = _ratio(product, norm * norm[column]) ** 2
        for other in np.flatnonzero(self.is_categorical):
            indicators, counts = self._indicators(other)
            between = ((indicators.T @ ranks[:, column]) ** 2 / counts).sum()
            explained[other] = _less_chance(_ratio(between, norm[column] ** 2), n, len(counts))
        return explained

    def _products(self, column):
        """Sums over rows of a column's ranks times those of every column."""
        first = column - column % _COLUMNS_AT_ONCE
        if first != self._first:  # a block costs hardly more than a single column
            some = self._ranks[0][:, first : first + _COLUMNS_AT_ONCE]
            some = some.toarray() if issparse(some) else some
            self._first, self._block = first, np.asarray(self._ranks[0].T @ some)
        return self._block[:, column - first]

    def _share_between_categories(self, column):
        """Share of the variance of every column that lies between the categories of one column."""
        ranks, _, norm = self._ranks  # tables with categories are dense: the means are 0
        indicators, counts = self._indicators(column)
        n = len(ranks)
        between = ((indicators.T @ ranks) ** 2 / counts[:, np.newaxis]).sum(axis=0)
        explained = _ratio(between, norm**2)
        for other in np.flatnonzero(self.is_categorical):
            theirs, their_counts = self._indicators(other)
            table = (indicators.T @ theirs).toarray()
            by_chance = (their_counts**2).sum() / n
            between = (table**2 / counts[:, np.newaxis]).sum() - by_chance
            explained[other] = _ratio(between, n - by_chance)
        return _less_chance(explained, n, len(counts))

    @cached_property
    def _ranks(self):
        """Ranks, (n_samples, n_features), their means, and their norms around the means."""
        return _rank_sparse(self.X) if issparse(self.X) else _rank_dense(self.X)

    def _indicators(self, column):
        """Indicators of the category of each row, (n_samples, n_categories), and their counts."""
        _, codes = np.unique(self.X[:, column], return_inverse=True)
        n = len(codes)
        return csr_matrix((np.ones(n), codes, np.arange(n + 1))), np.bincount(codes)


def _ratio(a, b):
    """a / b; 0 where b is 0."""
    a, b = np.broadcast_arrays(a, b)
    return np.divide(a, b, out=np.zeros(a.shape), where=b > 0.0)


def _less_chance(share, n, n_categories):
    """A share of variance between categories, corrected for what noise would give."""
    return 1.0 - (1.0 - share) * (n - 1) / max(n - n_categories, 1)


def _rank_dense(X):
    from scipy.stats import rankdata  # slow to import

    ranks = np.zeros(X.shape)
    for out, x in zip(ranks.T, X.T, strict=True):
        is_known = ~np.isnan(x)
        out[is_known] = rankdata(x[is_known]) - (1 + np.count_nonzero(is_known)) / 2
    return ranks, np.zeros(X.shape[1]), np.sqrt((ranks**2).sum(axis=0))


def _rank_sparse(X):
    """Ranks relative to the rank of 0, so that zeros need not be stored."""
    from scipy.stats import rankdata

    ranks = X.tocsc().astype(np.float64)
    ranks.sum_duplicates()
    ranks.eliminate_zeros()
    n = X.shape[0]
    for start, end in zip(ranks.indptr, ranks.indptr[1:], strict=False):
        x = ranks.data[start:end].copy()
        n_zero = n - len(x)
        rank_of_zero = (x < 0.0).sum() + (n_zero + 1) / 2.0
        ranks.data[start:end] = rankdata(x) + n_zero * (x > 0.0) - rank_of_zero
    mean = np.asarray(ranks.mean(axis=0)).ravel()
    squares = np.asarray(ranks.multiply(ranks).sum(axis=0)).ravel()
    return ranks, mean, np.sqrt(np.maximum(squares - n * mean**2, 0.0))
