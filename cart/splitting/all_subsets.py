"""Find the best of all subsets of a few categories, whose places are in the node's codes.

Each subset differs from the one before by one category (a Gray code), so that a step moves the
samples of one category across the cut. The last category stays on the right, as a subset and its
complement are the same split.

    step      1   2   3   4   5   6   7
    subset  001 011 010 110 111 101 100
"""

import numpy as np

from cart.jit.decorators import inline_kernel, kernel
from cart.primitives.sort_keys import CODE_SHIFT, first_not_below, record_of
from cart.splitting import criterion as protocol
from cart.table.node_samples import order_node, with_range, without_missing
from cart.table.ranking import MISSING


@kernel
def try_all_subsets(context, codes, n_present):
    """Move the best subset of up to EXACT categories to place 0, the rest to place 1."""
    order_node(context.node, with_range(codes, 0, n_present - 1), np.uint32(1), False)
    best = 1
    best_score = -np.inf
    for missing_left in range(2 if codes.n_missing > 0 else 1):
        score, subset = _best_subset(context, codes, n_present, missing_left == 1)
        if score > best_score:
            best_score = score
            best = subset
    _place_in_codes(context, codes.n, n_present, best)


@kernel
def try_known_subsets(context, codes, n_present):
    """As `try_all_subsets`, judged by the samples whose category is known."""
    node, known = context.node, without_missing(codes)
    order_node(node, with_range(codes, 0, n_present - 1), np.uint32(1), False)
    protocol.load(context.criterion, node.records, node.keys, known.n, False)
    _, best = _best_subset(context, known, n_present, False)
    _place_in_codes(context, codes.n, n_present, best)


@kernel
def _place_in_codes(context, n, n_present, best):
    """As `place_subset`, and replace the node's codes as well."""
    node = context.node
    place_subset(context.table.subsets, n_present, best)
    for i in range(n):
        if node.codes[i] != MISSING:
            node.codes[i] = np.uint32(1 - ((best >> node.codes[i]) & 1))


@kernel
def _best_subset(context, codes, n_present, missing_left):
    """The score of the best subset to send left, and the subset, with a bit per category."""
    criterion, node, limits, n = context.criterion, context.node, context.limits, codes.n
    n_known = n - codes.n_missing
    side = protocol.arrange(criterion, node.records, node.keys, n)
    n_left = 0
    if missing_left:
        for j in range(n_known, n):
            side = protocol.move(criterion, side, node.records, record_of(node.keys[j]), 1.0)
        n_left = codes.n_missing
    best = 1
    best_score = -np.inf
    subset = 0
    for step in range(1, 1 << (n_present - 1)):
        moved, subset = next_subset(step, subset)
        sign = 1.0 if (subset >> moved) & 1 else -1.0
        j = first_not_below(node.keys, n_known, np.uint64(moved) << CODE_SHIFT)
        while j < n_known and (node.keys[j] >> np.uint64(32)) == moved:
            side = protocol.move(criterion, side, node.records, record_of(node.keys[j]), sign)
            n_left += 1 if sign > 0.0 else -1
            j += 1
        if min(n_left, n - n_left) < limits.min_samples_leaf:
            continue
        if min(side.weight, criterion.weight[0] - side.weight) < limits.min_weight_leaf:
            continue
        score = protocol.score(criterion, side)
        if score > best_score:
            best_score = score
            best = subset
    return best_score, best


@inline_kernel
def next_subset(step, subset):
    """The place that a step moves across the cut, and the next subset, with a bit per place."""
    moved = 0
    while (step >> moved) & 1 == 0:
        moved += 1
    return moved, subset ^ (1 << moved)


@inline_kernel
def place_subset(subsets, n_present, subset):
    """Give the categories of a subset place 0, the others place 1."""
    for p in range(n_present):
        c = subsets.present[p]
        subsets.place[c] = np.uint32(1 - ((subset >> subsets.place[c]) & 1))
