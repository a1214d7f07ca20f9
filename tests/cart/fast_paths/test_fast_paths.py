"""The fast paths of growing, each part against a slow twin, and their trees against the general
path's."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.tree import DecisionTreeClassifier as Peer

from cart import DecisionTreeClassifier, DecisionTreeRegressor
from cart.estimators.grower import Grower
from cart.fast_paths.base import MISSING_LEFT, MISSING_RIGHT, Cut
from cart.fast_paths.classification import path as class_counts_path
from cart.fast_paths.classification.best_cut import Monotony, choose_cut
from cart.fast_paths.classification.cumulative_counts import (
    ClassNode,
    PrefixCounts,
    add_up,
    add_up_counts,
    count_codes,
    count_keys,
)
from cart.fast_paths.classification.impurities import EntropyCuts, GiniCuts
from cart.fast_paths.classification.packed_rows import (
    ColumnCodes,
    Layout,
    gather_keys,
    pack_rows,
    partition_packed_rows,
)
from cart.fast_paths.classification.path import ClassCountsPath
from cart.fast_paths.classification.random_cut import RandomClassCountsPath
from cart.fast_paths.classification.screening import add_up_kept, screen
from cart.fast_paths.regression.sorted_path import SortedPath
from cart.growth.plan import make_plan
from cart.jit.decorators import entry_kernel
from cart.jit.simd import PlainLanes, on_lanes
from cart.primitives.radix_sort import N_DIGITS, ROOM, sort_short_keys
from cart.primitives.sorting_networks import NETWORK_MAX, sort_by_network
from cart.splitting import criteria
from cart.splitting.splitter import Bounds
from cart.table.columns import Columns
from cart.table.encoding import encode
from cart.table.float_table import FloatTable
from cart.table.ranking import MISSING
from tests.agreement.same import assert_same_nodes, assert_same_tree, paths
from tests.examples import examples

seeds = st.integers(0, 2**32 - 1)
FREE = Monotony(0, Bounds(-np.inf, np.inf))


# ---------------------------------------------------------------------------------- sorting


@entry_kernel
def sort_network(keys, n):
    sort_by_network(keys, n)


@entry_kernel
def sort_any(keys, n, shift, lowest, highest, spare, counts):
    return sort_short_keys(keys, n, shift, lowest, highest, spare, counts)


@pytest.mark.parametrize("n", [*range(1, 140), 255, 256, 257, NETWORK_MAX - 1, NETWORK_MAX])
def test_networks_sort(n):
    rng = np.random.default_rng(n)
    keys = np.zeros(NETWORK_MAX, np.uint32)
    for top in (2, 2**32):
        keys[:n] = rng.integers(0, top, n)
        expected = np.sort(keys[:n])
        sort_network(keys, n)
        np.testing.assert_array_equal(keys[:n], expected)


@pytest.mark.parametrize("n", [3, NETWORK_MAX, NETWORK_MAX + 1, 5999, 6000, 9000])
@pytest.mark.parametrize("top", [1, 700, 2**13, 2**20, 2**26])
def test_short_keys_are_sorted(n, top):
    rng = np.random.default_rng(n)
    layout = Layout.of(2**26, 2, 15)
    codes = (rng.integers(0, top, n) + 17).astype(np.uint32)
    keys = np.empty(n + ROOM, np.uint32)
    keys[:n] = codes << layout.low_bits | rng.integers(0, 32, n).astype(np.uint32)
    given_keys, spare = keys[:n].copy(), np.empty_like(keys)
    counts = np.empty(N_DIGITS, np.int32)
    where = sort_any(keys, n, layout.low_bits, codes.min(), codes.max(), spare, counts)
    found = (spare if where else keys)[:n]
    np.testing.assert_array_equal(found >> layout.low_bits, np.sort(codes))
    np.testing.assert_array_equal(np.sort(found), np.sort(given_keys))


# ------------------------------------------------------------------------------------ words


@entry_kernel
def take_words(weight, classes, layout, words, counts):
    return pack_rows(weight, classes, layout, words, counts)


@entry_kernel
def divide_any(codes, left_code, missing, words, start, n, layout, spare, counts):
    cut = Cut(0, left_code, 0, 0.0, missing, 0.0)
    return partition_packed_rows(ColumnCodes(codes), cut, words, start, n, layout, spare, counts)


@pytest.mark.parametrize("missing", [MISSING_RIGHT, MISSING_LEFT])
@pytest.mark.parametrize("n_classes", [2, 5])
def test_words_keep_rows_weights_and_classes(n_classes, missing):
    rng = np.random.default_rng(0)
    n = 300
    weight, classes = rng.integers(0, 4, n).astype(float), rng.integers(0, n_classes, n)
    layout = Layout.of(n, n_classes, weight.max())
    words, counts = np.empty(n, np.uint32), np.empty(n_classes, np.int64)
    n_words = take_words(weight, classes.astype(float), layout, words, counts)
    rows = words[:n_words] >> layout.low_bits
    np.testing.assert_array_equal(rows, np.flatnonzero(weight))
    np.testing.assert_array_equal(words[:n_words] & layout.class_mask, classes[rows])
    np.testing.assert_array_equal(
        (words[:n_words] & layout.low_mask) >> layout.class_bits, weight[rows]
    )
    np.testing.assert_array_equal(counts, np.bincount(classes, weight, n_classes))

    codes, start, end = rng.integers(0, 9, n).astype(np.uint32), 20, n_words - 5
    codes[codes == 8] = MISSING
    spare, before = np.empty(n, np.uint32), words.copy()
    n_left = divide_any(codes, 4, missing, words, start, end - start, layout, spare, counts)
    mine = rows[start:end]
    is_left = (codes[mine] <= 4) | ((codes[mine] == MISSING) & (missing == MISSING_LEFT))
    expected = np.concatenate((mine[is_left], mine[~is_left]))
    np.testing.assert_array_equal(words[start:end] >> layout.low_bits, expected)
    np.testing.assert_array_equal(
        np.delete(words, range(start, end)), np.delete(before, range(start, end))
    )
    left = mine[is_left]
    assert n_left == len(left)
    np.testing.assert_array_equal(counts, np.bincount(classes[left], weight[left], n_classes))


# --------------------------------------------------------------------------------- class cuts


@entry_kernel
def count_both_ways(running, codes, words, start, n, n_codes, n_classes, layout, keys, counted):
    """What is counted of words, and of their keys; return the lowest and the highest code."""
    both = count_codes(running, codes, words, start, n, n_codes, n_classes, layout)
    width = 1 if n_classes == 2 else n_classes
    for cell in range((n_codes + 1) * width):
        counted[0, cell] = running.histogram[cell]
    lowest, highest = gather_keys(codes, words, start, n, layout, np.uint32(n_codes), keys)
    count_keys(running, keys, n, lowest, highest, n_classes, layout)
    for cell in range((n_codes + 1) * width):
        counted[1, cell] = 0
    origin = running.origin[0]
    for cell in range((np.int64(highest) + 1 - origin) * width):
        counted[1, origin * width + cell] = running.histogram[cell]
    return both, (lowest, highest)


@examples(50)
@given(seed=seeds, n=st.integers(1, 300), n_classes=st.sampled_from([2, 3, 5]))
def test_codes_are_counted_with_and_without_keys(seed, n, n_classes):
    rng = np.random.default_rng(seed)
    n_codes = rng.integers(1, 40)
    weight, classes = rng.integers(1, 4, n).astype(float), rng.integers(0, n_classes, n)
    layout, words = Layout.of(n, n_classes, 3), np.empty(n, np.uint32)
    take_words(weight, classes.astype(float), layout, words, np.empty(n_classes, np.int64))
    low, high = np.sort(rng.integers(0, n_codes, 2))
    codes = rng.integers(low, high + 1, n).astype(np.uint32)
    codes[rng.random(n) < rng.choice([0.0, 0.3])] = MISSING
    start = rng.integers(0, n)
    counted = np.zeros((2, (n_codes + 1) * n_classes), np.int64)
    found = count_both_ways(
        PrefixCounts.create(600, n_classes), codes, words, start, n - start, n_codes, n_classes,
        layout, np.empty(n, np.uint32), counted,
    )  # fmt: skip
    mine, codes = slice(start, n), np.minimum(codes, n_codes)
    expected = np.zeros((n_codes + 1, n_classes), np.int64)
    np.add.at(expected, (codes[mine], classes[mine]), weight[mine].astype(np.int64))
    if n_classes == 2:
        expected = (expected.sum(axis=1) << 32) + expected[:, 1]
    np.testing.assert_array_equal(counted[:, : expected.size], [expected.ravel()] * 2)
    assert found == ((codes[mine].min(), codes[mine].max()),) * 2


@entry_kernel
def choose_class_cut(
    criterion, running, keys, n, first, counts, weight, table, layout, lowest, highest, is_counted
):  # fmt: skip
    entries = keys
    if is_counted:
        count_keys(running, keys, n, lowest, highest, counts.shape[0], layout)
        n = add_up_counts(criterion, running, lowest, highest, counts, layout)
        entries = running.levels
    else:
        add_up(criterion, running, keys, n, counts, layout)
    node = ClassNode(criterion, running, layout, counts, weight)
    score, i = choose_cut(node, entries, first, n - 1 - first, -np.inf, table, 0, FREE)
    return score, np.int64(entries[i] >> layout.low_bits) if i >= 0 else -1


def score_classes(criterion, left, right):
    """scikit-learn's proxy of a cut with these weighted class counts on its sides."""
    impurities = []
    for counts in (left, right):
        total, impurity = float(counts.sum()), 0.0
        if criterion == "gini":
            impurity = 1.0 - float((counts.astype(float) ** 2).sum()) / (total * total)
        else:
            for count in counts:
                if count > 0:
                    share = count / total
                    impurity -= share * (np.log(share) / np.log(2.0))
        impurities.append(impurity)
    return -float(right.sum()) * impurities[1] - float(left.sum()) * impurities[0]


@examples(150)
@given(
    seed=seeds,
    n=st.one_of(st.integers(2, 90), st.integers(200, 400)),
    n_classes=st.integers(2, 5),
    n_levels=st.sampled_from([2, 7, 40, 100_000]),
    first=st.sampled_from([0, 0, 1, 5]),
    step=st.sampled_from([1.0, 4e-8]),
)
@pytest.mark.parametrize("criterion", ["gini", "entropy"])
def test_the_best_class_cut(criterion, seed, n, n_classes, n_levels, first, step):
    rng = np.random.default_rng(seed)
    X = (rng.integers(0, n_levels, (n, 1)) * step).astype(np.float32)
    table = encode(Columns(X))
    weight = rng.integers(1, 6, n)
    # Classes that depend on the feature, or not at all.
    classes = rng.integers(0, n_classes, n)
    if rng.random() < 0.5:
        classes = np.where(X[:, 0] > np.median(X), classes, 0)
    codes = table.codes[0]
    if codes.max() == 0:
        return
    layout = Layout.of(n, n_classes, weight.max())
    words = codes << layout.low_bits | (weight << int(layout.class_bits) | classes).astype(
        np.uint32
    )
    keys = np.sort(words)
    counts = np.bincount(classes, weight, n_classes).astype(np.int64)
    cuts = GiniCuts() if criterion == "gini" else EntropyCuts.create(int(counts.sum()))
    order = np.argsort(codes, kind="stable")
    best, best_code = -np.inf, -1
    levels = np.float32(np.unique(X))
    for i in range(first, n - 1 - first):
        low, high = codes[order[i]], codes[order[i + 1]]
        if low == high or levels[high] <= levels[low] + np.float32(1e-7):
            continue
        rows = order[: i + 1]
        left = np.bincount(classes[rows], weight[rows], n_classes).astype(np.int64)
        score = score_classes(criterion, left, counts - left)
        if score > best:
            best, best_code = score, low
    room = max(n, n_classes * (int(codes.max()) + 1))
    for is_counted in (False, True) if first == 0 else (False,):
        running = PrefixCounts.create(room, n_classes)
        found = choose_class_cut(
            cuts, running, keys, n, first, counts, int(counts.sum()), table, layout, codes.min(),
            codes.max(), is_counted,
        )  # fmt: skip
        if criterion == "gini" or best_code == -1:
            assert found == (best, best_code)
        else:  # numpy's logarithm may differ in the last bit
            assert found[0] == pytest.approx(best, abs=1e-12 * counts.sum())


@entry_kernel
def choose_screened(
    criterion, running, keys, scratch, n, counts, weight, score, table, layout, lowest, highest
):
    mine, spare, digits = scratch
    node = ClassNode(criterion, running, layout, counts, weight)
    n_kept, shift = screen(node, keys, n, (lowest, highest), score, table, 0, mine)
    if sort_short_keys(mine, n_kept, layout.low_bits, lowest, highest, spare, digits):
        mine = spare
    add_up_kept(criterion, running, mine, n_kept, lowest, shift, counts, layout)
    score, i = choose_cut(node, mine, 0, n_kept - 1, score, table, 0, FREE)
    low, high = (mine[i] >> layout.low_bits, mine[i + 1] >> layout.low_bits) if i >= 0 else (0, 0)
    return score, np.int64(low) if i >= 0 else -1, np.int64(high), n_kept


def create_scratch(n):
    return *np.empty((2, n + ROOM), np.uint32), np.empty(N_DIGITS, np.int32)


@examples(150)
@given(
    seed=seeds,
    n=st.integers(16, 3000),
    n_classes=st.integers(2, 5),
    n_levels=st.sampled_from([7, 60, 100_000]),
    near=st.sampled_from([0.0, 0.5]),
    noise=st.sampled_from([0.0, 0.3, 1.0]),
    rare=st.sampled_from([0.0, 0.99]),
    bar=st.sampled_from([None, -1e-3, 0.0, 1e-3]),
)
@pytest.mark.parametrize("criterion", ["gini", "entropy"])
def test_screening_keeps_the_best_class_cut(
    criterion, seed, n, n_classes, n_levels, near, noise, rare, bar
):
    """`near`: share of the levels too near to the one before for a cut; `rare`: how many of the
    other classes belong to the first; `bar`: how far the score to beat lies below the best,
    relative to it."""
    cuts = EntropyCuts.create(6 * n) if criterion == "entropy" else GiniCuts()
    if criterion == "entropy":
        n_classes = 2  # of more, its decrease has no bound here
    rng = np.random.default_rng(seed)
    levels = np.cumsum(np.where(rng.random(n_levels) < near, 4e-8, 2e-7))
    table = encode(Columns(levels[rng.integers(0, n_levels, (n, 1))].astype(np.float32)))
    codes = table.codes[0]
    if codes.max() == 0:
        return
    weight = rng.integers(1, 6, n)
    place = (codes * (n_classes / (codes.max() + 1))).astype(int)
    classes = np.where(rng.random(n) < noise, rng.integers(0, n_classes, n), place)
    classes[rng.random(n) < rare] = 0
    layout = Layout.of(n, n_classes, weight.max())
    words = codes << layout.low_bits | (weight << int(layout.class_bits) | classes).astype(
        np.uint32
    )
    counts = np.bincount(classes, weight, n_classes).astype(np.int64)
    total = int(counts.sum())
    running = PrefixCounts.create(n, n_classes)
    span = table, layout, codes.min(), codes.max()
    best, code = choose_class_cut(cuts, running, np.sort(words), n, 0, counts, total, *span, False)
    score = -np.inf if bar is None or best == -np.inf else best - bar * abs(best)
    scratch = create_scratch(n)
    found = choose_screened(cuts, running, words, scratch, n, counts, total, score, *span)
    if best > score:
        assert found[:3] == (best, code, codes[codes > code].min())
    else:
        assert found[:2] == (score, -1)


@pytest.mark.parametrize("n", range(129, 400, 2))
def test_screening_keeps_the_cut_beside_the_only_row_of_a_class(n):
    """Among equals in the middle, so that no cut has as much gain as half of the rows without it
    would have."""
    values = np.arange(n)
    values[n // 2 - 4 : n // 2 + 5] = n // 2
    table = encode(Columns(values[:, None].astype(np.float32)))
    codes, classes = table.codes[0], (np.arange(n) == n // 2).astype(int)
    layout = Layout.of(n, 2, 1)
    words = codes << layout.low_bits | (1 << int(layout.class_bits) | classes).astype(np.uint32)
    _, low, high, _ = choose_screened(
        GiniCuts(), PrefixCounts.create(n, 2), words, create_scratch(n), n, np.bincount(classes), n,
        -np.inf, table, layout, codes.min(), codes.max(),
    )  # fmt: skip
    assert (low, high) == (n // 2 - 5, n // 2 - 4)


@pytest.mark.parametrize("n_classes", [2, 5])
def test_screening_leaves_most_keys_out(n_classes):
    rng = np.random.default_rng(0)
    n = 20_000
    codes = rng.permutation(n).astype(np.uint32)
    classes = np.where(rng.random(n) < 0.5, codes > n // 3, rng.integers(0, n_classes, n))
    table = encode(Columns(codes[:, None].astype(np.float32)))
    layout = Layout.of(n, n_classes, 1)
    words = codes << layout.low_bits | (1 << int(layout.class_bits) | classes).astype(np.uint32)
    counts = np.bincount(classes, minlength=n_classes)
    arguments = (
        GiniCuts(),
        PrefixCounts.create(n, n_classes),
        words,
        create_scratch(n),
        n,
        counts,
        n,
    )
    span = table, layout, codes.min(), codes.max()
    score, code, _, n_kept = choose_screened(*arguments, -np.inf, *span)
    assert code >= 0
    assert 0 < n_kept < n / 20
    assert choose_screened(*arguments, 0.99 * score, *span) == (0.99 * score, -1, 0, 0)


# ------------------------------------------------------------------------------------- lanes


@pytest.mark.parametrize("width", [1, 2, 8])
def test_lanes_do_as_numpy_does(width):
    def work(lanes, reals, numbers, words, matrix, half, two):
        rows = (lanes.load(numbers) & 3) * 2
        beside, found = lanes.gather_rows(matrix, rows, 2)
        others = lanes.gather_rows(matrix, rows & 4, 4)
        found = found + (lanes.gather(matrix, rows + 1) - found) + (others[3] - others[1]) * beside
        mine = lanes.load(reals)
        is_more = (found > mine) & (lanes.load(numbers) - two > 0) & (lanes.load(words) >> 60 <= 14)
        lanes.store(reals, lanes.where(is_more, mine * found - half, (mine + 1.0) / found))
        lanes.store(numbers, lanes.where(is_more, two, lanes.load(numbers) + two))
        return lanes.any(is_more)

    compiled = on_lanes(width)(work)

    @entry_kernel
    def kernel(*arguments):
        return compiled(*arguments)

    rng, answers = np.random.default_rng(0), set()
    for _ in range(20):
        arguments = [
            rng.random(9), rng.integers(-9, 9, 9), rng.integers(0, 2**64, 9, np.uint64),
            rng.random((4, 2)), 0.5, 2,
        ]  # fmt: skip
        expected = [np.copy(argument) for argument in arguments[:2]]
        answer = work(PlainLanes(width), *expected, *arguments[2:])
        assert kernel(*arguments) == answer
        for found, array in zip(arguments, expected, strict=False):
            np.testing.assert_array_equal(found, array)
        answers.add(answer)
    assert answers == {True, False}


@pytest.mark.parametrize("width", [1, 2, 8])
def test_lanes_count_as_numpy_does(width):
    """Loops that carry vectors from turn to turn, and items that are the same in all lanes."""

    def work(lanes, i, n, stride, table, lines, total):
        i, stride = lanes.number(i), lanes.number(stride)

        def add(k, found, product):
            mine = lanes.load(lines, k * stride + i)
            lanes.store(lines, mine + 1.0, k * stride + i)
            return found + mine * lanes.same(table, k + 2), product * mine

        begin = lanes.load(total, i)
        found, product = lanes.repeat(lanes.number(n), add, begin, begin)
        lanes.store(total, found - product, i)

    compiled = on_lanes(width)(work)

    @entry_kernel
    def kernel(n, table, lines, total):
        for i in range(total.shape[0] // width):
            compiled(i, n, total.shape[0] // width, table, lines, total)

    rng = np.random.default_rng(0)
    for n in (1, 2, 5):
        table, lines, total = rng.random(9), rng.random((n, 3 * width)), rng.random(3 * width)
        expected = total + (lines.T * table[2 : n + 2]).sum(axis=1) - total * lines.prod(axis=0)
        copies = [np.copy(array) for array in (table, lines, total)]
        for i in range(3):
            work(PlainLanes(width), i, n, 3, *copies)
        np.testing.assert_allclose(copies[2], expected)
        before = lines.copy()
        kernel(n, table, lines, total)
        np.testing.assert_array_equal(lines, before + 1.0)
        np.testing.assert_array_equal(lines, copies[1])
        np.testing.assert_allclose(total, expected)


# -------------------------------------------------------------------------------------- trees


def grow_both_ways(X, y, weights, params, expected_path, hands_on=False, is_narrow=True):
    """Trees of the fast path, on codes of 16 bits or 32, and of the general one."""
    is_regression = y.dtype.kind == "f"
    model = (DecisionTreeRegressor if is_regression else DecisionTreeClassifier)(**params)
    criterion = criteria.REGRESSION if is_regression else criteria.CLASSIFICATION
    n_values = 1 if is_regression else int(y.max()) + 1
    codes = y.astype(float).reshape(len(y), -1)
    plan = make_plan(model, criterion[model.criterion], "best", *X.shape, codes.shape[1], n_values)
    table = encode(Columns(X.astype(np.float32)))
    table = table.narrow() if is_narrow else table
    assert table.codes.dtype == (np.uint16 if is_narrow else np.uint32)
    fast, general = paths(table, codes, plan, expected_path)
    if hands_on:
        del fast._grow_in_general
    seeds = range(1, 1 + len(weights))
    return fast.grow(weights, seeds), general.grow(weights, seeds)


limits = st.fixed_dictionaries(
    {"max_features": st.sampled_from([1, 2, 0.5, 1.0])},
    optional={
        "max_depth": st.integers(1, 6),
        "min_samples_split": st.integers(2, 10),
        "min_samples_leaf": st.integers(1, 8),
        "min_impurity_decrease": st.sampled_from([0.013, 0.11]),
        "ccp_alpha": st.sampled_from([0.01]),
    },
)


@examples(150)
@given(
    seed=seeds,
    params=limits,
    n_classes=st.integers(1, 4),
    criterion=st.sampled_from(["gini", "entropy"]),
    is_narrow=st.booleans(),
)
def test_quick_class_trees_are_the_general_ones(seed, params, n_classes, criterion, is_narrow):
    rng = np.random.default_rng(seed)
    n = rng.integers(1, 300)
    X = rng.integers(0, rng.choice([2, 10, 1000]), (n, rng.integers(1, 6)))
    X = X * rng.choice([1.0, 3e-8])
    y = rng.integers(0, n_classes, n)
    weights = rng.integers(0, 4, (3, n)).astype(float)
    weights[:, rng.integers(n)] = 1.0
    params = {**params, "criterion": criterion}
    both = grow_both_ways(X, y, weights, params, ClassCountsPath, is_narrow=is_narrow)
    for ours, theirs in zip(*both, strict=True):
        assert_same_nodes(ours, theirs)


@examples(200)
@given(
    seed=seeds,
    params=limits,
    n_classes=st.integers(2, 4),
    criterion=st.sampled_from(["gini", "entropy"]),
    missing=st.sampled_from([0.0, 0.1, 0.6]),
    least=st.sampled_from([0.0, 0.0, 0.02, 0.1]),
    is_constrained=st.booleans(),
    is_random=st.booleans(),
)
def test_class_trees_with_missing_values_and_bounds_are_the_general_ones(
    seed, params, n_classes, criterion, missing, least, is_constrained, is_random
):
    rng = np.random.default_rng(seed)
    n = rng.integers(1, 500)
    X = rng.integers(0, rng.choice([2, 10, 1000]), (n, rng.integers(1, 6)))
    X = np.where(rng.random(X.shape) < missing, np.nan, X * rng.choice([1.0, 3e-8]))
    weights = rng.integers(0, 4, (3, n)).astype(float)
    weights[:, rng.integers(n)] = 1.0
    n_classes = 2 if is_constrained else n_classes
    y = rng.integers(0, n_classes, n)
    y = np.where(X[:, 0] > np.nanmedian(X) if n > 9 else True, y, 0)
    params = {**params, "criterion": criterion, "min_weight_fraction_leaf": least}
    if is_constrained:
        params["monotonic_cst"] = rng.integers(-1, 2, X.shape[1])
    model = DecisionTreeClassifier(**params)
    splitter = "random" if is_random else "best"
    criterion = criteria.CLASSIFICATION[criterion]
    plan = make_plan(model, criterion, splitter, n, X.shape[1], 1, n_classes)
    columns, codes = Columns(X.astype(np.float32)), y.astype(float)[:, None]
    table = FloatTable.encode(columns) if is_random else encode(columns)
    path = RandomClassCountsPath if is_random else ClassCountsPath
    fast, general = paths(table, codes, plan, path)
    for weight, number in zip(weights, range(1, 4), strict=True):
        both = (grower.grow([weight], [number])[0] for grower in (fast, general))
        assert_same_nodes(*both)


@examples(300)
@given(
    seed=seeds,
    params=limits,
    has_ties=st.booleans(),
    offset=st.sampled_from([0.0, 5.0, 1e6]),
    factor=st.sampled_from([1.0, 40.0, 0.5]),
)
def test_quick_mean_trees_are_the_general_ones(seed, params, has_ties, offset, factor):
    """To the bit: without ties for any numbers, with ties where sums are exact in every order.

    Of many features to look at one by one, none keeps a sorted list.
    """
    rng = np.random.default_rng(seed)
    n, n_features = rng.integers(1, 300), rng.integers(1, 12)
    if has_ties:
        X = rng.integers(0, rng.choice([2, 10, 100]), (n, n_features)) * rng.choice([1.0, 3e-8])
        y = rng.integers(0, 50, n).astype(float)
    else:
        X = np.argsort(rng.random((n, n_features)), axis=0)
        y = offset + rng.normal(size=n) * rng.choice([1.0, 1e-6])
    weights = rng.integers(0, 4, (3, n)) * factor
    weights[:, rng.integers(n)] = 1.0
    for ours, theirs in zip(*grow_both_ways(X, y, weights, params, SortedPath), strict=True):
        assert_same_nodes(ours, theirs)


@examples(150)
@given(
    seed=seeds,
    params=limits,
    kind=st.sampled_from(["squared_error", "poisson", "gini"]),
    missing=st.sampled_from([0.0, 0.1, 0.6]),
    least=st.sampled_from([0.0, 0.0, 0.02, 0.1]),
    is_constrained=st.booleans(),
    n_max=st.sampled_from([60, 600]),
)
def test_trees_by_sums_with_missing_values_and_bounds_are_the_general_ones(
    seed, params, kind, missing, least, is_constrained, n_max
):
    """To the bit, for any numbers, without ties but between missing values."""
    rng = np.random.default_rng(seed)
    n, n_features = rng.integers(1, n_max), rng.integers(1, 12 if kind == "squared_error" else 8)
    X = np.argsort(rng.random((n, n_features)), axis=0).astype(float)
    signal = X[:, 0] + X[:, -1] > rng.normal(n, n / 3, n)
    X[rng.random(X.shape) < missing] = np.nan
    y = {
        "squared_error": signal + rng.normal(size=n),
        "poisson": rng.poisson(1.0 + 3.0 * signal).astype(float) * rng.choice([1.0, 0.3]),
        "gini": signal.astype(int),
    }[kind]
    y[0] = y[0] if kind == "squared_error" else 1
    weights = rng.integers(0, 4, (3, n)) * rng.random((3, n))
    weights[:, rng.integers(n)] = 0.3
    params = {**params, "criterion": kind, "min_weight_fraction_leaf": least}
    if is_constrained and kind != "gini":
        params["monotonic_cst"] = rng.integers(-1, 2, n_features)
    for weight in weights:
        both = grow_both_ways(X, y, weight[None], params, SortedPath, is_narrow=False)
        for ours, theirs in zip(*both, strict=True):
            assert_same_nodes(ours, theirs)


@examples(150)
@given(
    seed=seeds,
    params=limits,
    targets=st.sampled_from(["any", "whole", "rounded", "far", "two"]),
    n_max=st.sampled_from([10, 100, 400]),
)
def test_trees_by_absolute_error_are_the_general_ones(seed, params, targets, n_max):
    """To the bit, also where cuts tie and scikit-learn's rounding decides."""
    rng = np.random.default_rng(seed)
    n, n_features = rng.integers(1, n_max), rng.integers(1, 8)
    X = np.argsort(rng.random((n, n_features)), axis=0).astype(float)
    X[:, 0] = X[:, -1]
    y = rng.normal(size=n) + (X[:, 0] > n / 2)
    y = {
        "any": y, "whole": np.rint(5.0 * y) + 0.0, "rounded": np.round(y, 1) + 0.0, "far": 1e9 + y,
        "two": 0.1 * (y > 0),
    }[targets]  # fmt: skip
    weights = rng.integers(0, 4, (3, n)).astype(float) if rng.random() < 0.7 else np.ones((3, n))
    weights[:, rng.integers(n)] = 1.0
    params = {**params, "criterion": "absolute_error"}
    both = grow_both_ways(X, y, weights, params, SortedPath, is_narrow=False)
    for ours, theirs in zip(*both, strict=True):
        assert_same_nodes(ours, theirs)


@examples(100)
@given(
    seed=seeds,
    params=limits,
    n_outputs=st.integers(2, 3),
    missing=st.sampled_from([0.0, 0.2]),
    least=st.sampled_from([0.0, 0.0, 0.1]),
)
def test_trees_of_several_means_are_the_general_ones(seed, params, n_outputs, missing, least):
    """To the bit, for any numbers."""
    rng = np.random.default_rng(seed)
    n, n_features = rng.integers(1, 400), rng.integers(1, 12)
    X = np.argsort(rng.random((n, n_features)), axis=0).astype(float)
    y = rng.normal(size=(n, n_outputs)) + (X[:, :1] > n / 2)
    X[rng.random(X.shape) < missing] = np.nan
    weights = rng.integers(0, 4, (3, n)) * rng.choice([1.0, 0.3])
    weights[:, rng.integers(n)] = 1.0
    params = {**params, "min_weight_fraction_leaf": least}
    for weight in weights:
        both = grow_both_ways(X, y, weight[None], params, SortedPath, is_narrow=False)
        for ours, theirs in zip(*both, strict=True):
            assert_same_nodes(ours, theirs)


@examples(100)
@given(
    seed=seeds,
    params=limits,
    n_outputs=st.integers(2, 3),
    n_classes=st.integers(2, 4),
    missing=st.sampled_from([0.0, 0.2]),
    n_leaves=st.sampled_from([None, None, 10]),
)
def test_class_trees_of_several_outputs_are_the_general_ones(
    seed, params, n_outputs, n_classes, missing, n_leaves
):
    rng = np.random.default_rng(seed)
    n, n_features = rng.integers(1, 400), rng.integers(1, 12)
    X = rng.integers(0, rng.choice([2, 10, 1000]), (n, n_features)).astype(float)
    y = rng.integers(0, n_classes, (n, n_outputs)) * (X[:, :1] > X.mean())
    y[0] = n_classes - 1, *range(n_outputs - 1)
    X[rng.random(X.shape) < missing] = np.nan
    weights = rng.integers(0, 4, (3, n)).astype(float)
    weights[:, rng.integers(n)] = 1.0
    params = {**params, "max_leaf_nodes": n_leaves}
    both = grow_both_ways(X, y, weights, params, ClassCountsPath, is_narrow=False)
    for ours, theirs in zip(*both, strict=True):
        assert_same_nodes(ours, theirs)
        np.testing.assert_array_equal(ours.n_classes, theirs.n_classes)


@examples(60)
@given(
    seed=seeds,
    kind=st.sampled_from(["squared_error", "poisson", "two weighted", "gini", "random"]),
    n_leaves=st.integers(2, 40),
    max_features=st.sampled_from([0.5, 1.0]),
    missing=st.sampled_from([0.0, 0.2]),
    is_constrained=st.booleans(),
)
def test_trees_best_first_are_the_general_ones(
    seed, kind, n_leaves, max_features, missing, is_constrained
):
    rng = np.random.default_rng(seed)
    n, n_features = rng.integers(1, 400), rng.integers(1, 8)
    X = np.argsort(rng.random((n, n_features)), axis=0).astype(float)
    signal = X[:, 0] > rng.normal(n / 2, n / 3, n)
    X[rng.random(X.shape) < missing] = np.nan
    is_classifier = kind not in ("squared_error", "poisson")
    y = signal.astype(float) if is_classifier else signal + rng.poisson(2.0, n) + 0.5
    y[0] = 1.0
    weight = rng.integers(0, 4, n) * (0.3 if kind == "two weighted" else 1.0)
    weight[rng.integers(n)] = 1.0
    model = (DecisionTreeClassifier if is_classifier else DecisionTreeRegressor)(
        max_leaf_nodes=n_leaves, max_features=max_features
    )
    if is_constrained and kind != "two weighted":
        model.monotonic_cst = rng.integers(-1, 2, n_features)
    criterion = criteria.Gini if is_classifier else criteria.REGRESSION[kind]
    splitter, values = "random" if kind == "random" else "best", 2 if is_classifier else 1
    plan = make_plan(model, criterion, splitter, n, n_features, 1, values)
    columns = Columns(X.astype(np.float32))
    table = FloatTable.encode(columns) if kind == "random" else encode(columns)
    path = {"gini": ClassCountsPath, "random": RandomClassCountsPath}.get(kind, SortedPath)
    for ours, theirs in zip(
        *(grower.grow([weight], [7]) for grower in paths(table, y[:, None], plan, path)),
        strict=True,
    ):
        assert ours.n_leaves <= n_leaves
        assert_same_nodes(ours, theirs)


@pytest.mark.parametrize("y", [1e9 / 3, 0.1, 1e-170, 1e120, 1e170])
def test_targets_that_differ_by_rounding_only_or_hardly_fit(y):
    """Where all targets are one, rounding may make a node look impure, and squares overflow."""
    rng = np.random.default_rng(0)
    X = np.argsort(rng.random((300, 4)), axis=0)
    weights = rng.integers(0, 4, (3, 300)).astype(float)
    for scale in (0.0, 1.0):
        target = y * (1.0 + scale * rng.random(300))
        with np.errstate(all="ignore"):
            both = grow_both_ways(X, target, weights, {}, SortedPath)
        for ours, theirs in zip(*both, strict=True):
            assert_same_nodes(ours, theirs)


@pytest.mark.parametrize("max_features", [1, 1.0])
@pytest.mark.parametrize("task", ["two classes", "five classes", "means"])
@pytest.mark.parametrize("is_narrow", [True, False])
def test_large_trees(task, max_features, is_narrow, monkeypatch):
    """On near copies of the codes, and on rows that lists, or none, bring along."""
    monkeypatch.setattr(class_counts_path, "CACHE_COPY_BYTES", (2**14, 2**11))
    rng = np.random.default_rng(0)
    n = 24_000
    X = np.argsort(rng.random((n, 24)), axis=0)
    signal = X[:, 0] + X[:, 1] > rng.normal(n, n / 2, n)
    y, path = signal.astype(int), ClassCountsPath
    if task == "five classes":
        y = signal + rng.integers(0, 4, n)
    elif task == "means":
        y, path = signal + rng.normal(size=n), SortedPath
    weights = np.bincount(rng.integers(0, n, n), minlength=n)[None].astype(float)
    params = {"max_features": max_features}
    ((ours,), (theirs,)) = grow_both_ways(X, y, weights, params, path, is_narrow=is_narrow)
    assert ours.node_count > 1000
    assert_same_nodes(ours, theirs)


@examples(300)
@given(
    seed=seeds,
    total=st.sampled_from([2**24, 2**25, 2**26]),
    step=st.integers(-2, 2),
    n_classes=st.sampled_from([2, 3, 5]),
    is_skewed=st.booleans(),
)
def test_gini_trees_of_weights_on_both_sides_of_what_single_precision_counts(
    seed, total, step, n_classes, is_skewed
):
    """Up to a total of 2**26, whose square double precision holds, and beyond it, where the general
    path takes over. Few rows may have nearly all of the weight, and cuts be next to the border."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(100, 300))
    X = np.argsort(rng.random((n, 3)), axis=0)
    y = rng.integers(0, n_classes, n)
    if rng.random() < 0.5:
        y = np.where(X[:, 0] > n // 2, y, 0)
    share = rng.random(n) ** (20 if is_skewed else 1)
    weight = np.maximum(np.floor(share / share.sum() * total), 1.0)
    weight = np.minimum(weight, 2.0**20 - 1)  # what a word has room for
    while weight.sum() != total + step:
        i = rng.integers(n)
        weight[i] = min(max(weight[i] + total + step - weight.sum(), 1.0), 2.0**20 - 1)
    beyond = weight.sum() > 2**26
    both = grow_both_ways(X, y, weight[None], {}, ClassCountsPath, hands_on=beyond)
    for ours, theirs in zip(*both, strict=True):
        assert_same_nodes(ours, theirs)


@pytest.mark.parametrize("weight", [2.0**18, 2.0**19, 2.0**20, 2.0**24])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_row_of_weight_1_beside_many_heavy_ones_is_split_off(weight, n_classes):
    """In single precision its weight vanishes beside the others'."""
    X = np.arange(64.0)[:, None]
    y = np.minimum(X[:, 0] // 32 + (n_classes == 3) * (X[:, 0] // 48), n_classes - 1).astype(int)
    weights = np.full(64, weight)
    weights[-1] = 1.0
    ours = DecisionTreeClassifier(random_state=0).fit(X, y, weights)
    theirs = Peer(random_state=0).fit(X, y, weights)
    assert ours.tree_.node_count == 2 * n_classes - 1
    assert_same_tree(ours.tree_, theirs.tree_)


@pytest.mark.parametrize("factor", [2.0**26, 2.0**22, 2.0**17, 0.5])
def test_weights_that_fit_into_no_word(factor):
    """Weights too large for a word, or no whole numbers: the general path grows the trees."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 3)), rng.integers(0, 200, 200)
    weights = rng.integers(0, 4, (2, 200)) * factor
    weights[:, 50:] = np.minimum(weights[:, 50:], 1.0)
    both = grow_both_ways(X, y, weights, {}, ClassCountsPath, hands_on=True)
    for ours, theirs in zip(*both, strict=True):
        assert ours.node_count > 10
        assert_same_nodes(ours, theirs)


@pytest.mark.parametrize("factor", [2.0**14, 1e300])
def test_weights_of_which_entropy_keeps_no_table(factor):
    """They are many times as much as there are rows: the general path grows the trees."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 3)), rng.integers(0, 2, 200)
    weights = rng.integers(0, 4, (2, 200)) * factor
    both = grow_both_ways(X, y, weights, {"criterion": "entropy"}, ClassCountsPath, hands_on=True)
    for ours, theirs in zip(*both, strict=True):
        assert ours.node_count > 10
        assert_same_nodes(ours, theirs)


def test_the_table_of_entropy_grows_with_the_weights():
    """It is asked of every weight up to the total, whatever the batch before weighed."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), rng.integers(0, 2, 60).astype(float)
    plan = make_plan(DecisionTreeClassifier(), criteria.Entropy, "best", 60, 3, 1, 2)
    path = ClassCountsPath(encode(Columns(X.astype(np.float32))), y[:, None], plan)
    for total in (61, 62, 60, 63, 80):
        weights = np.ones((1, 60))
        weights[0, 0] += total - 60
        assert path.accepts(weights, True)
        assert len(path._criterion.table) > total


def test_more_trees_than_before_and_fewer():
    """One Grower grows any number of trees at once, and each is the same as alone."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), rng.integers(0, 2, 60).astype(float)
    weights = rng.integers(0, 3, (7, 60)).astype(float)
    for kind, values, criterion in (
        (DecisionTreeClassifier, 2, criteria.Gini),
        (DecisionTreeRegressor, 1, criteria.SquaredError),
    ):
        plan = make_plan(kind(), criterion, "best", 60, 3, 1, values)
        grower = Grower(encode(Columns(X.astype(np.float32))), y[:, None], plan)
        some = [*grower.grow(weights[:2], [0, 1]), *grower.grow(weights[2:], range(2, 7))]
        for i, tree in enumerate(some):
            assert_same_nodes(grower.grow(weights[i : i + 1], [i])[0], tree)
