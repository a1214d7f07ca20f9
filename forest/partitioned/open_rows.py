"""The rows of a partition in each open node: begun from in-bag counts, divided by cuts.

    rows    [ 0 2 3 7 | 1 2 | 0 4 5 6 ]      segments 0, 1, 2: open nodes of any trees
    split     yes       no    yes, and its right child is a leaf
    rows    [ 0 7 | 2 3 | 4 5 ]              the segments after: left, right, left

Nothing is changed in place, so that what a lost worker had can be recomputed step by step.
"""

from typing import NamedTuple

import numpy as np

from cart.jit.decorators import entry_kernel
from forest.partitioned.histograms import OpenRows


class Fates(NamedTuple):
    """What becomes of the segments."""

    feature: np.ndarray  # (n_segments,) int32: feature of the split; negative: drop the segment
    left_code: np.ndarray  # (n_segments,) int64: rows with a code up to this one go left
    missing_left: np.ndarray  # (n_segments,) bool: whether rows without a value go left
    is_open: np.ndarray  # (n_segments, 2) bool: whether the left and the right child are kept
    goes_left: np.ndarray  # (n_subsets, n_codes) uint8: which categories go left
    subset: np.ndarray  # (n_segments,) int32: row of `goes_left`; -1: split by left_code


def begin(counts, first_row):
    """The open rows of the roots.

    Parameters
    ----------
    counts : iterable of ndarray of shape (n_rows,), int
        How often each row of the partition is in bag, tree after tree.
    first_row : int
        The number of the partition's first row in the whole table.

    Returns
    -------
    OpenRows
    """
    rows, weights = [], []
    for of_tree in counts:
        rows.append(np.flatnonzero(of_tree).astype(np.uint32))
        weights.append(of_tree[rows[-1]])
    start = np.cumsum([0, *map(len, rows)])
    weight = np.concatenate(weights)
    dtype = np.min_scalar_type(int(weight.max(initial=0)))
    return OpenRows(np.concatenate(rows), weight.astype(dtype), start, first_row)


def divide(codes, opened, fates):
    """Divide the open rows by the decisions about a level.

    Parameters
    ----------
    codes : ndarray of shape (n_features, n_rows)
        See `forest.partitioned.histograms.count`.
    opened : OpenRows
    fates : Fates

    Returns
    -------
    OpenRows
    """
    sizes = np.diff(opened.start)[fates.feature >= 0]
    n, most = int(sizes.sum()), int(sizes.max(initial=0))
    rows, weight = np.empty(n, opened.rows.dtype), np.empty(n, opened.weight.dtype)
    start = np.zeros(2 * len(sizes) + 1, np.int64)
    spare = opened._replace(rows=np.empty(most, rows.dtype), weight=np.empty(most, weight.dtype))
    after = opened._replace(rows=rows, weight=weight, start=start)
    n_segments = _divide(codes, opened, fates, after, spare)
    n = start[n_segments]
    return after._replace(rows=rows[:n], weight=weight[:n], start=start[: n_segments + 1].copy())


@entry_kernel
def _divide(codes, opened, fates, after, spare):
    """Divide segments at their splits; write those that stay open, return how many there are."""
    missing = np.int64(np.uint64(0xFFFFFFFF) >> np.uint64(32 - 8 * codes.itemsize))  # all bits set
    n_segments = 0
    end = 0
    for s in range(fates.feature.shape[0]):
        if fates.feature[s] < 0:
            continue
        column, left_code = codes[fates.feature[s]], fates.left_code[s]
        n_left, n_right, subset = 0, 0, fates.subset[s]
        for j in range(opened.start[s], opened.start[s + 1]):
            code = np.int64(column[opened.rows[j]])
            if code == missing:
                left = fates.missing_left[s]
            elif subset >= 0:
                left = fates.goes_left[subset, code] == 1
            else:
                left = code <= left_code
            after.rows[end + n_left] = opened.rows[j]
            after.weight[end + n_left] = opened.weight[j]
            spare.rows[n_right] = opened.rows[j]
            spare.weight[n_right] = opened.weight[j]
            n_left += left
            n_right += not left
        if fates.is_open[s, 0]:
            end += n_left
            n_segments += 1
            after.start[n_segments] = end
        if fates.is_open[s, 1]:
            for j in range(n_right):
                after.rows[end + j] = spare.rows[j]
                after.weight[end + j] = spare.weight[j]
            end += n_right
            n_segments += 1
            after.start[n_segments] = end
    return n_segments


class NodeRows(NamedTuple):
    """The rows of some nodes, with their codes, targets and weights."""

    codes: np.ndarray  # (n_features, n)
    targets: np.ndarray  # (n,): classes, or whole steps
    weight: np.ndarray  # (n,)
    start: np.ndarray  # (n_nodes + 1,) int64


class CompressedRows(NamedTuple):
    """The rows of a partition in some nodes, compressed.

    A row is stored as its distance from the previous one, in a byte; how often it is in bag, in
    four bits. Larger numbers are stored separately.
    """

    first: np.ndarray  # (n_nodes,) int64: the first row of each node; 0 if it has none
    steps: np.ndarray  # (n,) uint8: 0 at the first row of a node, _FAR if the step is in `far`
    far: np.ndarray  # uint32: steps from _FAR on
    weights: np.ndarray  # (n + 1) // 2 of uint8: two rows each; _MANY if the weight is in `many`
    many: np.ndarray  # weights from _MANY on
    start: np.ndarray  # (n_nodes + 1,) int64

    @property
    def rows(self):
        """Row numbers, (n,) int64."""
        steps = self.steps.astype(np.int64)
        steps[self.steps == _FAR] = self.far
        walked = np.concatenate(([0], np.cumsum(steps)))
        return walked[1:] + np.repeat(self.first - walked[self.start[:-1]], np.diff(self.start))

    @property
    def weight(self):
        """How often each is in bag, (n,)."""
        weight = np.empty(2 * len(self.weights), self.many.dtype)
        weight[0::2], weight[1::2] = self.weights & _MANY, self.weights >> 4
        weight = weight[: len(self.steps)]
        weight[weight == _MANY] = self.many
        return weight


_FAR, _MANY = 255, 15


def list_rows(opened, segments):
    """List the rows in some segments of a partition, in few bytes.

    Parameters
    ----------
    opened : OpenRows
    segments : ndarray of shape (n_nodes,), int64

    Returns
    -------
    CompressedRows
    """
    spans = [slice(opened.start[s], opened.start[s + 1]) for s in segments]
    rows = np.concatenate([opened.rows[span] for span in spans])
    weight = np.concatenate([opened.weight[span] for span in spans])
    start = np.cumsum([0, *(span.stop - span.start for span in spans)])
    has_rows = np.diff(start) > 0
    begins = start[:-1][has_rows]
    first = np.zeros(len(spans), np.int64)
    first[has_rows] = rows[begins]
    steps = np.diff(rows, prepend=rows[:1])
    steps[begins] = 0
    few = np.minimum(weight, _MANY).astype(np.uint8)
    few = np.append(few, np.zeros(len(few) % 2, np.uint8))
    return CompressedRows(
        first, np.minimum(steps, _FAR).astype(np.uint8), steps[steps >= _FAR],
        few[0::2] | few[1::2] << 4, weight[weight >= _MANY], start,
    )  # fmt: skip


def take_rows(codes, targets, rows, weight, start):
    """The NodeRows of a partition's rows, given their numbers, weights and nodes' starts."""
    return NodeRows(codes.take(rows, axis=1), targets[0][rows], weight, start)


def gather(codes, targets, opened, segments):
    """Gather the rows of some segments of a partition, to be sent elsewhere.

    Parameters
    ----------
    codes, opened : see `divide`
    targets : ClassTargets or NumberTargets
    segments : ndarray of shape (n_nodes,), int64

    Returns
    -------
    NodeRows
    """
    listed = list_rows(opened, segments)
    return take_rows(codes, targets, listed.rows, listed.weight, listed.start)
