"""Path-dependent SHAP values of trees by quadrature: each node is met once, by many rows at once.

For a leaf of value v let o_i be 1 where the row passes all conditions on feature i of its path,
else 0, and r_i the product of the shares of cover at these splits. By Owen's multilinear extension

    phi_j = v * integral over p in [0, 1] of (o_j - r_j) * product over i != j of f_i,
    f_i = p o_i + (1 - p) r_i,

of which Gauss-Legendre points p give the integral exactly. Down the tree goes the product of all
f_i; up come the sums over the leaves below of v times their products. A split on j replaces f_j,
and phi_j gets the sum that comes up times the change of (o_j - r_j) / f_j:

    PASSED      o_j stays 1     f_j = p + (1 - p) r_j     the same for all rows that do so: made
    FAILED      o_j becomes 0   f_j =     (1 - p) r_j     once per node
    FAILED_ERE  o_j is 0        f_j *= share              nothing changes for j

Rows that passed are divided by no less than p; products only shrink, so that an underflow loses
what is below the smallest number. Level by level there are, with the rows as lanes of vectors:

    way      [ 0  1  1  2  0  ... ]     left, right, FAILED_ERE: at the split of the level
    product  [ .  .  .  .  .  ... ]     a line per point
    total    [ .  .  .  .  .  ... ]     a line per point and output: what has come up so far
"""

from typing import NamedTuple

import numpy as np

from cart.jit.decorators import inline_kernel, kernel
from cart.jit.simd import on_lanes
from cart.tree.nodes import LEAF
from importance.shap.covered_trees import CoveredTrees, goes_left, test_of
from importance.shap.quadrature import Rule

N_LANES = 8  # rows to a vector
PASSED, FAILED, FAILED_ERE = 0, 1, 2


class Fixed(NamedTuple):
    """A feature that is always there, or never, and has no share: for interactions."""

    feature: int  # its number among those that the tree uses; -1: none
    is_present: bool


class Levels(NamedTuple):
    """What is known of the rows on the path at hand, level by level."""

    node: np.ndarray  # (n_levels,) int64
    side: np.ndarray  # (n_levels,) int64: of the child that is visited
    way: np.ndarray  # (n_levels, n_rows) float64: 0: left, 1: right, or FAILED_ERE
    product: np.ndarray  # (n_levels, n_points, n_rows) float64
    total: np.ndarray  # (n_levels, n_points, n_outputs, n_rows) float64
    factor: np.ndarray  # (n_levels, 2, n_points, 3) float64: by side of the child; PASSED and so on
    change: np.ndarray  # (n_levels, 2, n_points, 3) float64: times the weight of the point
    settled: np.ndarray  # (2, 3) float64: of a node with leaves, by way: to the total, and to phi
    value: np.ndarray  # (n_used, n_rows) float64: of the features used
    may_miss: np.ndarray  # (n_used,) bool: is any of these missing?
    passes: np.ndarray  # (n_used, n_rows) float64: 1 while all conditions on a feature are met
    phi: np.ndarray  # (n_used, n_outputs, n_rows) float64: of the tree

    @classmethod
    def create(cls, trees: CoveredTrees, rule: Rule, n_rows: int) -> "Levels":
        """For as many rows, or fewer."""
        n_levels, n_used = max(1, int(trees.depth.max())), int(np.diff(trees.used).max())
        n_points, n_outputs = rule.point.shape[1], trees.mean.shape[1]
        n_rows = -(-n_rows // N_LANES) * N_LANES
        factors = n_levels, 2, n_points, 3
        return cls(
            np.empty(n_levels, np.int64), np.empty(n_levels, np.int64),
            np.empty((n_levels, n_rows)),
            np.empty((n_levels, n_points, n_rows)),
            np.empty((n_levels, n_points, n_outputs, n_rows)), np.zeros(factors), np.zeros(factors),
            np.zeros((2, 3)), np.empty((n_used, n_rows)), np.zeros(n_used, bool),
            np.empty((n_used, n_rows)), np.empty((n_used, n_outputs, n_rows)),
        )  # fmt: skip


@on_lanes(N_LANES)
def _find_way(lanes, i, value, passes, threshold, way):
    passes = lanes.load(passes, i)
    side = lanes.where(lanes.load(value, i) > threshold, 1.0, passes * 0.0)
    lanes.store(way, lanes.where(passes > 0.5, side, passes * 0.0 + 2.0), i)


@on_lanes(N_LANES)
def _mark_side(lanes, i, way, side, passes):
    """Only the rows that go to the side still pass."""
    way = lanes.load(way, i)
    lanes.store(passes, lanes.where((way <= side) & (way > side - 1.0), 1.0, way * 0.0), i)


@on_lanes(N_LANES)
def _mark_both(lanes, i, way, passes):
    way = lanes.load(way, i)
    lanes.store(passes, lanes.where(way <= 1.5, 1.0, way * 0.0), i)


@on_lanes(N_LANES)
def _multiply(lanes, i, way, product, left, right, ere, found):
    """What the product becomes, by way."""
    way = lanes.load(way, i)
    factor = lanes.where(way > 1.5, ere, lanes.where(way > 0.5, right, left))
    lanes.store(found, lanes.load(product, i) * factor, i)


@on_lanes(N_LANES)
def _add_change(lanes, i, way, found, left, right, phi):
    way = lanes.load(way, i)
    change = lanes.where(way > 1.5, 0.0, lanes.where(way > 0.5, right, left))
    lanes.store(phi, lanes.load(phi, i) + lanes.load(found, i) * change, i)


@on_lanes(N_LANES)
def _add_total(lanes, i, found, total):
    lanes.store(total, lanes.load(total, i) + lanes.load(found, i), i)


@kernel
def explain_tree(tree, columns, rows, rule, fixed, levels):
    """Write phi of one tree, of some rows of `columns`, into levels.phi.

    Parameters
    ----------
    tree : CoveredTrees of one tree
    columns : (n_features, n_samples) float64
    rows : (n_rows,) int64: at least one, no more than `levels` are for
    rule : Rule
    fixed : Fixed
    levels : Levels
    """
    n_vectors = (rows.shape[0] + N_LANES - 1) // N_LANES
    n_rows = n_vectors * N_LANES
    for j in range(tree.features.shape[0]):
        levels.may_miss[j] = False
        for i in range(n_rows):
            at = rows[min(i, rows.shape[0] - 1)]  # the last one fills up the lanes
            levels.value[j, i] = columns[tree.features[j], at]
            levels.may_miss[j] |= np.isnan(levels.value[j, i])
            levels.passes[j, i] = 1.0
            if fixed.feature == j and not fixed.is_present:
                levels.passes[j, i] = 0.0
            for k in range(tree.mean.shape[1]):
                levels.phi[j, k, i] = 0.0
    if tree.children[0, 0] == LEAF:
        return
    for point in range(rule.point.shape[1]):
        for i in range(n_rows):
            levels.product[0, point, i] = 1.0
    for part in range(rule.point.shape[0]):
        _walk(tree, rule.point[part], rule.weight[part], fixed, levels, n_vectors)


@inline_kernel
def _walk(tree, points, weight, fixed, levels, n_vectors):
    """Add to levels.phi, depth first, what a part of the points says."""
    d = 0
    levels.node[0] = 0
    _enter(tree, points, weight, fixed, levels, d, n_vectors)
    while True:
        side = levels.side[d]
        if side == 2:
            _mark(levels, tree.feature[levels.node[d]], d, side, n_vectors)
            if d == 0:
                return
            d -= 1
            _leave(tree, levels, d, n_vectors)
            levels.side[d] += 1
            continue
        child = np.int64(tree.children[levels.node[d], side])
        if tree.children[child, 0] == LEAF:  # settled already
            levels.side[d] += 1
            continue
        _mark(levels, tree.feature[levels.node[d]], d, side, n_vectors)
        _send(levels, d, n_vectors)
        d += 1
        levels.node[d] = child
        _enter(tree, points, weight, fixed, levels, d, n_vectors)


@inline_kernel
def _enter(tree, points, weight, fixed, levels, d, n_vectors):
    """See which way the rows go at the node of a level, and settle those of its children that are
    leaves."""
    node, j = levels.node[d], np.int64(tree.feature[levels.node[d]])
    levels.side[d] = 0
    test = test_of(tree, levels.value[j], node)
    if test.first < 0 and (test.missing_left or not levels.may_miss[j]):
        value, passes, way = levels.value[j], levels.passes[j], levels.way[d]
        for i in range(n_vectors):
            _find_way(i, value, passes, test.threshold, way)
    else:
        for i in range(n_vectors * N_LANES):
            side = 0.0 if goes_left(test, i) else 1.0
            levels.way[d, i] = side if levels.passes[j, i] > 0.5 else 2.0
    for side in range(2):
        _fill_factors(tree, points, weight, fixed, levels, d, side)
    left, right = np.int64(tree.children[node, 0]), np.int64(tree.children[node, 1])
    n_leaves = (tree.children[left, 0] == LEAF) + (tree.children[right, 0] == LEAF)
    way = levels.way[d]
    for point in range(points.shape[0]):
        product = levels.product[d, point]
        for k in range(tree.mean.shape[1]):
            total, phi = levels.total[d, point, k], levels.phi[j, k]
            if n_leaves == 0:
                for i in range(n_vectors * N_LANES):
                    total[i] = 0.0
                continue
            _settle(tree, levels, d, point, k)
            to_left, to_right, ere = (
                levels.settled[0, 0],
                levels.settled[0, 1],
                levels.settled[0, 2],
            )
            if_left, if_right = levels.settled[1, 0], levels.settled[1, 1]
            for i in range(n_vectors):
                _multiply(i, way, product, to_left, to_right, ere, total)
                _add_change(i, way, product, if_left, if_right, phi)


@inline_kernel
def _fill_factors(tree, points, weight, fixed, levels, d, side):
    """What the way to a child does to the factor of the feature, the same for all rows."""
    node = levels.node[d]
    child = np.int64(tree.children[node, side])
    before, share = tree.before[node], tree.share[child]
    reached = before * share
    factor, change = levels.factor[d, side], levels.change[d, side]
    is_present = fixed.is_present and fixed.feature == tree.feature[node]
    for point in range(points.shape[0]):
        p, w = points[point], weight[point]
        per_old = 1.0 / (p + (1.0 - p) * before)
        failed = (1.0 - p) * reached
        passed = p + failed
        lacked = (1.0 - before) * per_old
        factor[point, PASSED] = passed * per_old
        factor[point, FAILED] = failed * per_old
        factor[point, FAILED_ERE] = share
        change[point, PASSED] = w * ((1.0 - reached) / passed - lacked)
        change[point, FAILED] = w * (-1.0 / (1.0 - p) - lacked)
        if is_present:
            factor[point, PASSED], factor[point, FAILED] = 1.0, 0.0
            change[point, PASSED], change[point, FAILED] = 0.0, 0.0


@inline_kernel
def _settle(tree, levels, d, point, k):
    """What the products of rows are multiplied by for the leaves of a node, by their way."""
    settled = levels.settled
    for way in range(3):
        settled[0, way] = 0.0
        settled[1, way] = 0.0
        for side in range(2):
            child = np.int64(tree.children[levels.node[d], side])
            if tree.children[child, 0] == LEAF:
                outcome = FAILED_ERE if way == FAILED_ERE else np.int64(way != side)
                found = levels.factor[d, side, point, outcome] * tree.mean[child, k]
                settled[0, way] += found
                if way != FAILED_ERE:
                    settled[1, way] += found * levels.change[d, side, point, outcome]


@inline_kernel
def _mark(levels, feature, d, side, n_vectors):
    """Mark the rows that still pass on one side of a split, or, behind both, those that did."""
    way, passes = levels.way[d], levels.passes[feature]
    for i in range(n_vectors):
        if side == 2:
            _mark_both(i, way, passes)
        else:
            _mark_side(i, way, np.float64(side), passes)


@inline_kernel
def _send(levels, d, n_vectors):
    """Send the products on to the child at hand."""
    side, way = levels.side[d], levels.way[d]
    for point in range(levels.product.shape[1]):
        factor = levels.factor[d, side, point]
        to_left, to_right = factor[np.int64(side != 0)], factor[np.int64(side != 1)]
        ere = factor[FAILED_ERE]
        product, sent = levels.product[d, point], levels.product[d + 1, point]
        for i in range(n_vectors):
            _multiply(i, way, product, to_left, to_right, ere, sent)


@inline_kernel
def _leave(tree, levels, d, n_vectors):
    """Let come up what was found at the child at hand."""
    side, way = levels.side[d], levels.way[d]
    for point in range(levels.product.shape[1]):
        change = levels.change[d, side, point]
        if_left, if_right = change[np.int64(side != 0)], change[np.int64(side != 1)]
        for k in range(tree.mean.shape[1]):
            found, total = levels.total[d + 1, point, k], levels.total[d, point, k]
            phi = levels.phi[tree.feature[levels.node[d]], k]
            for i in range(n_vectors):
                _add_total(i, found, total)
                _add_change(i, way, found, if_left, if_right, phi)
