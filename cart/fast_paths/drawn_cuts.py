"""Random cuts: one threshold per feature, drawn between the lowest and the highest value of a node.

In nodes of few rows, thresholds are drawn one by one, but all else is vectorized. Ranges and sides
of many columns are found at once, a column in each lane of a vector:

    rows across  0 [ 4 1 7 . ]     codes of a row side by side (see `cart.fast_paths.rows_across`)
                 1 [ 2 5 7 . ]
    low            [ 2 1 7 . ]     lowest and highest value: the last column is constant
    high           [ 4 5 7 . ]
    threshold      [ 3 4 . . ]     drawn feature after feature
    sides          [ 1 0 . . ]     a bit for each row: does it go left?

Tables are float tables (`cart.table.float_table`): codes across are ordinals of the values.
"""

from typing import NamedTuple

import numpy as np

from cart.fast_paths.base import (
    MISSING_LEFT,
    MISSING_RIGHT,
    NO_CUT,
    NONE_MISSING,
    Cut,
    has_missing,
    range_of,
)
from cart.fast_paths.rows_across import HALF, SIGN, WIDTH, load_across, n_blocks
from cart.jit.decorators import inline_kernel
from cart.jit.simd import on_lanes
from cart.primitives.float_order import TOP
from cart.splitting.category_subsets import draw_places
from cart.splitting.feature_draw import random_between, random_side
from cart.table.distinct_values import FEATURE_THRESHOLD
from cart.table.node_samples import known_range
from cart.table.ranking import MISSING
from cart.table.table import code_up_to, same_value, value_of

_CONSTANT, _VARIES, _HAS_MISSING = 0, 1, 2
_MISSING = int(TOP)


class DrawnCuts(NamedTuple):
    """The ranges of all columns, and the cuts drawn for some features; see the module."""

    low: np.ndarray  # (n_columns padded to whole vectors,) float64: the lowest known value
    high: np.ndarray  # same shape, float64: the highest known value
    kind: np.ndarray  # same shape, int32: _CONSTANT, _VARIES or _HAS_MISSING
    threshold: np.ndarray  # same shape, float64: the thresholds drawn
    last: np.ndarray  # same shape, int32: a row goes left if its code + `step` <= `last`
    step: np.ndarray  # same shape, int32: 1 if missing values go left (MISSING + 1 is the lowest)
    sides: np.ndarray  # same shape, int64: bit i is set if row i goes left, see `find_sides`
    marks: np.ndarray  # (64,) int64: 1 << i
    feature: np.ndarray  # (n_features,) int64: the features drawn, in the order of the draw
    n_drawn: np.ndarray  # (1,) int64: how many these are
    n_whole: int  # how many blocks of rows across are more than half filled
    has_missing: bool  # whether the table has missing values

    @classmethod
    def create(cls, table):
        n_columns = len(table.codes)
        n, n_whole = n_blocks(n_columns) * WIDTH, (n_columns + HALF - 1) // WIDTH
        return cls(
            np.zeros(n), np.zeros(n), np.zeros(n, np.int32), np.zeros(n), np.zeros(n, np.int32),
            np.zeros(n, np.int32), np.zeros(n, np.int64), np.int64(1) << np.arange(64),
            np.empty(len(table.columns), np.int64), np.zeros(1, np.int64), n_whole,
            has_missing(table),
        )  # fmt: skip


def _values_of(lanes, ordinals):
    """The float32 values of ordinals; see `cart.primitives.float_order.bits_of`."""
    return lanes.with_bits(lanes.where(ordinals > -1, ordinals, ordinals * -1 | ~_MISSING))


def _find_ranges_on(lanes, cuts, across, samples, shift, n, block):
    """Write `low`, `high` and `kind` of the columns of a block."""
    place = lanes.number(block) * (WIDTH // lanes.n)

    def code_of(k):
        row = lanes.number(lanes.same(samples, k)) >> lanes.number(shift)
        return load_across(lanes, across, row)

    def widen(k, lowest, highest):
        code = code_of(k)
        return (
            lanes.where(lowest > code, code, lowest),
            lanes.where(code > highest, code, highest),
        )

    def widen_known(k, lowest, above, highest):
        following = code_of(k) + 1  # overflows for a missing value: the lowest of all
        above = lanes.where(following > above, following, above)
        lowest, highest = widen(k, lowest, highest)
        return lowest, above, highest

    def ranges():
        lowest, highest = lanes.repeat(lanes.number(n), widen, first, first)
        return lowest, highest, highest

    def known_ranges():
        lowest, above, highest = lanes.repeat(lanes.number(n), widen_known, first, first + 1, first)
        return lowest, above - 1, highest

    first = code_of(0)
    lowest, known, highest = lanes.choose(lanes.number(cuts.has_missing), known_ranges, ranges)
    low_value, high_value = _values_of(lanes, lowest), _values_of(lanes, known)
    differ = high_value > low_value + FEATURE_THRESHOLD
    found = lanes.where(differ, _VARIES, lowest & _CONSTANT)
    found = lanes.where(highest > _MISSING - 1, _HAS_MISSING, found)
    found = lanes.where(lowest > _MISSING - 1, _CONSTANT, found)  # all are missing
    lanes.store(cuts.low, lanes.double(low_value), place)
    lanes.store(cuts.high, lanes.double(high_value), place)
    lanes.store(cuts.kind, found, place)


def _find_sides_on(lanes, cuts, across, samples, n, block):
    """Write `sides` of the columns of a block."""
    place = lanes.number(block) * (WIDTH // lanes.n)
    most, added = lanes.load(cuts.last, place), lanes.load(cuts.step, place)

    def look(k, found):
        row = lanes.number(lanes.same(samples, k))
        goes_left = load_across(lanes, across, row) + added <= most
        return (lanes.where(goes_left, found | lanes.same(cuts.marks, row), found),)

    nobody = lanes.load(cuts.sides, place) & 0
    lanes.store(cuts.sides, lanes.repeat(lanes.number(n), look, nobody)[0], place)


# If the last block is at most half filled, half as many lanes do: few CPUs have vectors of WIDTH.
_find_ranges, _find_sides = map(on_lanes(WIDTH), (_find_ranges_on, _find_sides_on))
_find_ranges_of_half, _find_sides_of_half = map(on_lanes(HALF), (_find_ranges_on, _find_sides_on))


@inline_kernel
def begin_cuts(cuts, across, samples, shift, n):
    """Find the ranges of all columns over n uint32 samples, whose rows are samples >> shift."""
    cuts.n_drawn[0] = 0
    for block in range(cuts.n_whole):
        _find_ranges(cuts, across[block], samples, shift, n, block)
    for block in range(cuts.n_whole, across.shape[0]):
        _find_ranges_of_half(cuts, across[block], samples, shift, n, block)


@inline_kernel
def draw_cut(cuts, table, draw, feature):
    """Draw a cut of a feature; return False if it is constant in the node."""
    column = table.columns[feature]
    kind, low, high = cuts.kind[column], cuts.low[column], cuts.high[column]
    if kind == _CONSTANT:
        return False
    threshold = random_between(draw, feature, low, high)
    step = np.int32(kind == _HAS_MISSING and random_side(draw, feature, 0))
    if not threshold < high:  # rounded up to it, or high - low is infinite
        threshold = low
    left_code = np.uint32(code_up_to(table, column, MISSING, MISSING, threshold))
    cuts.threshold[column], cuts.step[column] = threshold, step
    cuts.last[column] = np.int32(left_code ^ SIGN) + step
    cuts.feature[cuts.n_drawn[0]] = feature
    cuts.n_drawn[0] += 1
    return True


@inline_kernel
def find_sides(cuts, across, samples, n):
    """Find which of n rows, numbered below 64, go left at each cut, and write it to `sides`."""
    for block in range(cuts.n_whole):
        _find_sides(cuts, across[block], samples, n, block)
    for block in range(cuts.n_whole, across.shape[0]):
        _find_sides_of_half(cuts, across[block], samples, n, block)


@inline_kernel
def drawn_cut(cuts, feature, column, right_code, score):
    """The Cut that was drawn for a feature."""
    step, missing = cuts.step[column], NONE_MISSING
    if cuts.kind[column] == _HAS_MISSING:
        missing = MISSING_LEFT if step else MISSING_RIGHT
    left_code = np.int64(np.uint32(cuts.last[column] - step) ^ SIGN)
    return Cut(feature, left_code, right_code, score, missing, cuts.threshold[column])


@inline_kernel
def draw_among(table, draw, feature, codes):
    """Draw a cut of a feature among the codes of a node; categories are replaced by places.

    Returns the Cut without its score, NO_CUT if the feature is constant, and how many categories
    the node has.
    """
    column = table.columns[feature]
    n, n_missing = codes.shape[0], np.int64(0)
    lowest, highest = range_of(codes, n)
    if highest == MISSING:  # the highest code of all
        lowest, highest, n_missing = known_range(codes, n)
    n_present = draw_places(table, column, codes, draw, feature)
    if n_present > 0:
        lowest, highest = np.uint32(0), np.uint32(n_present > 1)
    span, has_missing = (lowest, highest), n_missing > 0
    return draw_between(table, draw, feature, span, has_missing, n_present > 0), n_present


@inline_kernel
def draw_between(table, draw, feature, span, has_missing, is_subset):
    """Draw a cut between the lowest and the highest code of a node, or of two categories' places.

    Returns the Cut without its score, NO_CUT if the feature is constant.
    """
    column, cut = table.columns[feature], NO_CUT
    lowest, highest = span
    varies = has_missing or not same_value(table, column, lowest, highest)
    if lowest != MISSING and varies:
        low, high = value_of(table, column, lowest), value_of(table, column, highest)
        threshold = low if is_subset else random_between(draw, feature, low, high)
        goes = NONE_MISSING
        if has_missing:
            goes = MISSING_LEFT if random_side(draw, feature, 0) else MISSING_RIGHT
        if not threshold < high:  # rounded up to `high`, or high - low is infinite
            threshold = low
        left_code = np.int64(code_up_to(table, column, lowest, highest, threshold))
        cut = Cut(feature, left_code, 0, -np.inf, goes, threshold)
    return cut
