"""Sums over trees of the SHAP values of a table: blocks of rows over threads, batches of trees."""

from collections import deque
from collections.abc import Callable, Iterator
from threading import Event
from typing import NamedTuple

import numpy as np
from joblib import effective_n_jobs

from cart.jit.decorators import entry_kernel, inline_kernel
from cart.primitives.threads import in_threads, take_all
from forest.growing.progress import ProgressReporter
from importance.shap.covered_trees import CoveredTrees, tree_at
from importance.shap.interventional import Partings, explain_tree_against
from importance.shap.path_dependent import N_LANES, Fixed, Levels, explain_tree
from importance.shap.quadrature import Rule, gauss_legendre

# Rows that walk together: what is known of them on the lower levels stays in the cache.
_BLOCK = 192
_BATCH_NODES = 200_000  # of trees between two looks at Ctrl-C


class Sums(NamedTuple):
    """Sums over the trees that explain a row."""

    total: np.ndarray  # (n_samples, n_features, n_outputs) float64
    squares: np.ndarray  # the same shape
    pairs: np.ndarray  # (n_samples, n_features, n_features, n_outputs) float64; no rows: not asked

    @classmethod
    def create(cls, shape: tuple[int, int, int], has_pairs: bool) -> "Sums":
        n_samples, n_features, n_outputs = shape
        pairs = n_samples * has_pairs, n_features, n_features, n_outputs
        return cls(np.zeros(shape), np.zeros(shape), np.zeros(pairs))


class Block(NamedTuple):
    """Rows that are explained together."""

    rows: np.ndarray  # (n_rows,) int64
    takes: np.ndarray  # (n_trees, n_samples) bool: which trees explain a row; no rows: all do
    mine: np.ndarray  # (n_rows,) int64: room for those of one tree


def sum_over_trees(
    trees: CoveredTrees, X: np.ndarray, background: np.ndarray | None, takes: np.ndarray,
    interactions: bool, n_jobs: int | None, watch: Callable[[int], ProgressReporter],
) -> Sums:  # fmt: skip
    """The SHAP values of every row, summed over trees; the same for every `n_jobs`.

    Parameters
    ----------
    trees : CoveredTrees
    X, background : ndarray of shape (n_samples, n_features), float64
        Path-dependent values where there is no background.
    takes : ndarray of shape (n_trees, n_samples), bool
        Which trees explain a row; without rows, all do.
    interactions : bool
    n_jobs : int or None
    watch : callable
        `watch(n_steps)` gives the reporter.
    """
    columns = np.ascontiguousarray(X.T, dtype=np.float64)
    references = columns[:, :0] if background is None else np.ascontiguousarray(background.T)
    sums = Sums.create((*X.shape, trees.mean.shape[1]), interactions)
    n_threads = effective_n_jobs(n_jobs)
    size = -(-min(_BLOCK, -(-len(X) // n_threads)) // N_LANES) * N_LANES
    blocks = [np.arange(first, min(first + size, len(X))) for first in range(0, len(X), size)]
    batches = list(_batches(trees))
    is_over = Event()

    def explain(rows: np.ndarray) -> None:
        block = Block(rows, takes, np.empty(len(rows), np.int64))
        for span, rule in batches:
            if is_over.is_set():
                return
            if background is None:
                levels = Levels.create(trees, rule, len(rows))
                add = _add_interactions if interactions else _add_path_dependent
                add(trees, span, columns, block, rule, levels, sums)
            else:
                partings = Partings.create(trees, len(rows))
                _add_interventional(trees, span, columns, block, references, partings, sums)
            reporter.step()

    with watch(len(blocks) * len(batches)) as reporter:
        _for_each(explain, blocks, n_threads, is_over)
    return sums


def _for_each(work, blocks, n_threads, is_over):
    """Work on all blocks in threads; by Ctrl-C they end what they are at, and no more."""
    left = deque((block,) for block in blocks)

    def stop():
        left.clear()
        is_over.set()

    n_threads = min(n_threads, len(blocks))
    if n_threads < 2:
        take_all(left, work)
    else:
        in_threads(lambda: take_all(left, work), n_threads, stop)


def _batches(trees: CoveredTrees) -> Iterator[tuple[np.ndarray, Rule]]:
    """First tree and end of some trees at a time, and the points that are enough for them."""
    first = 0
    for end in range(1, trees.n_trees + 1):
        is_full = trees.start[end] - trees.start[first] >= _BATCH_NODES
        if is_full or end == trees.n_trees:
            yield np.array([first, end]), gauss_legendre(int(trees.distinct[first:end].max()))
            first = end


@inline_kernel
def _take_rows(block, t):
    """Write those rows of a block that tree t explains; return how many they are."""
    n = 0
    for i in range(block.rows.shape[0]):
        block.mine[n] = block.rows[i]
        n += block.takes.shape[0] == 0 or block.takes[t, block.rows[i]]
    return n


@inline_kernel
def _add(tree, rows, phi, sums):
    """Add what a tree says."""
    for j in range(tree.features.shape[0]):
        feature = tree.features[j]
        for i in range(rows.shape[0]):
            for k in range(phi.shape[1]):
                sums.total[rows[i], feature, k] += phi[j, k, i]
                sums.squares[rows[i], feature, k] += phi[j, k, i] * phi[j, k, i]


@entry_kernel
def _add_path_dependent(trees, span, columns, block, rule, levels, sums):
    nobody = Fixed(-1, False)
    for t in range(span[0], span[1]):
        tree, rows = tree_at(trees, t), block.mine[: _take_rows(block, t)]
        if rows.shape[0] > 0:
            explain_tree(tree, columns, rows, rule, nobody, levels)
            _add(tree, rows, levels.phi, sums)


@entry_kernel
def _add_interventional(trees, span, columns, block, references, partings, sums):
    for t in range(span[0], span[1]):
        tree, rows = tree_at(trees, t), block.mine[: _take_rows(block, t)]
        if rows.shape[0] > 0:
            explain_tree_against(tree, columns, rows, references, partings)
            _add(tree, rows, partings.phi, sums)


@entry_kernel
def _add_interactions(trees, span, columns, block, rule, levels, sums):
    """The values, and their halves with each feature there less those without it."""
    for t in range(span[0], span[1]):
        tree, rows = tree_at(trees, t), block.mine[: _take_rows(block, t)]
        if rows.shape[0] == 0:
            continue
        explain_tree(tree, columns, rows, rule, Fixed(-1, False), levels)
        _add(tree, rows, levels.phi, sums)
        for fixed in range(tree.features.shape[0]):
            for is_present in range(2):
                explain_tree(tree, columns, rows, rule, Fixed(fixed, is_present == 1), levels)
                _add_pairs(tree, rows, fixed, is_present - 0.5, levels, sums)


@inline_kernel
def _add_pairs(tree, rows, fixed, sign, levels, sums):
    for j in range(tree.features.shape[0]):
        for i in range(rows.shape[0]):
            pairs = sums.pairs[rows[i], tree.features[fixed], tree.features[j]]
            for k in range(levels.phi.shape[1]):
                if j != fixed:
                    pairs[k] += sign * levels.phi[j, k, i]
