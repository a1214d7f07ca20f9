"""Compute the thresholds of grown trees from the codes on either side of their cuts.

A fast path grows on ranks only: it stores the two codes beside a cut, as one word, in place of the
threshold. Values are looked up once the trees are grown. If they were left in X (see
`cart.table.encoding.complete`), a thread takes a few of the columns that have cuts at a time, for
all trees, so that a fit on few threads never holds the values of all columns.
"""

import numpy as np

from cart.jit.decorators import entry_kernel, inline_kernel
from cart.primitives.sort_keys import CODE_SHIFT, RECORD
from cart.primitives.threads import in_parts
from cart.table.distinct_values import Levels, level_at
from cart.table.encoding import (
    BLOCK,
    FEW_VALUES,
    LEAST_COLUMNS,
    LEAST_PER_THREAD,
    look_up,
)

_PARTS = 8  # parts of the columns, looked up one after another: each is a pass over all nodes


@inline_kernel
def cut_of(left_code, right_code):
    """Pack the codes on either side of a cut into a word."""
    return np.uint64(left_code) << CODE_SHIFT | np.uint64(right_code)


def write_thresholds(features, thresholds, table, first=0, end=None):
    """Replace cuts by thresholds.

    Parameters
    ----------
    features : ndarray of shape (n_nodes,), int32
        Negative in leaves, which are skipped.
    thresholds : ndarray of shape (n_nodes,), float64
        Holds the words of the cuts; changed in place.
    table : Table or SparseTable
        The table that the trees were grown on, complete.
    first, end : int, optional
        Only cuts in columns first, ..., end - 1 are replaced.
    """
    end = len(table.level_start) - 1 if end is None else end
    # Without the codes, whose dtype varies: the kernel is compiled once.
    parts = table.columns, table.level_start, table.levels, table.tops
    span = np.int64(first), np.int64(end)
    _write(features, thresholds.view(np.uint64), thresholds, *parts, span)


@entry_kernel
def _write(features, cuts, thresholds, columns, level_start, levels, tops, span):
    first, end = span
    for i in range(features.shape[0]):
        if features[i] < 0:
            continue
        column = columns[features[i]]
        if first <= column < end:
            low_at = level_start[column] + np.int64(cuts[i] >> CODE_SHIFT)
            high_at = level_start[column] + np.int64(cuts[i] & RECORD)
            if high_at == level_start[column + 1]:  # all known values go left
                thresholds[i] = np.inf
                continue
            low, high = level_at(tops, low_at), level_at(levels, high_at)
            threshold = low / 2.0 + high / 2.0
            thresholds[i] = threshold if threshold < high else low  # if it was rounded up to `high`


def fill_thresholds(trees, table, columns, n_jobs=None):
    """Replace the cuts of trees by thresholds.

    Parameters
    ----------
    trees : list of cart.tree.tree.Tree or None
        Those with cuts are changed in place.
    table : cart.table.table.Table
    columns : cart.table.columns.Columns
        Of the table.
    n_jobs : int or None
        As in joblib.
    """
    trees = [tree for tree in trees if tree is not None and tree.has_cuts]
    if not trees:
        return
    splits = [tree.splits for tree in trees]
    is_used = np.zeros(len(table.codes), bool)
    for features, _ in splits:
        is_used[table.columns[features[features >= 0]]] = True
    used = np.flatnonzero(is_used)  # the columns that have cuts, ascending
    n_samples = table.codes.shape[1]
    n_parts = _PARTS if len(used) * n_samples > FEW_VALUES else 1
    step = max(LEAST_COLUMNS, -(-len(used) // n_parts))
    least = max(LEAST_PER_THREAD, BLOCK // n_samples)

    def fill_columns(begin, behind):
        mine = used[begin:behind]
        first, end = int(mine[0]), int(mine[behind - begin - 1]) + 1
        which = slice(first, end) if end - first == len(mine) else mine
        values = Levels.of(look_up(table, columns, which))
        n_levels = np.zeros_like(table.level_start)
        n_levels[mine + 1] = table.n_levels()[mine]
        part = table._replace(levels=values, tops=values, level_start=np.cumsum(n_levels))
        for features, thresholds in splits:
            write_thresholds(features, thresholds, part, first, end)

    if len(used) > 0:
        in_parts(fill_columns, len(used), n_jobs, least, step)
    for tree in trees:
        del tree.has_cuts
