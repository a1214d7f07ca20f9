"""SHAP values of a table, summed over trees: threads take blocks of rows, batches of trees."""

from collections import deque
from collections.abc import Callable, Iterator
from threading import Event
from typing import NamedTuple

import numpy as np

from cart.jit.decorators import entry_kernel, inline_kernel
from cart.jit.simd import on_lanes
from cart.primitives.progress import ProgressReporter
from cart.primitives.threads import effective_n_threads, in_threads, take_all
from importance.shap.covered_trees import CoveredTrees, tree_at
from importance.shap.interventional import Partings, explain_tree_against
from importance.shap.path_dependent import N_LANES, Fixed, Levels, Rules, explain_tree

_BLOCK = 192  # rows that walk together: few enough for their lower levels to stay in the cache
_BATCH_NODES = 200_000  # nodes of trees, counted per walk, between two checks for Ctrl-C


class Sums(NamedTuple):
    """Sums over the trees that explain each row."""

    total: np.ndarray  # (n_samples, n_features, n_outputs) float64
    squares: np.ndarray  # the same shape
    pairs: np.ndarray  # (n_samples, n_features, n_features, n_outputs) float64; empty: not asked


class Block(NamedTuple):
    """Rows that are explained together, stored by column, and sums over their trees.

    Columns are padded to whole vectors.
    """

    rows: np.ndarray  # (n_rows,) int64
    columns: np.ndarray  # (n_features, n_lanes) float64
    may_miss: np.ndarray  # (n_features,) bool: whether a column has missing values
    takes: np.ndarray  # (n_trees, n_samples) bool: which trees explain a row; no rows: all do
    mine: np.ndarray  # (n_rows,) int64: scratch for the positions of the rows of one tree
    total: np.ndarray  # (n_features, n_outputs, n_lanes) float64
    squares: np.ndarray  # the same shape

    @classmethod
    def create(cls, X: np.ndarray, rows: np.ndarray, takes: np.ndarray, n_outputs: int) -> "Block":
        n_lanes = -(-len(rows) // N_LANES) * N_LANES
        columns = np.ascontiguousarray(X[np.resize(rows, n_lanes)].T)
        shape = X.shape[1], n_outputs, n_lanes
        return cls(
            rows, columns, np.isnan(columns).any(axis=1), takes, np.empty(len(rows), np.int64),
            np.zeros(shape), np.zeros(shape),
        )  # fmt: skip


def sum_over_trees(
    trees: CoveredTrees, X: np.ndarray, references: np.ndarray | None, takes: np.ndarray,
    interactions: bool, n_jobs: int | None, watch: Callable[[int], ProgressReporter],
) -> Sums:  # fmt: skip
    """SHAP values of every row, summed over trees; the result does not depend on `n_jobs`.

    Parameters
    ----------
    trees : CoveredTrees
    X : ndarray of shape (n_samples, n_features), float64
    references : ndarray of shape (n_features, n_references), float64, C order, or None
        Reference rows by column; values are path-dependent if there are none.
    takes : ndarray of shape (n_trees, n_samples), bool
        Which trees explain a row; all do if it has no rows.
    interactions : bool
    n_jobs : int or None
    watch : callable
        `watch(n_steps)` returns the reporter.
    """
    n_outputs = trees.mean.shape[1]
    shape = *X.shape, n_outputs
    pairs = np.zeros((len(X) * interactions, X.shape[1], *shape[1:]))
    sums = Sums(np.zeros(shape), np.zeros(shape), pairs)
    n_threads = effective_n_threads(n_jobs)
    blocks = list(_blocks(len(X), n_threads))
    n_walks = 1 + 2 * int(trees.n_used.max()) * interactions
    n_walks *= 1 if references is None else references.shape[1]
    rules, batches = Rules.create(trees.distinct), list(_batches(trees, n_walks))
    is_over = Event()

    def explain(rows: np.ndarray) -> None:
        block = Block.create(X, rows, takes, n_outputs)
        if references is None:
            levels = Levels.create(trees, rules, block.columns.shape[1])
        else:
            partings = Partings.create(trees, block.columns.shape[1])
        for span in batches:
            if is_over.is_set():
                return
            if references is None:
                _add_path_dependent(trees, span, block, rules, levels, sums)
            else:
                _add_interventional(trees, span, block, references, partings)
            reporter.step()
        for mine, found in ((sums.total, block.total), (sums.squares, block.squares)):
            mine[rows] = found[..., : len(rows)].transpose(2, 0, 1)

    with watch(len(blocks) * len(batches)) as reporter:
        _for_each(explain, blocks, n_threads, is_over)
    return sums


def _for_each(work, blocks, n_threads, is_over):
    """Work on all blocks in threads; after Ctrl-C they finish the current batch and stop.

    Even a single thread is a separate one: Ctrl-C is raised where Python code runs.
    """
    left = deque((block,) for block in blocks)

    def stop():
        left.clear()
        is_over.set()

    in_threads(lambda: take_all(left, work), min(n_threads, len(blocks)), stop)


def _blocks(n_rows: int, n_threads: int) -> Iterator[np.ndarray]:
    """Rows in parts of about equal size, equally many for each thread."""
    n_parts = -(-n_rows // (_BLOCK * n_threads)) * n_threads
    size = -(-n_rows // (n_parts * N_LANES)) * N_LANES
    for first in range(0, n_rows, size):
        yield np.arange(first, min(first + size, n_rows))


def _batches(trees: CoveredTrees, n_walks: int) -> Iterator[np.ndarray]:
    """First tree and end of batches of trees, each of which is walked about `n_walks` times."""
    first, n_trees = 0, len(trees.depth)
    for end in range(1, n_trees + 1):
        is_full = trees.start[end] - trees.start[first] >= _BATCH_NODES / n_walks
        if is_full or end == n_trees:
            yield np.array([first, end])
            first = end


@inline_kernel
def _take_rows(block, t):
    """Write the positions of the block's rows that tree t explains; return how many there are."""
    n = 0
    for i in range(block.rows.shape[0]):
        block.mine[n] = i
        n += block.takes.shape[0] == 0 or block.takes[t, block.rows[i]]
    return n


@inline_kernel
def _set_values(tree, block, n, levels):
    """Write the values of a tree's rows, repeating the last up to whole vectors; return these."""
    n_vectors = (n + N_LANES - 1) // N_LANES
    for j in range(tree.features.shape[0]):
        column, value = block.columns[tree.features[j]], levels.value[j]
        levels.may_miss[j] = block.may_miss[tree.features[j]]
        if n == block.rows.shape[0]:
            for i in range(n_vectors * N_LANES):
                value[i] = column[i]
        else:
            for i in range(n_vectors * N_LANES):
                value[i] = column[block.mine[min(i, n - 1)]]
    return n_vectors


@on_lanes(N_LANES)
def _add_to(lanes, i, phi, total, squares):
    phi = lanes.load(phi, i)
    lanes.store(total, lanes.load(total, i) + phi, i)
    lanes.store(squares, lanes.load(squares, i) + phi * phi, i)


@inline_kernel
def _add(tree, block, n, phi):
    """Add the phi of a tree to the sums of its rows."""
    for j in range(tree.features.shape[0]):
        for k in range(phi.shape[1]):
            total, squares = block.total[tree.features[j], k], block.squares[tree.features[j], k]
            found = phi[j, k]
            if n == block.rows.shape[0]:
                for i in range(total.shape[0] // N_LANES):
                    _add_to(i, found, total, squares)
            else:
                for i in range(n):
                    total[block.mine[i]] += found[i]
                    squares[block.mine[i]] += found[i] * found[i]


@entry_kernel
def _add_path_dependent(trees, span, block, rules, levels, sums):
    """Add path-dependent values and, if asked for, pairs.

    The pairs of a feature are half the values with it always present, minus half of those with it
    always absent.
    """
    for t in range(span[0], span[1]):
        tree, n = tree_at(trees, t), _take_rows(block, t)
        if n == 0:
            continue
        n_vectors = _set_values(tree, block, n, levels)
        explain_tree(tree, rules, t, Fixed(-1, False), levels, n_vectors)
        _add(tree, block, n, levels.phi)
        for fixed in range(tree.features.shape[0] if sums.pairs.shape[0] > 0 else 0):
            for is_present in range(2):
                explain_tree(tree, rules, t, Fixed(fixed, is_present == 1), levels, n_vectors)
                _add_pairs(tree, block, n, fixed, is_present - 0.5, levels, sums)


@inline_kernel
def _add_pairs(tree, block, n, fixed, sign, levels, sums):
    for j in range(tree.features.shape[0]):
        for i in range(n):
            row = block.rows[block.mine[i]]
            pairs = sums.pairs[row, tree.features[fixed], tree.features[j]]
            for k in range(levels.phi.shape[1]):
                if j != fixed:
                    pairs[k] += sign * levels.phi[j, k, i]


@entry_kernel
def _add_interventional(trees, span, block, references, partings):
    for t in range(span[0], span[1]):
        tree, rows = tree_at(trees, t), block.mine[: _take_rows(block, t)]
        if rows.shape[0] > 0:
            explain_tree_against(tree, block.columns, rows, references, partings)
            _add(tree, block, rows.shape[0], partings.phi)
