"""Path-dependent SHAP values of trees by quadrature: many rows visit each node together, once.

For a leaf of value v let o_i be 1 if the row passes all conditions on feature i along its path,
else 0, and r_i the product of the shares of cover at these splits. By Owen's multilinear extension

    phi_j = v * integral over p in [0, 1] of (o_j - r_j) * product over i != j of f_i,
    f_i = p o_i + (1 - p) r_i,

which a Gauss-Legendre rule with enough points p integrates exactly. The product of all f_i is
passed down the tree; the sums, over the leaves below, of v times their products come up. A split on
j replaces f_j, and adds to phi_j the sum that comes up times the change of (o_j - r_j) / f_j:

    passed          o_j stays 1     f_j = p + (1 - p) r_j   the same for all such rows: computed
    failed          o_j becomes 0   f_j =     (1 - p) r_j   once per node, with points as lanes
    FAILED_EARLIER  o_j was 0       f_j *= share            nothing changes for j

For rows that passed, the divisor is at least p. Products only shrink, so an underflow loses only
what is below the smallest float. The arrays of each level have rows as the lanes of vectors:

    way      [ 0  1  1  2  0  ... ]     left, right or FAILED_EARLIER at the split of the level
    product  [ .  .  .  .  .  ... ]     one line per point
    came_up  [ .  .  .  .  .  ... ]     one line per side, output and point: from the child there

Leaves are not visited: what they send up is their parent's product times a factor.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import roots_legendre

from cart.jit.decorators import inline_kernel, kernel
from cart.jit.simd import on_lanes
from cart.tree.nodes import LEAF
from importance.core.used_features import goes_left
from importance.shap.covered_trees import CoveredTrees, test_of

N_LANES = 16  # rows per vector: two registers share what is the same for all rows
MOST_POINTS = 8  # that are carried down a tree at once
FAILED_EARLIER = 2  # the way of a row that left the path at an earlier split on the feature


class Rules(NamedTuple):
    """A Gauss-Legendre rule for every tree.

    Tree t has the parts first[t]:end[t] with n_points[t] points each; every part walks down the
    tree by itself. Lines are padded with points of weight 0.
    """

    first: np.ndarray  # (n_trees,) int64
    end: np.ndarray  # (n_trees,) int64
    n_points: np.ndarray  # (n_trees,) int64
    point: np.ndarray  # (n_parts, MOST_POINTS) float64: strictly between 0 and 1
    weight: np.ndarray  # (n_parts, MOST_POINTS) float64: sum to 1 over the parts of a rule
    per_rest: np.ndarray  # (n_parts, MOST_POINTS) float64: 1 / (1 - point)

    @classmethod
    def create(cls, n_factors: np.ndarray) -> "Rules":
        """Rules that are exact for products of fewer than n_factors[t] linear factors."""
        known, number = np.unique(n_factors, return_inverse=True)
        n_points, *parts = zip(*(_gauss_legendre(int(n)) for n in known), strict=True)
        n_parts = np.array([len(points) for points in parts[0]])
        end = np.cumsum(n_parts)[number]
        first = end - n_parts[number]
        return cls(first, end, np.array(n_points)[number], *map(np.concatenate, parts))


def _gauss_legendre(n_factors):
    """The rule that is exact for products of fewer than `n_factors` linear factors.

    Returns the number of points of a part, and `point`, `weight` and `per_rest` of `Rules`. A rule
    of n points is exact up to degree 2 n - 1.
    """
    n_points = max(1, (n_factors + 1) // 2)
    n_parts = -(-n_points // MOST_POINTS)
    n_points = -(-n_points // n_parts)
    place, weight = roots_legendre(n_points * n_parts)
    points, weights = np.full((n_parts, MOST_POINTS), 0.5), np.zeros((n_parts, MOST_POINTS))
    points[:, :n_points] = (1.0 + place.reshape(n_parts, -1)) / 2.0
    weights[:, :n_points] = weight.reshape(n_parts, -1) / 2.0
    return n_points, points, weights, 1.0 / (1.0 - points)


class Fixed(NamedTuple):
    """A feature that is always present, or always absent, and gets no share: for interactions."""

    feature: int  # its number among those that the tree uses; -1: none
    is_present: bool


class Levels(NamedTuple):
    """State of the rows on the current path, level by level."""

    node: np.ndarray  # (n_levels,) int64
    side: np.ndarray  # (n_levels + 2,) int64: of the child being visited
    # (n_levels + 2, n_rows) float64: 0 (left), 1 (right), or FAILED_EARLIER; the last two stand for
    # an earlier split that all rows passed, and one that all failed
    way: np.ndarray
    product: np.ndarray  # (n_levels, n_points, n_rows) float64
    came_up: np.ndarray  # (n_levels, 2, n_outputs, n_points, n_rows) float64: from the level's
    # node; axis 1: whether it is a left or a right child
    factor: np.ndarray  # (n_levels, 2, 3, MOST_POINTS) float64: by side of the child, and way
    change: np.ndarray  # (n_levels, 2, 2, MOST_POINTS) float64: times the weight of the point
    settled: np.ndarray  # (n_levels, n_outputs, 5, MOST_POINTS) float64: of leaves, per product:
    # what comes up, by way (3 lines), and what phi gets, left and right (2 lines)
    value: np.ndarray  # (n_used, n_rows) float64: of the features used
    may_miss: np.ndarray  # (n_used,) bool: whether any of these may be missing
    phi: np.ndarray  # (n_used, n_outputs, n_rows) float64: of the tree

    @classmethod
    def create(cls, trees: CoveredTrees, rules: Rules, n_rows: int) -> "Levels":
        """Buffers for up to `n_rows` rows, a multiple of N_LANES."""
        n_levels, n_used = max(1, int(trees.depth.max())), int(trees.n_used.max())
        n_points, n_outputs = int(rules.n_points.max()), trees.mean.shape[1]
        way, side = _room(n_levels + 2, n_rows), np.zeros(n_levels + 2, np.int64)
        way[-2:] = [[0.0], [FAILED_EARLIER]]
        return cls(
            np.empty(n_levels, np.int64), side, way, _room(n_levels, n_points, n_rows),
            _room(n_levels, 2, n_outputs, n_points, n_rows),
            _room(n_levels, 2, 3, MOST_POINTS), _room(n_levels, 2, 2, MOST_POINTS),
            _room(n_levels, n_outputs, 5, MOST_POINTS), _room(n_used, n_rows),
            np.zeros(n_used, bool), _room(n_used, n_outputs, n_rows),
        )  # fmt: skip


def _room(*shape):
    """An uninitialised array that starts at a cache line, so that no vector spans two lines."""
    size = int(np.prod(shape))
    room = np.empty(size + 7)
    first = -room.ctypes.data // 8 % 8
    return room[first : first + size].reshape(shape)


@on_lanes(N_LANES)
def _find_way(lanes, i, value, threshold, earlier, side, way):
    """Write the way of each row: by its value, if it followed the path at the earlier split."""
    earlier = lanes.load(earlier, i)
    passes = (earlier <= side) & (earlier > side - 1.0)  # lanes have no ==
    to = lanes.where(lanes.load(value, i) > threshold, 1.0, earlier * 0.0)
    lanes.store(way, lanes.where(passes, to, earlier * 0.0 + 2.0), i)


@on_lanes(MOST_POINTS)
def _fill_factors(lanes, point, weight, per_rest, before, left, right, factor, change):
    """Factors and changes of the split feature for both children; the same for all rows."""
    p, weight, per_rest = lanes.load(point), lanes.load(weight), lanes.load(per_rest)
    one = p * 0.0 + 1.0
    per_old = one / (p + (one - p) * before)
    lacked = (one - before) * per_old
    for side, share in enumerate((left, right)):
        reached = before * share
        failed = (one - p) * reached
        passed = p + failed
        lines = 3 * side, 2 * side
        lanes.store(factor, passed * per_old, lines[0] + side)
        lanes.store(factor, failed * per_old, lines[0] + 1 - side)
        lanes.store(factor, one * share, lines[0] + FAILED_EARLIER)
        lanes.store(change, weight * ((one - reached) / passed - lacked), lines[1] + side)
        lanes.store(change, weight * -1.0 * (per_rest + lacked), lines[1] + 1 - side)


@on_lanes(MOST_POINTS)
def _settle(lanes, factor, change, left, right, settled):
    """Effect of leaf children with these values (0 if a child is no leaf) per unit of product."""
    for way in range(3):
        of_left = lanes.load(factor, way) * left
        of_right = lanes.load(factor, 3 + way) * right
        lanes.store(settled, of_left + of_right, way)
        if way != FAILED_EARLIER:
            of_left = of_left * lanes.load(change, way)
            of_right = of_right * lanes.load(change, 2 + way)
            lanes.store(settled, of_left + of_right, 3 + way)


def _choose(lanes, way, table, point, first=0):
    """For every lane, the item of a table that belongs to its way."""
    left, right, failed = (
        lanes.same(table, point + (first + line) * MOST_POINTS) for line in range(3)
    )
    return lanes.where(way > 1.5, failed, lanes.where(way > 0.5, right, left))


def _choose_change(lanes, way, table, point, first=0):
    """Like `_choose`, with 0 for lanes that failed before."""
    left, right = (lanes.same(table, point + (first + line) * MOST_POINTS) for line in range(2))
    return lanes.where(way > 1.5, 0.0, lanes.where(way > 0.5, right, left))


def _at_points(lanes, i, n_points, n_vectors, step, *carried):
    """Run `step(point, place, *carried)` for every point; `place` is vector i in its line."""
    i, n_points, n_vectors = (lanes.number(number) for number in (i, n_points, n_vectors))

    def at_point(point, *carried):
        return step(point, point * n_vectors + i, *carried)

    return lanes.repeat(n_points, at_point, *carried)


@on_lanes(N_LANES)
def _send(lanes, i, n_points, n_vectors, way, factor, product, sent):
    """Write the product that is passed to a child."""
    way = lanes.load(way, i)

    def send(point, at):
        lanes.store(sent, lanes.load(product, at) * _choose(lanes, way, factor, point), at)
        return ()

    _at_points(lanes, i, n_points, n_vectors, send)


@on_lanes(N_LANES)
def _close_leaves(lanes, i, n_points, n_vectors, way, settled, product, total, phi):
    """Write what comes up from two leaf children, and add to phi."""
    way = lanes.load(way, i)

    def add(point, at, phi):
        mine = lanes.load(product, at)
        lanes.store(total, mine * _choose(lanes, way, settled, point), at)
        return (phi + mine * _choose_change(lanes, way, settled, point, 3),)

    (found,) = _at_points(lanes, i, n_points, n_vectors, add, lanes.load(phi, i))
    lanes.store(phi, found, i)


@on_lanes(N_LANES)
def _close_leaf(lanes, i, n_points, n_vectors, way, settled, product, change, came_up, total, phi):
    """Write what comes up from a leaf child and from the other child, and add to phi."""
    way = lanes.load(way, i)

    def add(point, at, phi):
        mine, found = lanes.load(product, at), lanes.load(came_up, at)
        lanes.store(total, mine * _choose(lanes, way, settled, point) + found, at)
        phi = phi + mine * _choose_change(lanes, way, settled, point, 3)
        return (phi + found * _choose_change(lanes, way, change, point),)

    (found,) = _at_points(lanes, i, n_points, n_vectors, add, lanes.load(phi, i))
    lanes.store(phi, found, i)


@on_lanes(N_LANES)
def _close_splits(lanes, i, n_points, n_vectors, way, change, from_left, from_right, total, phi):
    """Write what comes up from two children that are splits, and add to phi."""
    way = lanes.load(way, i)

    def add(point, at, phi):
        left, right = lanes.load(from_left, at), lanes.load(from_right, at)
        lanes.store(total, left + right, at)
        phi = phi + left * _choose_change(lanes, way, change, point)
        return (phi + right * _choose_change(lanes, way, change, point, 2),)

    (found,) = _at_points(lanes, i, n_points, n_vectors, add, lanes.load(phi, i))
    lanes.store(phi, found, i)


@kernel
def explain_tree(tree, rules, t, fixed, levels, n_vectors):
    """Write phi of one tree, for the rows whose values are in levels.value, into levels.phi.

    Parameters
    ----------
    tree : CoveredTrees of one tree
    rules : Rules
        The tree's rule has number t.
    t : int
    fixed : Fixed
    levels : Levels
    n_vectors : int
        Number of vectors; their lanes are the rows.
    """
    for j in range(tree.features.shape[0]):
        for k in range(tree.mean.shape[1]):
            for i in range(n_vectors * N_LANES):
                levels.phi[j, k, i] = 0.0
    if tree.children[0, 0] == LEAF:
        return
    n_points = rules.n_points[t]
    for point in range(n_points):
        for i in range(n_vectors * N_LANES):
            levels.product[0, point, i] = 1.0
    for part in range(rules.first[t], rules.end[t]):
        points = (rules.point[part], rules.weight[part], rules.per_rest[part])
        _walk(tree, points, fixed, levels, n_points, n_vectors)


@inline_kernel
def _walk(tree, points, fixed, levels, n_points, n_vectors):
    """Add to levels.phi, depth first, the contribution of one part of the points."""
    d = 0
    levels.node[0] = 0
    levels.side[0] = 0
    _enter(tree, points, fixed, levels, d, n_vectors)
    while True:
        node, side = levels.node[d], levels.side[d]
        while side < 2 and _is_leaf(tree, tree.children[node, side]):
            side += 1
        levels.side[d] = side
        if side < 2:
            way, factor = levels.way[d], levels.factor[d, side]
            product, sent = levels.product[d], levels.product[d + 1]
            n = product.shape[1] // N_LANES
            for i in range(n_vectors):
                _send(i, n_points, n, way, factor, product, sent)
            d += 1
            levels.node[d] = tree.children[node, side]
            levels.side[d] = 0
            _enter(tree, points, fixed, levels, d, n_vectors)
            continue
        _close(tree, levels, d, n_points, n_vectors)
        if d == 0:
            return
        d -= 1
        levels.side[d] += 1


@inline_kernel
def _is_leaf(tree, node):
    return tree.children[node, 0] == LEAF


@inline_kernel
def _enter(tree, points, fixed, levels, d, n_vectors):
    """Find which way the rows go at the node of a level, and its factors and changes."""
    node = levels.node[d]
    j = np.int64(tree.feature[node])
    earlier = np.int64(tree.earlier[node])
    if earlier < 0:
        is_absent = fixed.feature == j and not fixed.is_present
        earlier = levels.way.shape[0] - (1 if is_absent else 2)
    passed, side = levels.way[earlier], levels.side[earlier]
    way, value = levels.way[d], levels.value[j]
    test = test_of(tree, value, node)
    if test.first < 0 and (test.missing_left or not levels.may_miss[j]):
        for i in range(n_vectors):
            _find_way(i, value, test.threshold, passed, np.float64(side), way)
    else:
        for i in range(n_vectors * N_LANES):
            way[i] = (0.0 if goes_left(test, i) else 1.0) if passed[i] == side else 2.0
    left, right = np.int64(tree.children[node, 0]), np.int64(tree.children[node, 1])
    factor, change = levels.factor[d], levels.change[d]
    point, weight, per_rest = points
    before, to_left, to_right = tree.before[node], tree.share[left], tree.share[right]
    _fill_factors(point, weight, per_rest, before, to_left, to_right, factor, change)
    if fixed.is_present and fixed.feature == j:
        for to in range(2):
            factor[to, to], factor[to, 1 - to] = 1.0, 0.0
            change[to] = 0.0
    if _is_leaf(tree, left) or _is_leaf(tree, right):
        for k in range(tree.mean.shape[1]):
            of_left = tree.mean[left, k] if _is_leaf(tree, left) else 0.0
            of_right = tree.mean[right, k] if _is_leaf(tree, right) else 0.0
            _settle(factor, change, of_left, of_right, levels.settled[d, k])


@inline_kernel
def _close(tree, levels, d, n_points, n_vectors):
    """Combine what comes up from both children of the node of a level."""
    node = levels.node[d]
    j = np.int64(tree.feature[node])
    left, right = _is_leaf(tree, tree.children[node, 0]), _is_leaf(tree, tree.children[node, 1])
    to = levels.side[d - 1] if d > 0 else 0
    way, product, change = levels.way[d], levels.product[d], levels.change[d]
    n = product.shape[1] // N_LANES
    for k in range(tree.mean.shape[1]):
        settled, total, phi = levels.settled[d, k], levels.came_up[d, to, k], levels.phi[j, k]
        if left and right:
            for i in range(n_vectors):
                _close_leaves(i, n_points, n, way, settled, product, total, phi)
        elif left or right:
            side = 1 if left else 0
            found, of_side = levels.came_up[d + 1, side, k], change[side]
            for i in range(n_vectors):
                _close_leaf(i, n_points, n, way, settled, product, of_side, found, total, phi)
        else:
            one, other = levels.came_up[d + 1, 0, k], levels.came_up[d + 1, 1, k]
            for i in range(n_vectors):
                _close_splits(i, n_points, n, way, change, one, other, total, phi)
