"""Groups of columns that belong together: correlated ones, and those that encode one category."""

import re
from itertools import takewhile
from numbers import Real
from typing import Any

import numpy as np
from scipy.sparse import csc_matrix, issparse
from sklearn.utils import _safe_indexing, check_array

from cart.estimators.category_encoder import as_columns, find_categorical
from importance.core.groups import not_taken

_MAX_LISTED = 3  # names of columns that the name of a group lists
_NO_VARIANCE = 1e-10  # share of their sum of squares below which the ranks of a pair do not vary
_SEPARATORS = "_-=.:/ "


def correlation_groups(
    X: Any, threshold: float = 0.7, *, method: str = "complete"
) -> dict[str, list]:
    """Find groups of columns whose ranks correlate, to be passed as `groups`.

    Columns are clustered by 1 - |rho|, where rho is Spearman's rank correlation.

    Parameters
    ----------
    X : DataFrame or array-like of shape (n_samples, n_features)
        nan is a missing value: a column is ranked among its present values, and a pair is
        correlated over the rows where both are present. Constant columns, and columns of categories
        or strings, are in no group.
    threshold : float, default=0.7
        |rho| from which on columns belong together; from 0.7 on regressions are known to suffer
        (Dormann et al. 2013).
    method : {"complete", "average", "single"}, default="complete"
        Which |rho| must reach the threshold: those of all pairs of a group; their mean, cluster by
        cluster; or that of one pair, for a column to join (see `scipy.cluster.hierarchy.linkage`).

    Returns
    -------
    dict of str to list of str or of int
        The groups of two or more columns, in the order of X. Columns are given by name if X has
        names, otherwise by position.

    Raises
    ------
    ValueError
        If X is sparse or not a table, or a parameter has none of the values above.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from cartwood import correlation_groups
    >>> X = load_diabetes(as_frame=True).data
    >>> correlation_groups(X)
    {'s1 + s2': ['s1', 's2'], 's3 + s4': ['s3', 's4']}
    """
    require_threshold("threshold", threshold)
    if method not in ("complete", "average", "single"):
        raise ValueError(f'method={method!r} must be "complete", "average" or "single".')
    if issparse(X) or hasattr(X, "sparse"):  # a DataFrame has it if all its columns are sparse
        dense = "X.toarray()" if issparse(X) else "X.sparse.to_dense()"
        raise ValueError(
            "correlation_groups needs a dense X, because it ranks whole columns: give it "
            f"{dense}, or some of the columns; for blocks of 0/1 columns use one_hot_groups."
        )
    X = as_columns(X)
    labels = _labels(X)
    numbers, positions = _numbers(X)
    clusters = clusters_of(rank_correlation(numbers), threshold, method)
    found = [[labels[j] for j in positions[members]] for members in clusters]
    return {not_taken(_list_names(group), labels): group for group in found}


def require_threshold(name: str, value: float) -> None:
    """Refuse a threshold that is not in (0, 1]."""
    if not (isinstance(value, Real) and 0.0 < value <= 1.0):
        raise ValueError(f"{name}={value!r} must be above 0 and at most 1.")


def one_hot_groups(X: Any) -> dict[str, list]:
    """Find blocks of 0/1 columns in which every row has exactly one 1, to be passed as `groups`.

    An encoder makes such columns of one categorical column. They are recognised by their values: a
    block is a run of consecutive columns, not counting columns of X that are not 0/1. Encoders that
    drop a category, or have none for missing values, leave rows without a 1, so they make no block.

    Parameters
    ----------
    X : DataFrame, array-like or sparse matrix of shape (n_samples, n_features)

    Returns
    -------
    dict of str to list of str or of int
        The blocks in the order of X. Columns are given by name if X has names, otherwise by
        position. The name of a block is what the names of its columns start with (colour for
        colour_red and colour_blue), or else lists the columns.

    Raises
    ------
    ValueError
        If X is not a table.

    Examples
    --------
    >>> import pandas as pd
    >>> from cartwood import one_hot_groups
    >>> table = pd.DataFrame({"size": [1, 2, 3], "city": ["Oslo", "Rome", "Oslo"]})
    >>> one_hot_groups(pd.get_dummies(table))
    {'city': ['city_Oslo', 'city_Rome']}
    """
    X = X if issparse(X) else as_columns(X)
    labels = _labels(X)
    X = X.sparse.to_coo() if hasattr(X, "sparse") else X  # a DataFrame of sparse columns only
    numbers, positions = (csc_matrix(X), np.arange(X.shape[1])) if issparse(X) else _numbers(X)
    groups: dict[str, list] = {}
    for run in _runs_of_ones(numbers):
        block = [labels[j] for j in positions[run]]
        groups[_name_block(block, {*labels, *groups})] = block
    return groups


def _runs_of_ones(X):
    """Runs of 0/1 columns that sum to 1 in every row."""
    n_ones = np.asarray((X == 1).sum(axis=0)).ravel()
    n_others = np.asarray((X != 0).sum(axis=0)).ravel() - n_ones
    columns = np.flatnonzero((n_others == 0) & (n_ones > 0) & (n_ones < X.shape[0]))
    ones_before = np.concatenate(([0], np.cumsum(n_ones[columns])))
    first = 0
    while first < len(columns):
        # Only a run with exactly as many ones as rows can be a block.
        end = np.searchsorted(ones_before, ones_before[first] + X.shape[0], side="right") - 1
        run = columns[first:end]
        is_full = ones_before[end] - ones_before[first] == X.shape[0]
        if is_full and (np.asarray(X[:, run].sum(axis=1)) == 1).all():
            yield run
            first = end
        else:
            first += 1


def _labels(X):
    """Labels of the columns: names if they are distinct strings, otherwise positions."""
    names = list(getattr(X, "columns", ()))
    if names and all(isinstance(name, str) for name in names) and len(set(names)) == len(names):
        return names
    return list(range(X.shape[1]))


def _numbers(X):
    """The columns of numbers, (n_samples, n_columns), float64, and their positions."""
    holds_numbers = np.ones(X.shape[1], bool)
    if hasattr(X, "columns"):
        holds_numbers = ~find_categorical("from_dtype", X)
    elif X.dtype.kind in "OUS":
        holds_numbers = np.array([_are_numbers(column) for column in X.T], bool)
    positions = np.flatnonzero(holds_numbers)
    if len(positions) == 0:
        return np.empty((X.shape[0], 0)), positions
    part = _safe_indexing(X, positions, axis=1)
    return check_array(part, dtype=np.float64, ensure_all_finite="allow-nan"), positions


def _are_numbers(values):
    try:
        values.astype(np.float64)
    except (TypeError, ValueError):
        return False
    return True


def rank_correlation(X: np.ndarray) -> np.ndarray:
    """Spearman's rank correlation of every pair of columns; 0 if one of them does not vary."""
    from scipy.stats import rankdata  # slow to import

    ranks = rankdata(X, axis=0, nan_policy="omit")
    known = ~np.isnan(X)
    ranks -= (1 + known.sum(axis=0)) / 2  # their mean
    if known.all():  # one table of all pairs suffices
        lengths = np.sqrt(np.square(ranks).sum(axis=0))
        ranks /= np.where(lengths > 0.0, lengths, 1.0)
        correlation = ranks.T @ ranks
        np.fill_diagonal(correlation, 1.0)
        return correlation
    ranks, known = np.where(known, ranks, 0.0), known.astype(np.float64)
    # Entry (i, j) describes column i over the rows where both i and j are present.
    n = np.maximum(known.T @ known, 1.0)
    total, squares = ranks.T @ known, np.square(ranks).T @ known
    variance = squares - np.square(total) / n
    scale = variance * variance.T
    varies = variance > _NO_VARIANCE * squares
    covariance = ranks.T @ ranks - total * total.T / n
    return np.divide(
        covariance, np.sqrt(np.maximum(scale, 0.0)), out=np.eye(X.shape[1]), where=varies & varies.T
    )


def clusters_of(
    correlation: np.ndarray, threshold: float, method: str = "complete"
) -> list[list[int]]:
    """The clusters of two or more columns by |correlation|, see `correlation_groups`."""
    from scipy.cluster.hierarchy import fcluster, linkage  # slow to import
    from scipy.spatial.distance import squareform

    if len(correlation) < 2:
        return []
    distance = np.maximum(1.0 - np.abs(correlation), 0.0)
    np.fill_diagonal(distance, 0.0)
    tree = linkage(squareform(distance, checks=False), method)
    clusters: dict[int, list[int]] = {}
    for j, number in enumerate(fcluster(tree, 1.0 - threshold + 1e-9, criterion="distance")):
        clusters.setdefault(number, []).append(j)
    return [members for members in clusters.values() if len(members) > 1]


def _list_names(columns):
    """A name for a group: its first columns, and how many more there are."""
    listed = " + ".join(str(c) if isinstance(c, str) else f"x{c}" for c in columns[:_MAX_LISTED])
    n_more = len(columns) - _MAX_LISTED
    return f"{listed} + {n_more} more" if n_more > 0 else listed


def _name_block(columns, taken):
    """The words that all names of the columns start with, or else the list of them."""
    if all(isinstance(column, str) for column in columns):
        words = [re.split(f"([{re.escape(_SEPARATORS)}]+)", column) for column in columns]
        shared = takewhile(lambda same: len(set(same)) == 1, zip(*words, strict=False))
        name = "".join(same[0] for same in shared).rstrip(_SEPARATORS)
        if name and name not in taken:
            return name
    return _list_names(columns)
