"""Histograms of columns of numbers: rows are added up by code.

Nodes of few rows are grown by sorting (see `cart.fast_paths.regression.small_nodes`).
"""

from typing import NamedTuple

import numpy as np

from cart.fast_paths.regression.cut_score import weight_at
from cart.fast_paths.regression.histograms.histogram import (
    CODES_MAX,
    WORD_MASK,
    WORD_SHIFT,
    Filled,
    add_row,
    code_range,
)
from cart.fast_paths.regression.node_sums import partition_rows
from cart.fast_paths.regression.small_nodes.node import enter_small_node, restore_rows
from cart.fast_paths.regression.small_nodes.ranked_rows import rank_codes, read_code, write_code
from cart.fast_paths.regression.small_nodes.subtree import grow_small_subtree
from cart.jit.decorators import inline_kernel
from cart.table.table import same_value


class Numbers(NamedTuple):
    """All columns hold numbers."""

    def read_column(self, scratch, rows, table, column, node, limits):
        return add_up_codes(scratch, rows, table, column, node, limits)

    def keep_cut(self, table, filled, best, found):
        return found

    def divide_rows(self, scratch, rows, table, cut, node):
        return divide_codes(scratch, rows, table, cut, node)

    def note_split(self, table, this, cut):
        pass

    def grow_small(self, growth, table, rows, node, height, n_nodes, limits):
        features = growth.draw.features[node.n_constant :]
        if not _hand_to_small_node(rows, growth.small, table, features, node):
            return np.int64(-1)
        return grow_small_subtree(growth, table, rows.samples, height + 1, n_nodes, limits)


@inline_kernel
def add_up_codes(scratch, rows, table, column, node, limits):
    """Add up a node's rows by the codes of a column of numbers; return a Filled."""
    node_rows, codes = rows.samples[node.start : node.end], rows.codes[column]
    n_codes = table.level_start[column + 1] - table.level_start[column]
    if node.n < n_codes:
        words = _fill_sparse(scratch, node_rows, codes, rows.targets)
    else:
        words = _fill_dense(scratch, node_rows, codes, rows.targets, n_codes)
    first, last = np.int64(0), np.int64(CODES_MAX)
    if limits.min_samples_leaf > 1:
        for i in range(node.n):
            scratch.counts[codes[node_rows[i]]] += 1
        first, last = code_range(scratch, words, node.n, limits.min_samples_leaf)
    return Filled(words, first, last, 0, False)


@inline_kernel
def divide_codes(scratch, rows, table, cut, node):
    """Divide a node's rows at a cut of a column of numbers; see `divide_rows`."""
    codes = rows.codes[table.columns[cut.feature]]
    return partition_rows(rows.samples, scratch.spare, codes, cut, node.start, node.n)


@inline_kernel
def _fill_sparse(scratch, rows, codes, targets):
    """Add up the rows by code, and mark the codes that occur: for nodes with few of all codes.

    Returns a word with a bit set for each word of scratch.occupied that is not 0.
    """
    occupied = scratch.occupied
    words = np.uint64(0)
    for i in range(rows.shape[0]):
        row = rows[i]
        code = codes[row]
        add_row(scratch, code, targets, row)
        w = np.uint64(code >> WORD_SHIFT)
        occupied[w] |= np.uint64(1) << np.uint64(code & WORD_MASK)
        words |= np.uint64(1) << w
    return words


@inline_kernel
def _fill_dense(scratch, rows, codes, targets, n_codes):
    """As `_fill_sparse`, for nodes in which most codes occur: these are marked afterwards."""
    sums, occupied = scratch.sums, scratch.occupied
    for i in range(rows.shape[0]):
        row = rows[i]
        add_row(scratch, codes[row], targets, row)
    words = np.uint64(0)
    for begin in range(0, n_codes, WORD_MASK + 1):
        word = np.uint64(0)
        for code in range(begin, min(begin + WORD_MASK + 1, n_codes)):
            word |= np.uint64(weight_at(sums, code) != 0.0) << np.uint64(code - begin)
        occupied[begin >> WORD_SHIFT] = word
        words |= np.uint64(word != 0) << np.uint64(begin >> WORD_SHIFT)
    return words


@inline_kernel
def _hand_to_small_node(rows, small, table, features, node):
    """Give the node's rows numbers and words; return False, with no effect, if impossible."""
    n = node.n
    mean = node.total / node.weight
    if not enter_small_node(small, rows.samples, node.start, n, rows.targets, mean):
        return False
    for j in range(features.shape[0]):
        column = table.columns[features[j]]
        codes = rows.codes[column]
        for i in range(n):
            write_code(small, i, column, codes[small.rows[i]])
        if table.tie_span[column] > 0 and _has_ties(small, table, column, n):
            restore_rows(small, rows.samples, node.start, n)  # where a cut lies depends on the node
            return False
    rank_codes(small, n)
    return True


@inline_kernel
def _has_ties(small, table, column, n):
    """Are two different codes of the rows ties?"""
    for i in range(n):
        for j in range(n):
            low, high = read_code(small, i, column), read_code(small, j, column)
            if 0 < high - low <= np.int64(table.tie_span[column]) and same_value(
                table, column, low, high
            ):
                return True
    return False
