"""The parts of the fast path of regression, each against a slow twin."""

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from cart.fast_paths.base import MISSING_LEFT, MISSING_RIGHT, NONE_MISSING
from cart.fast_paths.regression.best_cut import N_LANES, Lanes, SearchedRows, choose_mean_cut
from cart.fast_paths.regression.cut_criteria import SquaredErrorCuts
from cart.fast_paths.regression.cut_score import slack_of
from cart.fast_paths.regression.large_nodes.screening import (
    Screen,
    is_certain,
    screen_feature,
)
from cart.fast_paths.regression.ordered_search import search_listed
from cart.fast_paths.regression.small_nodes import node as small_node
from cart.fast_paths.regression.small_nodes.cut import (
    best_small_node_cut,
    sort_small_node,
)
from cart.fast_paths.regression.small_nodes.missing import (
    add_turned,
    column_of_words,
    leave_in_order,
    n_in_front,
    number_in_turn,
    order_missing,
)
from cart.fast_paths.regression.small_nodes.node import (
    MISSING_RANK,
    SMALL_NODE_MAX,
    enter_small_node,
    number_at,
    rank_at,
)
from cart.fast_paths.regression.small_nodes.ranked_rows import (
    SmallNode,
    rank_codes,
    write_code,
    write_word,
)
from cart.fast_paths.regression.sorted_rows import AllListed
from cart.fast_paths.regression.tree_growth import DrawnFeatures
from cart.jit.decorators import entry_kernel
from cart.splitting.splitter import Bounds
from cart.table.columns import Columns
from cart.table.encoding import encode
from cart.table.ranking import MISSING
from tests.examples import examples

seeds = st.integers(0, 2**32 - 1)
N = 80  # rows of a table
ANY = Bounds(-np.inf, np.inf)


# --------------------------------------------------------------------------------- mean cuts


@entry_kernel
def choose_mean(lanes, n_lanes, entries, targets, n, first, weight, total, score, table):
    rows = SearchedRows(
        SquaredErrorCuts(0), entries, targets, n, first, weight, total, 0.0, False, 0.0, ANY, 0.0,
        AllListed(0),
    )  # fmt: skip
    return choose_mean_cut(lanes, n_lanes, rows, score, table)


def best_mean_cut(values, weight, wy, first, total_weight, total):
    """scikit-learn's loop over cuts: sums go on from the cut before, or come from the right."""
    n = len(values)
    best, best_cut, behind, left_weight, left = -np.inf, -1, 0, 0.0, 0.0
    for p in range(first + 1, n - first):
        if values[p] <= values[p - 1] + np.float32(1e-7):
            continue
        if p - behind <= n - p:
            for i in range(behind, p):
                left_weight += weight[i]
                left += wy[i]
        else:
            left_weight, left = total_weight, total
            for i in range(n - 1, p - 1, -1):
                left_weight -= weight[i]
                left -= wy[i]
        behind = p
        right = total - left
        score = left * left / left_weight + right * right / (total_weight - left_weight)
        if score > best:
            best, best_cut = score, p - 1
    return best, best_cut


@examples(200)
@given(
    seed=seeds,
    n=st.one_of(st.integers(2, 60), st.integers(100, 300)),
    n_lanes=st.integers(1, N_LANES),
    n_levels=st.sampled_from([2, 3, 10, 100_000]),
    first=st.sampled_from([0, 0, 1, 5]),
    gap=st.sampled_from([1.0, 4e-8, 1e-10]),
    bar=st.sampled_from([-np.inf, 0.999, 1.0]),
)
def test_the_best_mean_cut_to_the_bit(seed, n, n_lanes, n_levels, first, gap, bar):
    rng = np.random.default_rng(seed)
    values = (rng.integers(0, n_levels, (n, n_lanes)) * gap).astype(np.float32)
    values[:, rng.integers(n_lanes)] = values[:, 0]  # the same cuts again
    for column in range(n_lanes):
        if rng.random() < 0.3:  # a cut far to the right, with all of these on its left
            values[: n - n // 3, column] = values[:, column].min()
    table = encode(Columns(values))
    weight, y = rng.integers(1, 4, n).astype(float), rng.normal(1e3, 1.0, n)
    totals = weight.sum(), sum((weight * y).tolist())
    bar *= totals[1] ** 2 / totals[0]  # that of a cut that explains nothing
    lanes, entries, best = Lanes.create(), np.empty((n_lanes, n), np.uint64), (bar, -1, -1)
    for lane, codes in enumerate(table.codes.astype(np.uint64)):
        rows = np.argsort(codes, kind="stable")
        entries[lane] = codes[rows] << np.uint64(32) | rows.astype(np.uint64)
        lanes.column[lane], lanes.first[lane] = lane, lane * n
        score, place = best_mean_cut(
            values[rows, lane], weight[rows], (weight * y)[rows], first, *totals
        )
        if score > best[0]:
            best = score, lane, place
    targets = np.column_stack((weight, y)).ravel()
    found = choose_mean(
        lanes, n_lanes, entries.ravel(), targets, n, first, *totals, bar, table
    )  # fmt: skip
    assert found[:2] == best[:2]
    assert found[1] == -1 or found[2] == best[2]


@entry_kernel
def search_one_listed(lanes, entries, targets, n, first, weight, total, unlisted, score, table):
    rows = SearchedRows(
        SquaredErrorCuts(0), entries, targets, n, first, weight, total, 0.0, False, 0.0, ANY, 0.0,
        AllListed(0),
    )  # fmt: skip
    return search_listed(lanes, rows, unlisted, score, table)


@examples(300)
@given(
    seed=seeds,
    n=st.one_of(st.integers(3, 40), st.integers(100, 300)),
    n_levels=st.sampled_from([2, 3, 10, 100_000]),
    first=st.sampled_from([0, 0, 1, 5]),
    gap=st.sampled_from([1.0, 4e-8]),
    bar=st.sampled_from([-np.inf, 0.999, 1.0]),
)
def test_the_best_cut_to_the_bit_where_most_rows_are_not_listed(seed, n, n_levels, first, gap, bar):
    """The value of most rows is the lowest, the highest or between others."""
    rng = np.random.default_rng(seed)
    values = (rng.integers(0, n_levels, n) * gap).astype(np.float32)
    values[rng.permutation(n)[: n - rng.integers(1, (n + 1) // 2)]] = rng.choice(values)
    assume(len(np.unique(values)) > 1)
    table = encode(Columns(values[:, None]))
    weight, y = rng.integers(1, 4, n).astype(float), rng.normal(1e3, 1.0, n)
    totals = weight.sum(), sum((weight * y).tolist())
    bar *= totals[1] ** 2 / totals[0]
    codes = table.codes[0].astype(np.uint64)
    rows, most = np.argsort(codes, kind="stable"), np.bincount(codes.astype(int)).argmax()
    listed = rows[codes[rows] != most]
    entries = np.empty(n, np.uint64)
    entries[: len(listed)] = codes[listed] << np.uint64(32) | listed.astype(np.uint64)
    entries[-1] = int(MISSING) << 32 | len(listed)
    lanes, targets = Lanes.create(), np.column_stack((weight, y)).ravel()
    score, left, right = search_one_listed(
        lanes, entries, targets, n, first, *totals, most, bar, table
    )
    expected, place = best_mean_cut(values[rows], weight[rows], (weight * y)[rows], first, *totals)
    if expected > bar:
        assert (score, left, right) == (expected, codes[rows[place]], codes[rows[place + 1]])
    else:
        assert (score, left) == (bar, -1)


def free_rows(entries, targets, n, weight, total, first=0):
    """Rows whose cuts have to leave more than `first` on each side, but need keep nothing else."""
    return SearchedRows(
        SquaredErrorCuts(), entries, targets, n, first, weight, total, 0.0, False, 0.0, ANY, 0.0,
        AllListed(),
    )  # fmt: skip


@entry_kernel
def screen_mean(screen, drawn, rows, y_max, table):
    slack = slack_of(rows.n, y_max)
    screen.gain[:] = 0.0
    screen_feature(screen, rows, drawn, 0, slack, table)
    return is_certain(screen, slack)


def drawn_alone(n_known, is_missing):
    """Feature 7, the only one that is drawn; all of its rows are listed."""
    drawn = DrawnFeatures.create(1)
    drawn.feature[0], drawn.unlisted[0], drawn.n_known[0] = 7, MISSING, n_known
    drawn.missing[0] = MISSING_RIGHT if is_missing else NONE_MISSING
    return drawn


@examples(300)
@given(
    seed=seeds,
    n=st.integers(16, 400),
    n_levels=st.sampled_from([2, 3, 10, 100_000]),
    gap=st.sampled_from([1.0, 4e-8]),
    offset=st.sampled_from([0.0, 1e3, 1e9]),
    share=st.sampled_from([0.0, 0.0, 0.2, 0.97]),
    first=st.sampled_from([0, 0, 6]),
)
def test_screening_is_certain_of_the_best_mean_cut_only(
    seed, n, n_levels, gap, offset, share, first
):
    """Certain, it is right; where no two cuts come near each other and the mean is not far from 0,
    it is certain. No cut has more gain than its block's bound. Missing values may go to both
    sides."""
    rng = np.random.default_rng(seed)
    values = (rng.integers(0, n_levels, n) * gap).astype(np.float32)
    values[1:][rng.random(n - 1) < share] = np.nan
    weight, y = rng.integers(1, 4, n).astype(float), rng.normal(offset, 1.0, n)
    table = encode(Columns(values[:, None])).wide()
    rows, n_known = np.argsort(table.codes[0], kind="stable"), n - np.isnan(values).sum()
    entries = table.codes[0, rows].astype(np.uint64) << np.uint64(32) | rows.astype(np.uint64)
    total_weight, total = weight.sum(), sum((weight * y).tolist())
    screened, mean = Screen.create(n), total / total_weight
    targets, y_max = np.column_stack((weight, y)).ravel(), np.abs(y).max()
    searched = free_rows(entries, targets, n, total_weight, total, first)
    certain = screen_mean(screened, drawn_alone(n_known, n_known < n), searched, y_max, table)
    weight, values, y = weight[rows], values[rows], y[rows]
    sides = [(MISSING_RIGHT if n_known < n else NONE_MISSING, min(n_known, n - 1), 0.0, 0.0)]
    if 1 < n_known < n:
        more = weight[n_known:].sum(), (weight * (y - mean))[n_known:].sum()
        sides.append((MISSING_LEFT, n_known - 1, *more))
    found = []
    for side, n_cuts, left, excess in sides:
        left = left + np.cumsum(weight)[:n_cuts]
        excess = excess + np.cumsum(weight * (y - mean))[:n_cuts]
        gain = excess**2 / (left * (total_weight - left))
        with np.errstate(invalid="ignore"):
            is_cut = ~(np.diff(values)[:n_cuts] <= np.float32(1e-7))
        n_left = np.arange(1, n_cuts + 1) + (n - n_known) * (side == MISSING_LEFT)
        is_cut &= (first < n_left) & (n_left < n - first)
        found += [(gain[i], side, i) for i in np.flatnonzero(is_cut)]
    bound = np.repeat(screened.bound[: n_known // 8], 8)[:n_cuts]  # of the last side
    rounding = 1e-13 * n * y_max**2
    assert (gain[: len(bound)] <= bound * (1 + 1e-6) + rounding).all()
    if certain:
        _, side, place = max(found)
        codes = table.codes[0, rows[place : place + 2]]
        np.testing.assert_array_equal(screened.best, [7, *codes, side])
        if n_known == n:
            of_loop = best_mean_cut(values, weight, weight * y, first, total_weight, total)
            assert of_loop[1] == place
    highest = sorted([0.0, 0.0, *(gain for gain, _, _ in found)])[::-1]
    if offset < 1e9 and highest[0] > highest[1] + 1e-5:
        assert certain


def test_two_cuts_of_one_gain_are_both_kept():
    """The runner-up, met after the best, makes the screen uncertain. All sums are exact."""
    n = 256
    y = np.repeat([0.0, 1.0, 0.0], [64, 128, 64])
    table = encode(Columns(np.arange(n, dtype=np.float32)[:, None]))
    entries = np.arange(n, dtype=np.uint64) << np.uint64(32) | np.arange(n, dtype=np.uint64)
    targets = np.column_stack((np.ones(n), y)).ravel()
    screened = Screen.create(n)
    drawn = drawn_alone(n, False)
    searched = free_rows(entries, targets, n, 256.0, 128.0)
    assert not screen_mean(screened, drawn, searched, 1.0, table)
    np.testing.assert_array_equal(screened.gain, 32.0**2 / (64.0 * 192.0))
    np.testing.assert_array_equal(screened.best, [7, 63, 64, 0])


# ------------------------------------------------------------------------------ small nodes


@entry_kernel
def order_rows(small, samples, start, n, n_all, targets, mean, codes, are_ranks):
    if not enter_small_node(small, samples, 0, n_all, targets, mean):
        return False
    for column in range(codes.shape[0]):
        for i in range(n_all):
            if are_ranks:
                write_word(small, i, column, codes[column, i], codes[column, i])
            else:
                write_code(small, i, column, codes[column, i])
    if not are_ranks:
        rank_codes(small, n_all)
    sort_small_node(small, samples, start, n)
    return True


@entry_kernel
def read_order(small, n, ranks, numbers):
    for column in range(ranks.shape[0]):
        for i in range(n):
            ranks[column, i] = rank_at(small, i, column)
            numbers[column, i] = number_at(small, i, column)


@examples(200)
@given(
    seed=seeds, n_all=st.integers(2, SMALL_NODE_MAX), n_columns=st.integers(1, 20), data=st.data()
)
def test_small_nodes_are_ordered_and_their_cuts_judged(seed, n_all, n_columns, data):
    """In every lane as NumPy would: rows by rank and number, gains, the highest, their place."""
    rng = np.random.default_rng(seed)
    start = data.draw(st.integers(0, n_all - 2))
    n = data.draw(st.integers(2, n_all - start))
    rows = rng.permutation(N)[:n_all].astype(np.uint32)
    targets = np.column_stack((rng.integers(1, 32, N), rng.normal(3.0, 5.0, N)))
    weight, y = targets[np.sort(rows)].T
    small, samples = SmallNode.create(N, n_columns, n_columns), rows.copy()
    codes = rng.integers(0, rng.choice([3, n_all, 2**31]), (n_columns, n_all))
    ranks = (codes[:, :, None] > codes[:, None]).sum(axis=2)
    mean = np.average(y, weights=weight)
    are_ranks = data.draw(st.booleans())  # as presorted rows have them
    given = ranks if are_ranks else codes
    assert order_rows(small, samples, start, n, n_all, targets.ravel(), mean, given, are_ranks)
    np.testing.assert_array_equal(np.sort(rows)[samples], rows)
    found = np.empty((2, n_columns, n), np.int64)
    read_order(small, n, *found)
    node = np.sort(samples[start : start + n]).astype(int)
    unit = small.unit[0]
    assert unit == pytest.approx(np.abs(weight * (y - mean)).max() / (2**13 - 1))
    for column in range(n_columns):
        mine = node[np.argsort(ranks[column, node], kind="stable")]
        np.testing.assert_array_equal(found[1, column], mine)
        np.testing.assert_array_equal(found[0, column], ranks[column, mine])
        W = weight[mine].sum()
        deviation = weight[mine] * (y[mine] - np.average(y[mine], weights=weight[mine]))
        left = weight[mine].cumsum()[:-1]
        root = np.abs(deviation.cumsum()[:-1]) / np.sqrt(left * (W - left)) / unit
        is_cut = np.diff(ranks[column, mine]) > 0
        block, lane = divmod(column, small_node.N_LANES)
        gain = small.gain.reshape(-1, SMALL_NODE_MAX + 1, small_node.N_LANES)[block, : n - 1, lane]
        np.testing.assert_array_equal(gain >= 0.0, is_cut)
        np.testing.assert_allclose(np.sqrt(gain[is_cut]), root[is_cut], rtol=2e-6, atol=0.75)
        highest = np.sort(np.append(gain, [-1.0, -1.0]))[::-1]
        assert (small.top[column], small.second[column]) == tuple(highest[:2])
        if is_cut.any():
            assert small.place[column] == gain.argmax()


@entry_kernel
def turn_and_leave(small, samples, node, drawn, n_drawn, shown):
    """Which columns are searched, their missing values in order, and the samples as they are left;
    before this, in `shown`, as they would be left by each column."""
    n_searched = add_turned(small, node.n, drawn, n_drawn)
    for k in range(n_searched):
        order_missing(small, samples, node, drawn, k)
        for i in range(node.n):
            column = drawn.column[k]
            n_before = n_in_front(small, column)
            along = column_of_words(small, column)
            shown[k, i] = number_in_turn(small, i, along, n_before, node.n)
    leave_in_order(small, samples, node, drawn, n_searched)
    return n_searched


class SmallPart(NamedTuple):
    """What is asked of a node."""

    start: int
    n: int
    weight: float
    total: float = 0.0


def exchange_missing(samples, is_missing):
    """The missing ones of samples as scikit-learn's exchange leaves them, at the end."""
    samples, i, end = list(samples), 0, len(samples) - 1
    while i <= end:
        if is_missing[samples[end]]:
            end -= 1
            continue
        if is_missing[samples[i]]:
            samples[i], samples[end] = samples[end], samples[i]
            end -= 1
        i += 1
    return samples[end + 1 :]


@examples(200)
@given(
    seed=seeds, n=st.integers(2, MISSING_RANK), n_columns=st.integers(1, 12),
    share=st.floats(0.0, 1.0), is_lazy=st.booleans(),
)  # fmt: skip
def test_missing_values_of_a_small_node_go_to_both_sides(seed, n, n_columns, share, is_lazy):
    """A column is searched once more with missing values in front; samples are left in that order,
    as scikit-learn's exchange does, whether or not anyone has asked for the columns before."""
    rng = np.random.default_rng(seed)
    rows = rng.permutation(N)[:n].astype(np.uint32)
    targets = np.column_stack((rng.integers(1, 32, N), rng.normal(3.0, 5.0, N)))
    weight, y = targets[np.sort(rows)].T
    is_missing = rng.random((n_columns, n)) < share * rng.random((n_columns, 1))
    is_missing[:, rng.integers(n)] = False
    ranks = rng.integers(0, n, is_missing.shape)
    ranks = np.array([np.unique(of_all, return_inverse=True)[1] for of_all in ranks])
    ranks[is_missing] = MISSING_RANK
    small, samples = SmallNode.create(N, n_columns, n_columns, has_missing=True), rows.copy()
    mean = np.average(y, weights=weight)
    assert order_rows(small, samples, 0, n, n, targets.ravel(), mean, ranks, True)
    node, order = SmallPart(0, n, weight.sum()), samples.astype(int)
    columns = np.flatnonzero((ranks != ranks[:, :1]).any(axis=1))  # others are not searched
    assume(len(columns) > 0)
    drawn, shown = DrawnFeatures.create(n_columns), np.empty((2 * n_columns, n), np.int64)
    drawn.feature[: len(columns)] = drawn.column[: len(columns)] = columns
    asked = turn_and_leave if not is_lazy else leave_only
    n_searched, k = asked(small, samples, node, drawn, len(columns), shown), 0
    for column in columns:
        n_missing = is_missing[column].sum()
        known = np.argsort(ranks[column], kind="stable")[: n - n_missing]
        missing = exchange_missing(order, is_missing[column])
        order = np.append(missing, known).astype(int)
        sides = [MISSING_RIGHT] if n_missing else [NONE_MISSING]
        sides += [MISSING_LEFT] if n_missing and len(known) > 1 else []
        for side in sides:
            assert (drawn.feature[k], drawn.missing[k]) == (column, side)
            assert drawn.column[k] == column + (side == MISSING_LEFT) * small.turned
            if not is_lazy:
                as_left = order if side == MISSING_LEFT else np.append(known, missing)
                np.testing.assert_array_equal(shown[k], as_left)
            k += 1
        if len(sides) == 2:
            assert_turned_gains(small, column, known, missing, ranks[column], weight, y - mean)
    assert k == n_searched
    np.testing.assert_array_equal(samples, order)


@entry_kernel
def leave_only(small, samples, node, drawn, n_drawn, shown):
    """As `turn_and_leave`, if nobody asks for the order of a column but the last."""
    n_searched = add_turned(small, node.n, drawn, n_drawn)
    leave_in_order(small, samples, node, drawn, n_searched)
    return n_searched


def assert_turned_gains(small, column, known, missing, ranks, weight, deviation):
    """The gains of cuts behind known values, if the missing ones go left; no cut parts these."""
    order, n_missing = np.append(missing, known).astype(int), len(missing)
    is_cut = np.diff(ranks[known]) > 0
    left, total = weight[order].cumsum()[n_missing:-1], (weight * deviation)[order].cumsum()
    root = np.abs(total[n_missing:-1]) / np.sqrt(left * (weight.sum() - left))
    of_block = small.gain.reshape(-1, SMALL_NODE_MAX + 1, small_node.N_LANES)
    block, lane = divmod(column + small.turned, small_node.N_LANES)
    gain = of_block[block, : len(known) - 1, lane]
    np.testing.assert_array_equal(gain >= 0.0, is_cut)
    of_cuts = np.sqrt(gain[is_cut]) * small.unit[0]
    np.testing.assert_allclose(of_cuts, root[is_cut], rtol=2e-6, atol=0.75 * small.unit[0])
    assert (of_block[block, len(known) - 1 : len(ranks) - 1, lane] < 0.0).all()
    highest, turned = np.sort(np.append(gain, [-1.0, -1.0]))[::-1], column + small.turned
    assert (small.top[turned], small.second[turned]) == tuple(highest[:2])
    assert not is_cut.any() or small.place[turned] == gain.argmax()


@entry_kernel
def choose_small_node_cut(small, samples, node, drawn, n_drawn, first, farthest):
    slack = slack_of(node.n, farthest)
    if small.turned > 0:
        n_drawn = add_turned(small, node.n, drawn, n_drawn)
    return best_small_node_cut(small, samples, node, drawn, n_drawn, first, slack)


def sides_of(values, order):
    """For a column: rows in the order of a search and their values, once with missing ones on the
    right and once on the left; and the order in which scikit-learn leaves the rows."""
    known = np.flatnonzero(~np.isnan(values))
    known = known[np.argsort(values[known], kind="stable")]
    missing = np.array(exchange_missing(order, np.isnan(values)), int)
    turned = np.append(missing, known)
    sides = [(np.append(known, missing), np.append(values[known], np.full(len(missing), np.inf)))]
    if len(missing) and len(known) > 1:
        lowest = np.full(len(missing), values[known[0]])
        sides.append((turned, np.append(lowest, values[known])))
    return sides, turned


@examples(300)
@given(
    seed=seeds,
    n=st.integers(3, SMALL_NODE_MAX),
    n_columns=st.integers(1, 20),
    n_levels=st.sampled_from([2, 3, 100]),
    first=st.sampled_from([0, 0, 1, 2]),
    spread=st.sampled_from([1.0, 1e-3, 1e-7]),
    share=st.sampled_from([0.0, 0.1, 0.6]),
)
def test_the_best_cut_of_a_small_node_to_the_bit(
    seed, n, n_columns, n_levels, first, spread, share
):
    """Also where targets are so near each other that rounding decides, and with missing values."""
    rng = np.random.default_rng(seed)
    n = n if share == 0.0 else min(n, MISSING_RANK)
    values = np.ceil(rng.random((n, n_columns)) ** 3 * n_levels)
    values[rng.random(values.shape) < share] = np.nan
    weight, y = rng.integers(1, 4, n).astype(float), rng.normal(5.0, spread, n)
    if rng.random() < 0.3:
        y = np.where(rng.random(n) < 0.2, 5.0, 5.0 + spread)
    targets = np.column_stack((weight, y)).ravel()
    ranks = np.array([np.unique(column, return_inverse=True)[1] for column in values.T])
    ranks[np.isnan(values.T)] = MISSING_RANK
    totals, samples = (weight.sum(), sum((weight * y).tolist())), np.arange(n, dtype=np.uint32)
    small = SmallNode.create(n, n_columns, n_columns, has_missing=share > 0.0)
    columns = rng.permutation(n_columns)
    columns = columns[(ranks[columns] != ranks[columns, :1]).any(axis=1)]  # others: not searched
    assume(len(columns) > 0 and (y != y[0]).any() and n >= 2 * (first + 1))
    mean = totals[1] / totals[0]
    assert order_rows(small, samples, 0, n, n, targets, mean, ranks, share > 0.0)
    node, drawn = SmallPart(0, n, *totals), DrawnFeatures.create(n_columns)
    drawn.column[: len(columns)] = columns
    found = choose_small_node_cut(small, samples, node, drawn, len(columns), first, np.abs(y).max())
    best, k, order = (-np.inf, -1, -1), 0, np.arange(n)
    for column in columns:
        sides, order = sides_of(values[:, column], order)
        for side, (rows, ascending) in enumerate(sides):
            score, place = best_mean_cut(
                ascending, weight[rows], (weight * y)[rows], first, *totals
            )
            if score > best[0]:
                best = score, k, place - side * np.isnan(values[:, column]).sum()
            k += 1
    assert found == best[1:]


def test_a_row_that_goes_left_with_missing_ones_is_not_alone():
    """Its score alone was known already, from a cut that is hardly worse."""
    n, values = 10, np.ones((2, 10))
    values[:, 0], values[1, 1] = 0.0, np.nan
    more = np.sqrt(2.0 * (n - 2) / (n - 1) * (1.0 + 1e-9)) - 1.0
    y = np.array([1.0, more, *np.full(n - 2, -(1.0 + more) / (n - 2))])
    ranks = np.where(np.isnan(values), MISSING_RANK, values).astype(int)
    small, samples = SmallNode.create(n, 2, 2, has_missing=True), np.arange(n, dtype=np.uint32)
    targets, total = np.column_stack((np.ones(n), y)).ravel(), sum(y.tolist())
    assert order_rows(small, samples, 0, n, n, targets, total / n, ranks, True)
    node, drawn = SmallPart(0, n, float(n), total), DrawnFeatures.create(2)
    drawn.column[:2] = 0, 1
    k, place = choose_small_node_cut(small, samples, node, drawn, 2, 0, 1.0)
    assert (drawn.column[k], drawn.missing[k], place) == (1 + small.turned, MISSING_LEFT, 0)


def test_weights_and_targets_that_fit_into_no_word_of_a_small_node():
    samples, targets = np.arange(4, dtype=np.uint32), np.ones(8)
    ranks = np.zeros((1, 4), np.int64)
    for weight in (0.5, 32.0):
        targets[4] = weight
        small = SmallNode.create(4, 1, 1)
        assert not order_rows(small, samples, 0, 4, 4, targets, 0.0, ranks, False)
        np.testing.assert_array_equal(samples, range(4))
    for y in (0.0, 1e-120, 1e120):  # deviations from the mean that cannot be squared
        targets = np.column_stack((np.ones(4), [-y, y, -y, y])).ravel()
        assert not order_rows(small, samples, 0, 4, 4, targets, 0.0, ranks, False)
