"""Near copies: codes of a node's rows side by side, for the caches to hold until it is grown.

A fast path has its rows in tiers: the table, then ever smaller copies. A node takes a nearer copy
of its rows, from the tier that it lies in, as soon as it fits into one. Rows are numbered anew in
every copy.

    table    codes [ 7 1 9 4 4 2 8 0 3 5 ]     a node has rows [ 2 3 6 9 ]
    copy     codes [ 9 4 8 5 ]                 there rows [ 0 1 2 3 ]; a child has [ 0 2 ] of them
    nearer   codes [ 9 8 ]                     there rows [ 0 1 ]
"""

import numpy as np

LEAST_SHARE = 1 / 24  # of the columns that a node must look at for near copies to pay
_HELD_ANYWAY = 2**20  # bytes of a table's codes, which the second cache holds anyway
_PADDING = 16  # of the columns of a copy, so that they do not all begin at one place of the cache


def create_cache_copies(codes, max_features, n_bytes):
    """Room for near copies of a table's codes.

    Parameters
    ----------
    codes : ndarray of shape (n_columns, n_rows)
    max_features : int
        Features that a node looks at.
    n_bytes : sequence of int
        Of a column of each copy, descending.

    Returns
    -------
    list of (n, ndarray of shape (n_columns, at least n))
        For nodes of up to n rows; n is 0 where such a copy does not pay.
    """
    n_columns, n_rows = codes.shape
    pays = max_features >= LEAST_SHARE * n_columns and codes.nbytes > _HELD_ANYWAY
    sizes = [size // codes.itemsize for size in n_bytes]
    sizes = [n if pays and 2 * n <= n_rows else 0 for n in sizes]
    return [(n, np.empty((n_columns, n + _PADDING), codes.dtype)) for n in sizes]
