"""Score of a cut by squared error, to the bit as in scikit-learn, and how far rounding may move it.

Weight and target of a row are a pair, so that one line of the cache has both:

    targets = [ w0 y0 | w1 y1 | w2 y2 | ... ]

A cut has weight w and sum s of weighted targets on its left, of W and S in the node:

    [ w, s          | W - w, S - s ]     score = s**2 / w + (S - s)**2 / (W - w)
      rows on the left                   gain  = (s - w S / W)**2 / (w (W - w))

The score is S**2 / W + W gain, but only the score is rounded as scikit-learn's. Where gains differ
by more than `slack_of`, scores are in the same order, whatever is rounded; only cuts within it of
the best gain need be scored.
"""

import numpy as np

from cart.jit.decorators import dispatch, inline_kernel

WEIGHT, Y = range(2)  # of every row, one behind the other in `targets`
_UNIT = 2.0**-53  # of double precision: half a unit in the last place


# ---------------------------------------------------------------------------- the protocol


@dispatch
def take_row(criterion, targets, row, weight, y):
    """Write what is kept of a row of the tree, of its weight and its target in `y`."""


@dispatch
def copy_row(criterion, targets, row, copied, i):
    """Copy what is kept of a row; it is the i-th there."""


@dispatch
def sum_node(criterion, samples, targets, start, end, sums):
    """Write the sums of samples[start:end] to `sums`."""


@dispatch
def sum_children(criterion, samples, targets, node, middle, sums):
    """Write the sums of either side of a node that is divided: of the left child to the row of
    `sums` behind the node's, of the right one to the node's. Return its Halves."""


@dispatch
def rest_of(criterion, weight, y):
    """What a row adds to the third sum of a node, REST."""


@dispatch
def root_impurity(criterion, samples, targets, n, sums):
    """Impurity of a tree's samples, from their sums."""


@dispatch
def halves_of(criterion, samples, targets, node, middle, left):
    """The Halves of a node that is divided, from the sums of its left child; `left` has the third
    twice: summed up, and taken as the others are."""


@dispatch
def write_value(criterion, value, sums):
    """Write what a node with these sums predicts, where no bounds are."""


@dispatch
def search_lanes(criterion, lanes, width, rows, table):
    """Find the best cut of every lane of so many (see `cart.fast_paths.regression.best_cut`)."""


@dispatch
def sum_lane_from_right(criterion, lanes, k, i, rows):
    """Have the sums of lane k, behind its i-th entry, from the right."""


@dispatch
def score_left(criterion, left, node):
    """The score of a cut, as scikit-learn calculates it, from the sums (weight, total, rest) on its
    left and those of the node."""


@dispatch
def score_divided(criterion, samples, targets, n_left, sums):
    """Weight and sum on the left of a cut at which samples are divided, and its score; of a node
    with these sums."""


@dispatch
def is_free_of_order(criterion):
    """Are a node's sums the same in any order of two rows?"""


@dispatch
def settled_score(criterion, lanes, k, rows):
    """The score of the cut in lane k."""


@dispatch
def is_by_gain(criterion):
    """Has the cut with the highest gain the highest score, but for rounding?"""


@dispatch
def begin_search(criterion, samples, targets, sums, node):
    """Take up a node that is to be searched; return what scores of its cuts depend on, beside
    weight and sum."""


@dispatch
def grow_if_small(criterion, growth, table, scratch, node, height, n_nodes, limits):
    """Grow the subtree of a small node in that height of the stack, and return how many nodes the
    tree has then; -1 if that cannot be done."""


# ------------------------------------------------------------------------------------ sums


@inline_kernel
def weight_at(targets, row):
    return targets[2 * row]


@inline_kernel
def y_at(targets, row):
    return targets[2 * row + Y]


def take_weight_and_y(self, targets, row, weight, y):
    write_target(targets, row, weight, y[row])


def in_any_order(self):
    return True  # of two numbers


def copy_weight_and_y(self, targets, row, copied, i):
    write_target(copied, i, weight_at(targets, row), y_at(targets, row))


@inline_kernel
def write_target(targets, row, weight, y):
    targets[2 * row] = weight
    targets[2 * row + Y] = y


def score_of(left_weight, left_sum, weight, total):
    """Score of a cut as scikit-learn calculates it, from what lies on its left and in all."""
    right_sum = total - left_sum
    return left_sum * left_sum / left_weight + right_sum * right_sum / (weight - left_weight)


mean_score = inline_kernel(score_of)


@inline_kernel
def left_sums_from_right(criterion, rows, targets, middle, end, sums):
    """Weight, sum and rest left of `middle`: those of the node less rows[middle:end] from the end.

    Rows may be the low halves of entries (see `cart.fast_paths.regression.sorted_rows`).
    scikit-learn does so where there are fewer of them than on the left since the cut before.
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
    """How far rounding may move gains apart, of n rows with targets of at most `y_max` in size.

    A sum of n terms is off by n roundings of the sum of their sizes, which are no more than `y_max`
    times the weight; a score has a few such sums, times a mean.
    """
    return 64.0 * _UNIT * np.float64(n + 8) * y_max * y_max


def settled_score_of_one(self, lanes, k, rows):
    left = lanes.left_weight[k], lanes.left_sum[k], lanes.left_rest[k]
    return score_left(self, left, (rows.weight, rows.total, rows.rest))


def sum_lane_of_one(self, lanes, k, i, rows):
    mine = rows.entries[lanes.first[k] : lanes.first[k] + rows.n]
    lanes.left_weight[k], lanes.left_sum[k], lanes.left_rest[k] = left_sums_from_right(
        self, mine, rows.targets, i + 1, rows.n, (rows.weight, rows.total, rows.rest)
    )
