"""Approximate gains of class cuts: the best cut is always among those that they let through."""

from collections import namedtuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cart.fast_paths.classification.cumulative_counts import PrefixCounts, add_up
from cart.fast_paths.classification.impurities import (
    EntropyCuts,
    GiniCuts,
    approximate_gains,
    gain_to_beat,
    score_cut,
)
from cart.fast_paths.classification.packed_rows import Layout
from cart.fast_paths.classification.screening import screen
from cart.jit.decorators import entry_kernel
from cart.table.columns import Columns
from cart.table.encoding import encode
from tests.examples import examples

CRITERIA = ("gini", "entropy")


@entry_kernel
def rate_cuts(criterion, prefix, keys, counts, weight, layout, scores):
    """Gains of all cuts, and their scores."""
    n = keys.shape[0] - 1
    add_up(criterion, prefix, keys, n, counts, layout)
    approximate_gains(criterion, prefix, keys, 0, n - 1, counts, weight, layout.low_mask)
    for i in range(n - 1):
        scores[i] = score_cut(criterion, prefix, keys, i, counts, weight, layout)


@entry_kernel
def least_gain(criterion, top, score, counts, weight):
    return gain_to_beat(criterion, top, score, counts, weight)


Rated = namedtuple("Rated", "criterion counts weight gains scores")


def rate(name, weights, classes, n_classes):
    """A node whose rows all have codes of their own, with its cuts."""
    n = len(weights)
    layout = Layout.of(n, n_classes, weights.max())
    counts = np.bincount(classes, weights, n_classes).astype(np.int64)
    words = np.arange(n, dtype=np.uint32) << layout.low_bits
    words |= weights.astype(np.uint32) << layout.class_bits | classes.astype(np.uint32)
    keys = np.append(words, np.uint32(0))
    criterion = GiniCuts() if name == "gini" else EntropyCuts.create(int(counts.sum()))
    prefix = PrefixCounts.create(n, n_classes)
    weight, scores = int(counts.sum()), np.empty(n - 1)
    rate_cuts(criterion, prefix, keys, counts, weight, layout, scores)
    return Rated(criterion, counts, weight, prefix.gain[: n - 1], scores)


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("name", CRITERIA)
@examples(100)
@given(seed=st.integers(0, 2**32 - 1))
def test_the_best_cut_is_let_through(name, n_classes, seed):
    """So is every cut as good; none is let through that gains far less than the highest."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(n_classes + 1, 60))
    weights = rng.integers(1, rng.choice([2, 4, 5_000]), n)
    classes = rng.permutation(
        np.r_[np.arange(n_classes), rng.integers(0, n_classes, n - n_classes)]
    )
    if rng.random() < 0.5:  # the same from both ends: cuts that are equally good
        weights, classes = np.r_[weights, weights[::-1]], np.r_[classes, classes[::-1]]
    node = rate(name, weights, classes, n_classes)
    top = np.float64(node.gains.max())
    least = least_gain(node.criterion, top, -np.inf, node.counts, node.weight)
    is_best = node.scores >= node.scores.max()
    assert least <= node.gains[is_best].min()
    assert 0.0 <= least <= top
    weight = node.weight
    slack = 1e-5 * weight if n_classes > 2 or name == "entropy" else 1e-4 * np.sqrt(top * weight)
    assert least >= top - slack - 1e-6


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("name", CRITERIA)
@examples(50)
@given(seed=st.integers(0, 2**32 - 1))
def test_a_feature_is_given_up_only_where_it_cannot_be_better(name, n_classes, seed):
    rng = np.random.default_rng(seed)
    weights = rng.integers(1, rng.choice([2, 5_000]), 40)
    classes = rng.permutation(
        np.r_[np.arange(n_classes), rng.integers(0, n_classes, 40 - n_classes)]
    )
    node = rate(name, weights, classes, n_classes)
    top, best = np.float64(node.gains.max()), node.scores.max()
    assert (
        least_gain(node.criterion, top, np.nextafter(best, -np.inf), node.counts, node.weight)
        < np.inf
    )
    far_better = best + 1e-3 * node.weight
    assert least_gain(node.criterion, top, far_better, node.counts, node.weight) == np.inf


# --------------------------------------------------------------------------------- screening

ScreenedNode = namedtuple("ScreenedNode", "criterion prefix layout counts weight")


@entry_kernel
def screened(node, keys, span, table, kept):
    return screen(node, keys, keys.shape[0], span, -np.inf, table, 0, kept)


def test_screening_reads_no_code_that_it_did_not_write():
    """Memory of a search before is as good as any: the levels of buckets are all its own."""
    # The best cut is inside the last bucket of two codes; a border far left of it beats the one
    # before the bucket.
    codes = np.repeat(np.arange(40), [*[5] * 20, *[5] * 18, 60, 100]).astype(np.uint32)
    classes = np.where(codes < 20, 1, codes % 2).astype(np.uint32)
    classes[codes == 38], classes[codes == 39] = 1, 0
    n = len(codes)
    table = encode(Columns(codes[:, np.newaxis].astype(np.float32)))
    layout = Layout.of(n, 2, 1)
    keys = codes << layout.low_bits | np.uint32(1) << layout.class_bits | classes
    counts = np.bincount(classes, minlength=2)
    kept = []
    for rubbish in range(200):
        prefix = PrefixCounts.create(n, 2)
        prefix.levels[:] = np.uint32(rubbish) << layout.low_bits
        node = ScreenedNode(GiniCuts(), prefix, layout, counts, n)
        spare = np.zeros(n, np.uint32)
        n_kept, _ = screened(node, keys, (np.uint32(0), np.uint32(39)), table, spare)
        kept.append(sorted(spare[:n_kept]))
    assert all(one == kept[0] for one in kept)
    assert 0 < len(kept[0]) < n
    assert {38, 39} <= set(np.array(kept[0]) >> layout.low_bits)
