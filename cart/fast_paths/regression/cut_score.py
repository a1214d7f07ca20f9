"""The score of a cut by squared error, bit for bit as in scikit-learn; the protocol of criteria.

The weight and target of a row are stored as a pair, so that one cache line has both:

    targets = [ w0 y0 | w1 y1 | w2 y2 | ... ]

Let w be the weight and s the sum of weighted targets left of a cut, W and S those of the node:

    [ w, s          | W - w, S - s ]     score = s**2 / w + (S - s)**2 / (W - w)
      rows on the left                   gain  = (s - w S / W)**2 / (w (W - w))

The score is S**2 / W + W gain, but only the score is rounded as scikit-learn's is. If two gains
differ by more than `slack_of`, the scores are in the same order despite rounding. So only the cuts
whose gain is within `slack_of` of the best gain need to be scored.
"""

import numpy as np

from cart.jit.decorators import dispatch, inline_kernel

WEIGHT, Y = range(2)  # of every row, side by side in `targets`
_UNIT = 2.0**-53  # of double precision: half a unit in the last place


# ---------------------------------------------------------------------------- the protocol


@dispatch
def take_row(criterion, targets, row, weight, y):
    """Write what the criterion keeps of a row: its weight and its target(s) in `y`."""


@dispatch
def copy_row(criterion, targets, row, copied, i):
    """Copy what `targets` has of a row to the i-th row of `copied`."""


@dispatch
def sum_node(criterion, samples, targets, start, end, sums):
    """Write the sums of samples[start:end] to `sums`."""


@dispatch
def sum_children(criterion, samples, targets, node, middle, sums):
    """Write the sums of both children of a divided node, and return its Halves. The left child's go
    to the row of `sums` after the node's, the right child's to the node's own row."""


@dispatch
def rest_of(criterion, weight, y):
    """What a row adds to REST, the third sum of a node."""


@dispatch
def root_impurity(criterion, samples, targets, n, sums):
    """Impurity of the root, which has samples[:n] and these sums."""


@dispatch
def halves_of(criterion, samples, targets, node, middle, left):
    """The Halves of a divided node, from the sums (weight, total, rest, rest) of its left child:
    three taken from the shorter side, as in scikit-learn; the last added up on the left itself."""


@dispatch
def write_value(criterion, value, sums):
    """Write the value of a node with these sums, not yet clipped to any bounds."""


@dispatch
def search_lanes(criterion, lanes, width, rows, table):
    """Find the best cut of each of `width` lanes (see `cart.fast_paths.regression.best_cut`)."""


@dispatch
def sum_lane_from_right(criterion, lanes, k, i, n, rows):
    """Take the sums of lane k, for the cut behind the i-th of its n entries, from the right."""


@dispatch
def add_row_to_lane(criterion, lanes, k, row, rows):
    """Add a row to the sums of lane k, those left of its current cut."""


@dispatch
def may_score(criterion, lanes, k, rows, bar):
    """May the current cut of lane k score more than this?"""


@dispatch
def score_left(criterion, left, node):
    """The score of a cut as scikit-learn calculates it, from the sums (weight, total, rest) on its
    left and those of the node."""


@dispatch
def score_divided(criterion, samples, targets, n_left, sums):
    """Weight and sum left of a cut, and its score, for a node with these sums, of whose samples the
    first n_left go left."""


@dispatch
def is_free_of_order(criterion):
    """Are the sums of two rows the same in either order, bit for bit?"""


@dispatch
def settled_score(criterion, lanes, k, rows):
    """The score of the current cut of lane k, as scikit-learn calculates it."""


@dispatch
def is_by_gain(criterion):
    """Does the cut with the highest gain have the highest score, up to rounding?"""


@dispatch
def begin_search(criterion, samples, targets, sums, node):
    """Prepare the search of a node; return the number (`SearchedRows.rest`) that the scores of its
    cuts depend on, besides weight and total."""


@dispatch
def grow_if_small(criterion, growth, table, scratch, node, height, n_nodes, limits):
    """Grow the subtree of a small node at this height of the stack, and return how many nodes the
    tree then has; -1 if the node has to be grown like large ones."""


# ------------------------------------------------------------------------------------ sums


@inline_kernel
def weight_at(targets, row):
    return targets[2 * row]


@inline_kernel
def y_at(targets, row):
    return targets[2 * row + Y]


@inline_kernel
def write_target(targets, row, weight, y):
    targets[2 * row] = weight
    targets[2 * row + Y] = y


def score_of(left_weight, left_sum, weight, total):
    """Score of a cut as scikit-learn calculates it, from the sums on its left and of the node."""
    right_sum = total - left_sum
    return left_sum * left_sum / left_weight + right_sum * right_sum / (weight - left_weight)


mean_score = inline_kernel(score_of)


@inline_kernel
def left_sums_from_right(criterion, rows, targets, middle, end, sums):
    """Weight, sum and rest left of `middle`: the node's less rows[middle:end], last row first.

    Rows may be the low halves of entries (see `cart.fast_paths.regression.sorted_rows`).
    scikit-learn does so if these rows are fewer than those moved left since the cut before.
    (Reference: `RegressionCriterion.update` in `_criterion.pyx`.)
    """
    weight, total, rest = sums
    for i in range(end - 1, middle - 1, -1):
        row = np.uint32(rows[i])
        here, y = weight_at(targets, row), y_at(targets, row)
        weight -= here
        total -= here * y
        rest -= rest_of(criterion, here, y)
    return weight, total, rest


@inline_kernel
def slack_of(n, y_max):
    """How far rounding may move gains apart, for n rows with targets of size `y_max` at most.

    A sum of n terms is off by at most n roundings of the sum of their sizes, which is at most
    `y_max` times the weight; a score has a few such sums, times a mean.
    """
    return 64.0 * _UNIT * np.float64(n + 8) * y_max * y_max
