"""Class counts: words of rows, and the best cut of a node, against slow twins."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cart.fast_paths.base import MISSING_LEFT, MISSING_RIGHT, Cut
from cart.fast_paths.classification.best_cut import Monotony, choose_cut
from cart.fast_paths.classification.cumulative_counts import (
    ClassNode,
    PrefixCounts,
    add_up,
    add_up_counts,
    count_few_codes,
    count_keys,
    count_samples,
    with_enough_samples,
)
from cart.fast_paths.classification.impurities import EntropyCuts, GiniCuts
from cart.fast_paths.classification.packed_rows import (
    ColumnCodes,
    Layout,
    pack_rows,
    partition_packed_rows,
)
from cart.fast_paths.classification.screening import add_up_kept, screen
from cart.jit.decorators import entry_kernel
from cart.primitives.radix_sort import N_DIGITS, ROOM, sort_short_keys
from cart.splitting.splitter import Bounds
from cart.table.columns import Columns
from cart.table.encoding import encode
from cart.table.ranking import MISSING
from tests.examples import examples

seeds = st.integers(0, 2**32 - 1)
FREE = Monotony(0, Bounds(-np.inf, np.inf))


@entry_kernel
def take_words(weight, classes, layout, words, counts):
    return pack_rows(weight, classes, layout, words, counts)


@entry_kernel
def divide_any(codes, left_code, missing, words, layout, scratch, counts):
    cut = Cut(0, left_code, 0, 0.0, missing, 0.0)
    return partition_packed_rows(ColumnCodes(codes), cut, words, layout, *scratch, counts)


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
    scratch, before = tuple(np.empty((2, n), np.uint32)), words.copy()
    n_left = divide_any(codes, 4, missing, words[start:end], layout, scratch, counts)
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
def count_in_both_ways(prefix, keys, span, counts, layout, cells, samples, kept):
    """Count classes and samples of keys one by one, and code by code."""
    lowest, highest = span
    for way in range(2):
        if way == 0:
            n, n_codes = keys.shape[0], np.int64(highest - lowest) + 1
            shift, n_classes = layout.low_bits, counts.shape[0]
            count_keys(prefix, keys, lowest, shift, n_codes, n_classes, layout)
            count_samples(prefix, keys, n, lowest, highest, layout)
        else:
            count_few_codes(prefix, keys, lowest, highest, counts, layout, kept)
        for code in range(samples.shape[1]):
            samples[way, code] = prefix.samples[code]
        for cell in range(cells.shape[1]):
            cells[way, cell] = prefix.histogram[cell]


@examples(50)
@given(
    seed=seeds,
    n=st.integers(1, 300),
    n_classes=st.sampled_from([2, 3, 5]),
    n_codes=st.integers(1, 40),
)
def test_codes_are_counted(seed, n, n_classes, n_codes):
    """More classes than a number has quarters, and weights that overflow a quarter."""
    rng = np.random.default_rng(seed)
    top = rng.choice([3, 2000])
    weight, classes = rng.integers(1, top + 1, n), rng.integers(0, n_classes, n)
    layout = Layout.of(n, n_classes, top)
    first = rng.integers(0, 5)
    codes = first + rng.integers(0, n_codes, n)
    low_bits, class_bits = int(layout.low_bits), int(layout.class_bits)
    keys = (codes << low_bits | weight << class_bits | classes).astype(np.uint32)
    codes -= codes.min()
    expected = np.zeros((codes.max() + 1, n_classes), np.int64)
    np.add.at(expected, (codes, classes), weight)
    counts = expected.sum(axis=0)
    if n_classes == 2:
        expected = (expected.sum(axis=1) << 32) + expected[:, 1]
    cells, samples = np.zeros((2, expected.size), np.int64), np.zeros((2, codes.max() + 1))
    span = keys.min() >> layout.low_bits, keys.max() >> layout.low_bits
    prefix, kept = PrefixCounts.create(600, n_classes), np.empty(n, np.uint32)
    count_in_both_ways(prefix, keys, span, counts, layout, cells, samples, kept)
    np.testing.assert_array_equal(cells, [expected.ravel()] * 2)
    np.testing.assert_array_equal(samples, [np.bincount(codes)] * 2)


@entry_kernel
def choose_class_cut(
    criterion, prefix, keys, n, first, counts, weight, table, layout, lowest, highest, is_counted
):  # fmt: skip
    entries, last = keys, n - 1 - first
    if is_counted:
        n_codes, shift = np.int64(highest - lowest) + 1, layout.low_bits
        count_keys(prefix, keys[:n], lowest, shift, n_codes, counts.shape[0], layout)
        count_samples(prefix, keys, n, lowest, highest, layout)
        n = add_up_counts(criterion, prefix, lowest, highest, counts, layout)
        entries, (first, last) = prefix.levels, with_enough_samples(prefix, n, first + 1, layout)
    else:
        add_up(criterion, prefix, keys, n, counts, layout)
    node = ClassNode(criterion, prefix, layout, counts, weight)
    score, i = choose_cut(node, entries, first, last, -np.inf, table, 0, FREE)
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
    for is_counted in (False, True):
        prefix = PrefixCounts.create(room, n_classes)
        found = choose_class_cut(
            cuts, prefix, keys, n, first, counts, int(counts.sum()), table, layout, codes.min(),
            codes.max(), is_counted,
        )  # fmt: skip
        if criterion == "gini" or best_code == -1:
            assert found == (best, best_code)
        else:  # numpy's logarithm may differ in the last bit
            assert found[0] == pytest.approx(best, abs=1e-12 * counts.sum())


@entry_kernel
def choose_screened(
    criterion, prefix, keys, scratch, n, counts, weight, score, table, layout, lowest, highest
):
    mine, spare, digits = scratch
    node = ClassNode(criterion, prefix, layout, counts, weight)
    n_kept, shift = screen(node, keys, n, (lowest, highest), score, table, 0, mine)
    if sort_short_keys(mine, n_kept, layout.low_bits, lowest, highest, spare, digits):
        mine = spare
    add_up_kept(criterion, prefix, mine, n_kept, lowest, shift, counts, layout)
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
    prefix = PrefixCounts.create(n, n_classes)
    span = table, layout, codes.min(), codes.max()
    best, code = choose_class_cut(cuts, prefix, np.sort(words), n, 0, counts, total, *span, False)
    score = -np.inf if bar is None or best == -np.inf else best - bar * abs(best)
    scratch = create_scratch(n)
    found = choose_screened(cuts, prefix, words, scratch, n, counts, total, score, *span)
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
