"""Donors whose values fit the rest of a row: rows of the same cell, or nearest neighbours.

cells        rows       [ c f | a b d | e ]     sorted by cell; cells of one row are left out:
             segments   [ c f | a b d ]         rows and donors are the same
neighbours   rows       [ a | b | d ]           a segment each
             donors     [ b d | a c | b ]       the neighbours of each that are out of bag
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse

from cart.tree.nodes import LEAF
from importance.conditional.exchange import DonorSegments

# A column is discrete if it has at most so many values, each with so many rows on average.
MOST_VALUES = 20
ROWS_A_VALUE = 10
MOST_CATEGORIES = 64  # of a column in the distance of neighbours: it takes a column for each
_MOST_CELLS = np.iinfo(np.int64).max // 2


class Bins(NamedTuple):
    """A column divided into parts."""

    number: np.ndarray  # (n_rows,) int64: the part that a row is in
    n_bins: int


def exchange_within(bins: list[Bins], n_rows: int) -> DonorSegments:
    """Donors by cell: rows in the same part of every column exchange values.

    Cells with a single row are left out.
    """
    cell, n_cells = np.zeros(n_rows, np.int64), 1
    for number, n_bins in bins:
        if n_cells * n_bins > _MOST_CELLS:
            cell, n_cells = np.unique(cell, return_inverse=True)[1], n_rows  # existing cells only
        cell = cell * n_bins + number
        n_cells *= n_bins
    order = np.argsort(cell, kind="stable")
    begins = np.flatnonzero(np.diff(cell[order], prepend=-1))
    sizes = np.diff(begins, append=n_rows)
    rows = order[np.repeat(sizes > 1, sizes)].astype(np.int32)
    start = np.concatenate(([0], np.cumsum(sizes[sizes > 1])))
    return DonorSegments(rows, start, rows, start)


def find_levels(X: Any, columns: Iterable[int]) -> dict[int, Bins]:
    """Bins of those columns that are discrete: one per value, a missing one included."""
    levels = {}
    for column in columns:
        values, number = np.unique(column_of(X, column), return_inverse=True)
        if len(values) <= min(MOST_VALUES, X.shape[0] // ROWS_A_VALUE):
            levels[column] = Bins(number, len(values))
    return levels


def column_of(X: Any, column: int) -> np.ndarray:
    """A column of a dense or sparse table, (n_samples,)."""
    return X[:, [column]].toarray()[:, 0] if issparse(X) else X[:, column]


def cut_by_tree(tree: Any, column: int, x: np.ndarray) -> Bins:
    """Bins of the values x of a column, cut by all splits of a tree on it, wherever they are.

    Missing values are a part of their own. Categories are in one part if every split sends them
    the same way.
    """
    nodes = np.flatnonzero((tree.feature == column) & (tree.children_left != LEAF))
    is_missing = np.isnan(x)
    if np.isnan(tree.threshold[nodes]).any():
        codes = np.where(is_missing, 0, x).astype(np.int64)
        part = np.zeros(codes.max(initial=0) + 1, np.int64)
        for node in nodes:
            listed, _ = tree.categories.of(node)
            is_listed = np.isin(np.arange(len(part)), listed)
            part = np.unique(2 * part + is_listed, return_inverse=True)[1]
        number, n_parts = part[codes], part.max() + 1
    else:
        cuts = np.unique(tree.threshold[nodes])
        number, n_parts = np.searchsorted(cuts, x), len(cuts) + 1  # x <= cut lies left of it
    return Bins(np.where(is_missing, n_parts, number), n_parts + 1)


def find_neighbors(
    X: Any, columns: np.ndarray, is_categorical: np.ndarray, n_neighbors: int,
    random_state: np.random.RandomState,
) -> np.ndarray:  # fmt: skip
    """The rows nearest to each row in some columns, without itself: (n_samples, n_neighbors).

    The distance is Euclidean between ranks scaled to [0, 1]; two categories are 1 apart, and a
    missing number is 1 above the highest rank. Ties are broken at random.
    """
    from scipy.stats import rankdata  # slow to import
    from sklearn.neighbors import NearestNeighbors

    n_samples = X.shape[0]
    parts = []
    for column in columns:
        x = column_of(X, column)
        is_missing = np.isnan(x)
        if is_categorical[column]:
            categories, codes = np.unique(x, return_inverse=True)
            if len(categories) > MOST_CATEGORIES:
                raise ValueError(
                    f"Column {column} has {len(categories)} categories; method='neighbours' takes "
                    f"at most {MOST_CATEGORIES}. Use method='cells', or leave the column out with "
                    "condition={...}."
                )
            parts.append(np.eye(len(categories))[codes] / np.sqrt(2.0))
        else:
            ranks = np.full((n_samples, 1), 2.0)
            known = rankdata(x[~is_missing]) - 1.0
            ranks[~is_missing, 0] = known / max(len(known) - 1, 1)
            parts.append(ranks)
    place = np.hstack(parts)
    # Rows may be sorted by y, so ties must not be broken by their order.
    order = random_state.permutation(n_samples)
    place = place[order]
    n_neighbors = min(n_neighbors, n_samples - 1)
    found = NearestNeighbors(n_neighbors=n_neighbors).fit(place).kneighbors(return_distance=False)
    nearest = np.empty((n_samples, n_neighbors), np.int32)
    nearest[order] = order[found]
    return nearest


def exchange_with(nearest: np.ndarray, rows: np.ndarray) -> DonorSegments:
    """Donors by neighbours: a row gets values of those of its nearest rows that are out of bag too.

    `nearest` is (n_samples, n_neighbors); `rows` are the out-of-bag rows, ascending.
    """
    position = np.full(len(nearest), -1, np.int32)
    position[rows] = np.arange(len(rows), dtype=np.int32)
    donors = position[nearest[rows]]
    is_donor = donors >= 0
    sizes = is_donor.sum(axis=1)
    moved = np.flatnonzero(sizes).astype(np.int32)
    return DonorSegments(
        moved, np.arange(len(moved) + 1), donors[is_donor],
        np.concatenate(([0], np.cumsum(sizes[moved]))),
    )  # fmt: skip
