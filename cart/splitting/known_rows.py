"""Splitters that judge a feature by the samples of the node that have its value (rpart's rule).

`BestSplitter` tries missing values on either side. If they go by surrogates, or with the majority,
a feature is judged without them: its gain is the decrease of impurity times the weight of the
samples that have it, so that features with fewer missing values are preferred. The limits of
samples and weight count these samples only.
"""

import numpy as np

from cart.jit.decorators import inline_kernel
from cart.primitives.sort_keys import code_of
from cart.splitting import criterion as protocol
from cart.splitting.splitter import (
    BestSplitter,
    RandomSplitter,
    Split,
    cut_at,
    draw_threshold,
    find_best_subsets,
    is_legal,
    scan_cuts,
    split_at,
)
from cart.table.node_samples import without_missing
from cart.table.table import code_up_to


@inline_kernel
def load_known(context, codes):
    """Load the criterion with the samples that have the feature, which come first in the order."""
    node = context.node
    n_known = codes.n - codes.n_missing
    protocol.load(context.criterion, node.records, node.keys, n_known, context.keep_order)


@inline_kernel
def improvement(context, p, n_known):
    """Decrease of impurity x weight at the cut after p samples, and whether the left side weighs at
    least as much as the right; the criterion is loaded with the known samples."""
    criterion, node = context.criterion, context.node
    whole = protocol.impurity(criterion, node.records, node.keys, n_known)
    side = cut_at(criterion, node, p, n_known)
    left, right = protocol.children_impurity(criterion, side, node.records, node.keys, p, n_known)
    weight = criterion.weight[0]
    weight_right = weight - side.weight
    gain = weight * whole - side.weight * left - weight_right * right
    return gain, side.weight >= weight_right


class KnownBestSplitter(BestSplitter):
    """Tries every cut between two values that differ, leaving missing values out."""

    __slots__ = ()

    def find_subsets(self, context, codes):
        return find_best_subsets(context, codes, True)

    def judges_missing(self):
        return False

    def search(self, context, codes, best):
        known = without_missing(codes)
        if known.n < 2:
            return best
        load_known(context, codes)
        _, p = scan_cuts(context, known, 1, known.n - 1, -np.inf)
        if p == 0:
            return best
        gain, missing_left = improvement(context, p, known.n)
        if not gain > best.score:
            return best
        return split_at(context, known, p, True, missing_left, gain)

    def end_search(self, context, n):
        node = context.node
        protocol.load(context.criterion, node.records, node.keys, n, context.keep_order)


class KnownRandomSplitter(RandomSplitter):
    """Tries one threshold drawn at random for each feature, leaving missing values out."""

    __slots__ = ()

    judges_missing = KnownBestSplitter.judges_missing
    order = BestSplitter.order
    is_divided = BestSplitter.is_divided
    end_search = KnownBestSplitter.end_search

    def search(self, context, codes, best):
        table, feature, column, n = context.table, codes.feature, codes.column, codes.n
        n_known = n - codes.n_missing
        threshold = draw_threshold(context, codes)
        if codes.lowest == codes.highest:
            return best
        left_code = code_up_to(table, column, codes.lowest, codes.highest, threshold)
        p = np.int64(0)
        while p < n_known and np.int64(codes.lowest + code_of(context.node.keys[p])) <= left_code:
            p += 1
        least = context.limits.min_samples_leaf
        if p < max(least, 1) or n_known - p < max(least, 1):
            return best
        load_known(context, codes)
        if not is_legal(context, cut_at(context.criterion, context.node, p, n_known), feature):
            return best
        gain, missing_left = improvement(context, p, n_known)
        if gain > best.score:
            best = Split(feature, column, left_code, threshold, True, missing_left, gain)
        return best


# For each splitter, the one that does without missing values.
OF_KNOWN_ROWS = {BestSplitter: KnownBestSplitter(), RandomSplitter: KnownRandomSplitter()}
