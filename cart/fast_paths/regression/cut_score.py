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

from cart.jit.decorators import inline_kernel

WEIGHT, Y = range(2)  # of every row, one behind the other in `targets`
_UNIT = 2.0**-53  # of double precision: half a unit in the last place


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
    """Score of a cut as scikit-learn calculates it, from what lies on its left and in all."""
    right_sum = total - left_sum
    return left_sum * left_sum / left_weight + right_sum * right_sum / (weight - left_weight)


mean_score = inline_kernel(score_of)


@inline_kernel
def left_sums_from_right(rows, targets, middle, end, weight, total):
    """Weight and sum left of `middle`: those of the node, less rows[middle:end] from the end.

    Rows may be the low halves of entries (see `cart.fast_paths.regression.sorted_rows`).
    scikit-learn does so where there are fewer of them than on the left since the cut before.
    (Reference: `RegressionCriterion.update` in `_criterion.pyx`.)
    """
    for i in range(end - 1, middle - 1, -1):
        row = np.uint32(rows[i])
        weight -= weight_at(targets, row)
        total -= weight_at(targets, row) * y_at(targets, row)
    return weight, total


@inline_kernel
def slack_of(n, y_max):
    """How far rounding may move gains apart, of n rows with targets of at most `y_max` in size.

    A sum of n terms is off by n roundings of the sum of their sizes, which are no more than `y_max`
    times the weight; a score has a few such sums, times a mean.
    """
    return 64.0 * _UNIT * np.float64(n + 8) * y_max * y_max
