"""Cache copies: the codes of a node's rows side by side, small enough to stay in a CPU cache.

A fast path has its rows in tiers: the table, then ever smaller copies. As soon as a node is small
enough for a nearer tier, its rows are copied there from its present tier, and its whole subtree is
grown on the copy. Every copy numbers its rows anew.

    table    codes [ 7 1 9 4 4 2 8 0 3 5 ]     a node has rows [ 2 3 6 9 ]
    copy     codes [ 9 4 8 5 ]                 there rows [ 0 1 2 3 ]; a child has [ 0 2 ] of them
    nearer   codes [ 9 8 ]                     there rows [ 0 1 ]
"""

import numpy as np

from cart.growth.frontier import moved
from cart.jit.decorators import dispatch, inline_kernel

LEAST_SHARE = 1 / 24  # of the columns: copies pay where a node looks at this share or more
_HELD_ANYWAY = 2**20  # bytes of a table's codes that the level 2 cache holds without copies
_PADDING = 16  # items behind each column of a copy, so that columns do not share cache sets


def create_cache_copies(codes, max_features, n_bytes):
    """Allocate cache copies of a table's codes.

    Parameters
    ----------
    codes : ndarray of shape (n_columns, n_rows)
    max_features : int
        Features that a node looks at.
    n_bytes : sequence of int
        Size of a column of each copy, descending.

    Returns
    -------
    list of (n, ndarray of shape (n_columns, at least n))
        Copies for nodes of up to n rows; n is 0 where a copy does not pay.
    """
    n_columns, n_rows = codes.shape
    pays = max_features >= LEAST_SHARE * n_columns and codes.nbytes > _HELD_ANYWAY
    sizes = [size // codes.itemsize for size in n_bytes]
    sizes = [n if pays and 2 * n <= n_rows else 0 for n in sizes]
    return [(n, np.empty((n_columns, n + _PADDING), codes.dtype)) for n in sizes]


@dispatch
def room_of(rows):
    """How many rows a tier has room for."""


@dispatch
def copy_rows(rows, start, n, nearer, layout):
    """Copy n rows of a tier, from `start` on, and what they point to, to a nearer tier, where they
    are numbered anew. `layout` says how a row is kept: a Layout, or the criterion."""


@inline_kernel
def nearest_copy(tiers, node, layout):
    """Copy the rows of a PendingNode to the nearest tier that has room; return the node there."""
    for nearer in range(node.tier + 1, len(tiers)):
        n = node.end - node.start
        if n <= room_of(tiers[nearer]):
            copy_rows(tiers[node.tier], node.start, n, tiers[nearer], layout)
            node = moved(node, np.int64(0), n, np.int64(nearer))
    return node
