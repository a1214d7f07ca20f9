"""Send rows down packed trees, many rows in flight at once.

walker   0  1  2  3  4  5  6  7 | 8 ..      a walker is a row in a tree; eight take a step in
place    9  4  9  3  .  .  .  . | . ..      turn, so that their cache misses overlap
arrived     x     x                         after some steps, those that have arrived are dropped:
todo     0  2  4  5  6  7  8 ..             todo = [those on their way | n, n, .. fills lanes]
"""

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix, issparse

from cart.jit.decorators import entry_kernel, inline_kernel, kernel
from cart.primitives.row_keys import INFINITE, SOME_MISSING, keys_of
from cart.tree.nodes import LEAF
from cart.tree.packed import (
    NO_TABLE,
    Infinite,
    PackedRows,
    check_width,
    goes_by_keys,
    has_missing,
    is_narrow,
    picks_columns,
)
from cart.tree.packed_protocol import (
    MISSING_LEFT,
    fetch,
    left_of,
    step,
    value_at,
    write_rows,
)

# Walkers on their way at once: their data stay in the cache.
_WALKERS = 512
# Walkers that take their steps in turn: their cache misses overlap (one at a time was 4x slower),
# and their places fit into registers.
_LANES = 8
# Steps between two checks for arrival, after the first check.
_STEPS = 4
# Values of the rows that visit a tree before the next tree: with fewer, trees would be read from
# memory more often.
_BLOCK_VALUES = 1 << 20
# Most nodes per row of a tree that is prefetched: not many more than a row passes.
_NODES_PER_ROW = 8
# Rows that are prepared at a time: the largest of _LEAST_ROWS, _ROWS_PER_TREE for each tree, and
# the mean number of nodes of a tree, since trees are read from memory again for the next rows.
_LEAST_ROWS, _ROWS_PER_TREE = 8192, 1024
# Values of the sparse rows that are expanded at a time: they stay in the cache.
_SPARSE_VALUES = 1 << 18


class Walkers(NamedTuple):
    """Rows on their way down trees; a walker is a row in a tree."""

    row: np.ndarray  # (_WALKERS + 1,) uint64: where the values of the walker's row begin
    place: np.ndarray  # (_WALKERS + 1,) uint64: the walker's place among the nodes
    todo: np.ndarray  # (_WALKERS + _LANES,) uint64: the walkers that have not arrived

    @classmethod
    def create(cls):
        sizes = _WALKERS + 1, _WALKERS + 1, _WALKERS + _LANES
        return cls(*(np.zeros(size, np.uint64) for size in sizes))


class SparseRows(NamedTuple):
    """Rows of a sparse table as packed trees take them.

    The entries of some rows at a time are written into rows of zeros, which are sent, and then
    reset at the same positions; to write whole rows of zeros anew would cost time for every column:

        zeros    0 0 0 0 0 0 | 0 0 0 0 0 0
        written  0 3 0 0 0 1 | 0 0 0 7 0 0
    """

    start: np.ndarray  # (n_samples + 1,) int64: row i has entries start[i]:start[i + 1]
    columns: np.ndarray  # (n_entries,) int32
    values: np.ndarray  # (n_entries + 1,) as in PackedRows: of the entries, then that of 0
    width: int  # see PackedRows
    may_miss: bool

    @classmethod
    def of(cls, packed, X):
        """Prepare a sparse X of shape (n_samples, n_features); see `PackedRows.of`."""
        check_width(packed, X)
        X = X.tocsr()
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        start, columns, values = X.indptr.astype(np.int64), X.indices, X.data
        width = X.shape[1]
        if is_narrow(packed):
            number, width = np.full(width, -1, np.int32), len(packed.columns)
            number[packed.columns] = np.arange(width)
            columns = number[columns]
            kept = np.flatnonzero(columns >= 0)
            start, columns, values = np.searchsorted(kept, start), columns[kept], values[kept]
        values = np.append(values, X.dtype.type(0))
        may_miss = has_missing(values)
        if goes_by_keys(packed):
            values, may_miss, _ = keys_of(values[np.newaxis])
            width += 1
        return cls(start, columns.astype(np.int32, copy=False), values, width, may_miss)

    @property
    def n_samples(self):
        return len(self.start) - 1

    def room(self, packed, n_rows):
        """PackedRows of zeros, for as many rows as are sent at a time, and their numbers."""
        n_rows = max(1, min(n_rows, max(_LANES, _SPARSE_VALUES // self.width)))
        values = np.full((n_rows, self.width), self.values[len(self.columns)])
        if goes_by_keys(packed):
            values[:, -1] = 0
        room = PackedRows(values.ravel(), self.width, self.may_miss, NO_TABLE)
        return room, np.arange(n_rows)


def rows_for(packed, X):
    """Prepare rows for packed trees; the result can be used in any number of calls.

    Parameters
    ----------
    packed : one of the forms that `cart.tree.packed.pack` returns
    X : ndarray in any memory order, or sparse
        Of shape (n_samples, n_features).

    Returns
    -------
    PackedRows or SparseRows
    """
    return SparseRows.of(packed, X) if issparse(X) else PackedRows.of(packed, X)


@inline_kernel
def _pick(values, at):
    return (
        values[at[0]], values[at[1]], values[at[2]], values[at[3]],
        values[at[4]], values[at[5]], values[at[6]], values[at[7]],
    )  # fmt: skip


@inline_kernel
def _step_all(packed, place, X, row, may_miss):
    return (
        step(packed, place[0], X, row[0], may_miss),
        step(packed, place[1], X, row[1], may_miss),
        step(packed, place[2], X, row[2], may_miss),
        step(packed, place[3], X, row[3], may_miss),
        step(packed, place[4], X, row[4], may_miss),
        step(packed, place[5], X, row[5], may_miss),
        step(packed, place[6], X, row[6], may_miss),
        step(packed, place[7], X, row[7], may_miss),
    )


@inline_kernel
def _note(packed, walkers, walker, place, n_todo):
    """Store the place of a walker, and add it to `todo` unless it has arrived at a leaf."""
    walkers.place[walker] = place
    walkers.todo[n_todo] = walker
    return n_todo + (left_of(packed, place) != place)


@inline_kernel
def _note_all(packed, walkers, walker, place, n_todo):
    n_todo = _note(packed, walkers, walker[0], place[0], n_todo)
    n_todo = _note(packed, walkers, walker[1], place[1], n_todo)
    n_todo = _note(packed, walkers, walker[2], place[2], n_todo)
    n_todo = _note(packed, walkers, walker[3], place[3], n_todo)
    n_todo = _note(packed, walkers, walker[4], place[4], n_todo)
    n_todo = _note(packed, walkers, walker[5], place[5], n_todo)
    n_todo = _note(packed, walkers, walker[6], place[6], n_todo)
    return _note(packed, walkers, walker[7], place[7], n_todo)


@inline_kernel
def _walk(packed, first_tree, end_tree, X, rows, may_miss, walkers):
    """Send rows down some trees to their leaves; walkers are numbered tree by tree."""
    row, place, todo = walkers
    n = 0
    for tree in range(first_tree, end_tree):
        for i in range(rows.shape[0]):
            row[n] = rows[i] * X.width
            place[n] = packed.start[tree]
            todo[n] = n
            n += 1
    # Walker n fills up the lanes. It stays at the last place of the first tree, which is a leaf.
    row[n], place[n] = row[0], packed.start[1] - 1
    n_todo = n
    # Few leaves are above the depth of a balanced tree with as many nodes.
    n_steps = int(np.log2(packed.start[first_tree + 1] - packed.start[first_tree] + 1))
    while n_todo > 0:
        for k in range(n_todo, n_todo + _LANES):
            todo[k] = n
        n_before, n_todo = n_todo, 0
        for k in range(0, n_before, _LANES):
            walker = _pick(todo[k : k + _LANES], (0, 1, 2, 3, 4, 5, 6, 7))
            its_row, at = _pick(row, walker), _pick(place, walker)
            for _ in range(n_steps):
                at = _step_all(packed, at, X.values, its_row, may_miss)
            n_todo = _note_all(packed, walkers, walker, at, n_todo)
        n_steps = _STEPS


@inline_kernel
def _add(packed, first_tree, end_tree, X, rows, may_miss, walkers, out):
    block = max(_WALKERS, _BLOCK_VALUES // X.width)
    n_rows = rows.shape[0]
    n_pure = np.uint64(packed.value_start[0])
    # Few rows walk down several trees at once.
    n_together = max(1, _WALKERS // max(1, min(n_rows, block)))
    for begin in range(0, n_rows, block):
        end = min(begin + block, n_rows)
        n_parts = (end - begin + _WALKERS - 1) // _WALKERS
        for tree in range(first_tree, end_tree, n_together):
            following = min(tree + n_together, end_tree)
            fetches = False
            if n_together == 1 and following < end_tree:
                n_nodes = packed.start[following + 1] - packed.start[following]
                fetches = n_nodes <= _NODES_PER_ROW * (end - begin)
            for part in range(n_parts):
                if fetches:
                    fetch(packed, following, part, n_parts)
                first = begin + part * _WALKERS
                here = rows[first : min(first + _WALKERS, end)]
                _walk(packed, tree, following, X, here, may_miss, walkers)
                walker = 0
                for own in range(tree, following):
                    own_row = np.uint64(packed.value_start[own]) - n_pure
                    for i in range(here.shape[0]):
                        at = value_at(packed, walkers.place[walker])
                        if at < n_pure:  # a pure leaf: 1 for its class, else 0
                            out[here[i], at] += 1.0
                        else:
                            for k in range(out.shape[1]):
                                out[here[i], k] += packed.value[own_row + at, k]
                        walker += 1


# Separate functions, so that the places of the walkers get all registers.
@kernel
def _add_with_missing(packed, first_tree, end_tree, X, rows, walkers, out):
    _add(packed, first_tree, end_tree, X, rows, True, walkers, out)


@kernel
def _add_without_missing(packed, first_tree, end_tree, X, rows, walkers, out):
    _add(packed, first_tree, end_tree, X, rows, False, walkers, out)


@entry_kernel
def _add_values(packed, first_tree, end_tree, X, rows, walkers, out):
    """Add the leaf values of trees first_tree, ..., end_tree - 1 to out[rows], in tree order.

    If X has a table, all its rows are sent, len(rows) at a time; `rows` is then 0, 1, .... Returns
    False at once if a value is infinite.
    """
    n, n_together = X.table.shape[0], max(rows.shape[0], 1)
    for begin in range(0, max(n, 1), n_together):
        n_here, end, may_miss = rows.shape[0], out.shape[0], X.may_miss
        if n > 0:
            end = min(begin + n_together, n)
            n_here = end - begin
            found = write_rows(packed, X.table[begin:end], X.values)
            if found == INFINITE:
                return False
            may_miss = found == SOME_MISSING
        here, there = rows[:n_here], out[begin:end]
        if may_miss:
            _add_with_missing(packed, first_tree, end_tree, X, here, walkers, there)
        else:
            _add_without_missing(packed, first_tree, end_tree, X, here, walkers, there)
    return True


@kernel
def _find(packed, tree, X, rows, walkers, out):
    for first in range(0, rows.shape[0], _WALKERS):
        here = rows[first : first + _WALKERS]
        if X.may_miss:
            _walk(packed, tree, tree + 1, X, here, True, walkers)
        else:
            _walk(packed, tree, tree + 1, X, here, False, walkers)
        for i in range(here.shape[0]):
            out[first + i] = packed.number[walkers.place[i]] & ~MISSING_LEFT


@entry_kernel
def _find_leaves(packed, tree, X, rows, walkers, out):
    """Write the numbers, in their Tree, of the leaves that `rows` reach."""
    _find(packed, tree, X, rows, walkers, out)


@inline_kernel
def _write(table, rows, X, takes_away):
    """Write the entries of sparse rows into the zeros of X, or zeros over them."""
    zero = table.values[table.columns.shape[0]]
    for i in range(rows.shape[0]):
        for entry in range(table.start[rows[i]], table.start[rows[i] + 1]):
            value = zero if takes_away else table.values[entry]
            X.values[i * X.width + table.columns[entry]] = value


@entry_kernel
def _add_sparse_values(packed, trees, X, table, rows, own, walkers, out):
    """Add the leaf values of trees trees[0], ..., trees[1] - 1 to `out`, for sparse rows.

    The rows are written to rows `own` of X, which are 0, 1, ..., len(own) at a time.
    """
    for begin in range(0, rows.shape[0], own.shape[0]):
        mine = rows[begin : begin + own.shape[0]]
        here, there = own[: mine.shape[0]], out[begin : begin + mine.shape[0]]
        _write(table, mine, X, False)
        if X.may_miss:
            _add_with_missing(packed, trees[0], trees[1], X, here, walkers, there)
        else:
            _add_without_missing(packed, trees[0], trees[1], X, here, walkers, there)
        _write(table, mine, X, True)


@entry_kernel
def _find_sparse_leaves(packed, tree, X, table, rows, own, walkers, out):
    for begin in range(0, rows.shape[0], own.shape[0]):
        mine = rows[begin : begin + own.shape[0]]
        _write(table, mine, X, False)
        _find(packed, tree, X, own[: mine.shape[0]], walkers, out[begin : begin + mine.shape[0]])
        _write(table, mine, X, True)


def leaf_ids(packed, tree, X, rows=None):
    """Return the number of the leaf that each row reaches in one tree.

    Parameters
    ----------
    packed : one of the forms that `cart.tree.packed.pack` returns
    tree : int
    X : PackedRows, SparseRows, ndarray or csr_matrix
        Of shape (n_samples, n_features). An array of another dtype than `packed` is made for is
        converted as in `PackedRows.of`.
    rows : ndarray of shape (n_rows,), int64, optional
        Rows of X to send; all by default.

    Returns
    -------
    ndarray of shape (n_rows,), int64
    """
    X = X if isinstance(X, PackedRows | SparseRows) else rows_for(packed, X)
    rows = np.arange(X.n_samples) if rows is None else rows
    out, walkers = np.empty(len(rows), np.int64), Walkers.create()
    if isinstance(X, SparseRows):
        room, own = X.room(packed, len(rows))
        _find_sparse_leaves(packed, tree, room, X, rows, own, walkers, out)
    else:
        _find_leaves(packed, tree, X, rows, walkers, out)
    return out


def sum_of_values(packed, X, first_tree=0, end_tree=None, rows=None, out=None):
    """Return the sum over trees of the values of the leaves that rows reach, in tree order.

    Parameters
    ----------
    packed, X, rows : see `leaf_ids`
    first_tree, end_tree : int
        Trees first_tree..end_tree - 1; all by default.
    out : ndarray of shape (n_samples, n_values), float64, optional
        Is added to in place, at `rows`.

    Returns
    -------
    ndarray of shape (n_samples, n_values), float64

    Raises
    ------
    Infinite
        If X is in double precision, but trees are packed for single precision, in which a value is
        infinite. Then `out` may be left half done.
    """
    end_tree = len(packed.start) - 1 if end_tree is None else end_tree
    X = SparseRows.of(packed, X) if issparse(X) else X
    walkers = Walkers.create()
    if out is None:
        n_samples = len(X) if isinstance(X, np.ndarray) else X.n_samples
        out = np.zeros((n_samples, packed.value.shape[1]))
    if isinstance(X, SparseRows):
        rows = np.arange(X.n_samples) if rows is None else rows
        values = np.zeros((len(rows), out.shape[1]))
        (room, own), trees = X.room(packed, len(rows)), (first_tree, end_tree)
        _add_sparse_values(packed, trees, room, X, rows, own, walkers, values)
        out[rows] += values
        return out
    if rows is not None or isinstance(X, PackedRows):
        X = X if isinstance(X, PackedRows) else PackedRows.of(packed, X)
        rows = np.arange(X.n_samples) if rows is None else rows
        _add_values(packed, first_tree, end_tree, X, rows, walkers, out)
        return out
    # With few trees, it is cheaper to read these again than many prepared rows.
    n_trees, n_nodes = end_tree - first_tree, packed.start[end_tree] - packed.start[first_tree]
    step = max(_LEAST_ROWS, _ROWS_PER_TREE * n_trees, int(n_nodes) // max(n_trees, 1))
    rows = np.arange(min(step, len(X)))
    in_turn = X.dtype == np.float64 and goes_by_keys(packed) and not picks_columns(packed, X)
    size = max(len(X), 1) if in_turn and X.flags.carray else step
    for first in range(0, len(X), size):
        part = X[first : first + size]
        part = PackedRows.in_turn(packed, part, step) if in_turn else PackedRows.of(packed, part)
        mine, there = rows[: part.n_samples], out[first : first + size]
        if not _add_values(packed, first_tree, end_tree, part, mine, walkers, there):
            raise Infinite
    return out


def paths_to(leaves, trees):
    """Return the nodes that rows pass on their ways to leaves, in all trees.

    Parameters
    ----------
    leaves : ndarray of shape (n_trees, n_samples), int64
        See `leaf_ids`.
    trees : list of cart.tree.tree.Tree

    Returns
    -------
    indicator : scipy.sparse.csr_matrix of shape (n_samples, n_nodes), int64
        The nodes of all trees, tree after tree.
    start : ndarray of shape (n_trees + 1,), int64
        Tree t owns columns start[t]:start[t + 1].
    """
    start = np.cumsum([0, *(tree.node_count for tree in trees)])
    left, right = (
        np.concatenate([getattr(tree, name) for tree in trees])
        for name in ("children_left", "children_right")
    )
    parent = np.empty(start[-1], np.int32 if start[-1] < 2**31 else np.int64)
    end = np.zeros(leaves.shape[1] + 1, np.int64)
    scratch = np.empty((2, start[-1]), np.int64)
    _count_nodes(leaves, left, right, start, parent, scratch, end)
    indices = np.empty(end[-1], parent.dtype)
    _write_paths(leaves, start, parent, end, indices)
    shape = leaves.shape[1], start[-1]
    return csr_matrix((np.ones(len(indices), np.int64), indices, end), shape=shape), start


@entry_kernel
def _count_nodes(leaves, left, right, start, parent, scratch, end):
    """Find the parent of every node, -1 for roots, and where the nodes of each row end."""
    depth, queue = scratch
    for tree in range(leaves.shape[0]):
        first, n_met = start[tree], 1
        queue[0], parent[first], depth[first] = first, -1, 1
        for k in range(start[tree + 1] - first):  # breadth first, as children may have any number
            node = queue[k]
            if left[node] != LEAF:
                for child in (first + left[node], first + right[node]):
                    queue[n_met], parent[child], depth[child] = child, node, depth[node] + 1
                    n_met += 1
        for i in range(leaves.shape[1]):
            end[i + 1] += depth[first + leaves[tree, i]]
    for i in range(leaves.shape[1]):
        end[i + 1] += end[i]


@entry_kernel
def _write_paths(leaves, start, parent, end, indices):
    for i in range(leaves.shape[1]):
        at = end[i + 1]
        for tree in range(leaves.shape[0] - 1, -1, -1):
            node = start[tree] + leaves[tree, i]
            while node >= 0:
                at -= 1
                indices[at] = node
                node = np.int64(parent[node])
