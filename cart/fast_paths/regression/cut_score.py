"""What a cut scores by squared error, to the bit as in scikit-learn."""

from cart.jit.decorators import inline_kernel

WEIGHT, Y = range(2)  # of every row, one behind the other in `targets`


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
    """Quality of a cut as scikit-learn calculates it, from what lies on its left and in all."""
    right_sum = total - left_sum
    return left_sum * left_sum / left_weight + right_sum * right_sum / (weight - left_weight)


mean_score = inline_kernel(score_of)
