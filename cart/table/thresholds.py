"""Thresholds of grown trees, from the codes between which the fast paths cut.

A fast path grows on ranks alone: it leaves the codes on either side of a cut, a word, where the
threshold will stand. Values are looked up when trees are grown. Where they were left in X (see
`cart.table.encoding.complete`), a thread looks up some columns at a time for all trees, so that a
fit on few threads never holds the values of all.
"""

import numpy as np

from cart.jit.decorators import entry_kernel, inline_kernel
from cart.primitives.sort_keys import CODE_SHIFT, RECORD
from cart.primitives.threads import in_parts
from cart.table.distinct_values import Levels, level_at
from cart.table.encoding import BLOCK, LEAST_COLUMNS, LEAST_PER_THREAD, look_up

_PARTS = 8  # of the columns, at most, whose values are looked up at once: nodes are met so often


@inline_kernel
def cut_of(left_code, right_code):
    """The word of a cut between two codes."""
    return np.uint64(left_code) << CODE_SHIFT | np.uint64(right_code)


def write_thresholds(features, thresholds, table, first=0, end=None):
    """Write thresholds in the place of cuts.

    Parameters
    ----------
    features : ndarray of shape (n_nodes,), int32
        Negative in leaves, which are passed over.
    thresholds : ndarray of shape (n_nodes,), float64
        With the words of the cuts.
    table : cart.table.table.Table
        That the trees were grown on, complete.
    first, end : int, optional
        Of features in columns first, ..., end - 1 only.
    """
    end = len(table.codes) if end is None else end
    parts = table.columns, table.level_start, table.levels, table.tops  # compiled for one kind
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
            if high_at == level_start[column + 1]:  # all but the missing go left
                thresholds[i] = np.inf
                continue
            low, high = level_at(tops, low_at), level_at(levels, high_at)
            threshold = low / 2.0 + high / 2.0
            thresholds[i] = threshold if threshold < high else low  # rounded up to it


def fill_thresholds(trees, table, columns, n_jobs=None):
    """Write the thresholds of trees that have cuts in their place.

    Parameters
    ----------
    trees : list of cart.tree.tree.Tree or None
        Changed in place.
    table : cart.table.table.Table
    columns : cart.table.columns.Columns
        Of the table.
    n_jobs : int or None
        joblib's.
    """
    trees = [tree for tree in trees if tree is not None and tree.has_cuts]
    if not trees:
        return
    splits = [tree.splits for tree in trees]
    n_columns = len(table.codes)
    step = max(LEAST_COLUMNS, -(-n_columns // _PARTS))
    least = max(LEAST_PER_THREAD, BLOCK // table.codes.shape[1])

    def fill_columns(first, end):
        values = Levels.of(look_up(table, columns, first, end))
        start = table.level_start - table.level_start[first]
        part = table._replace(levels=values, tops=values, level_start=start)
        for features, thresholds in splits:
            write_thresholds(features, thresholds, part, first, end)

    in_parts(fill_columns, n_columns, n_jobs, least, step)
    for tree in trees:
        del tree.has_cuts
