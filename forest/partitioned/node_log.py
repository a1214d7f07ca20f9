"""Record the nodes of all trees, level by level, and make trees of them in the end.

The rows, weight and sums of a node are in its cell (see `forest.partitioned.histograms`). The
subtree of a small node was grown elsewhere, as a tree of its own, and is inserted in its place.
"""

from dataclasses import dataclass
from operator import itemgetter

import numpy as np

from cart.growth.plan import Plan
from cart.splitting.category_subsets import CategoricalTable
from cart.splitting.criterion import EPSILON
from cart.table.table import Table
from cart.table.thresholds import write_thresholds
from cart.tree.compact import compress_if_large
from cart.tree.nodes import LEAF, UNDEFINED, Categories, Nodes
from cart.tree.pruning import prune
from cart.tree.tree import Tree
from forest.partitioned.choice import Choices
from forest.partitioned.histograms import ROW, WEIGHT

_RIGHT, _LEFT = 1, 2  # sides of categories, see `forest.partitioned.choice.Choices`


@dataclass
class Level:
    """The nodes of all trees at one depth, one item each."""

    depth: int
    tree: np.ndarray  # (n,) int64
    key: np.ndarray  # (n,) uint64: key of the node's draws
    cells: np.ndarray  # (n, n_numbers) int64
    impurity: np.ndarray  # (n,) float64
    is_class: bool

    def __post_init__(self):
        """Create the arrays for decisions about the nodes."""
        n = len(self.key)
        self.feature = np.full(n, UNDEFINED, np.int32)  # UNDEFINED in leaves
        self.cut = np.zeros(n, np.uint64)  # see `cart.table.thresholds`
        self.missing_left = np.zeros(n, np.uint8)
        self.below: dict = {}  # item of a small node -> Tree
        self.subset: dict = {}  # item of a node split on categories -> see `Choices`
        self.listed_left = np.zeros(n, np.uint8)

    @property
    def n_rows(self):
        """Rows of each node, (n,) int64."""
        words = self.cells if self.is_class else self.cells[:, :1]
        return (words // ROW).sum(axis=1)

    @property
    def weight(self):
        """Weight of each node, (n,) float64."""
        words = self.cells if self.is_class else self.cells[:, :1]
        return (words & WEIGHT).sum(axis=1).astype(np.float64)

    def may_split(self, limits):
        """Whether limits and impurity permit a split; as `cart.growth.frontier.may_split`."""
        n = self.n_rows
        return ~(
            (self.depth >= limits.max_depth)
            | (n < limits.min_samples_split)
            | (n < 2 * limits.min_samples_leaf)
            | (self.weight < 2 * limits.min_weight_leaf)
            | (self.impurity <= EPSILON)
        )

    def split(self, items: np.ndarray, choices: Choices, keys: np.ndarray) -> "Level":
        """Split nodes.

        Parameters
        ----------
        items : ndarray of shape (n_cut,), int
            Ascending.
        choices : Choices
            The cuts that were found for them.
        keys : ndarray of shape (n_cut, 2), uint64
            Keys of the children.

        Returns
        -------
        Level
            The children: left, right, left, right, ..., in the order of their parents.
        """
        n = len(items)
        cells = np.empty((n, 2, self.cells.shape[1]), np.int64)
        cells[:, 0] = choices.left
        cells[:, 1] = self.cells[items] - choices.left
        children = Level(
            self.depth + 1, np.repeat(self.tree[items], 2), keys.ravel(),
            cells.reshape(2 * n, -1), choices.impurity.ravel(), self.is_class,
        )  # fmt: skip
        self.feature[items] = choices.feature
        left_code, right_code = (c.astype(np.uint64) for c in choices[2:4])
        self.cut[items] = left_code << np.uint64(32) | right_code
        n_left, n_right = children.n_rows.reshape(n, 2).T
        way = choices.missing_way
        self.missing_left[items] = np.where(way < 0, n_left > n_right, way == 1)
        self.listed_left[items] = choices.listed_left
        has_subset = choices.subset.any(axis=1)
        self.subset.update(zip(items[has_subset].tolist(), choices.subset[has_subset], strict=True))
        return children

    def subsets_of(self, items):
        """The subsets of categories that go left at some nodes, and each node's subset (or -1)."""
        known = [self.subset.get(item) for item in items.tolist()]
        given = [subset for subset in known if subset is not None]
        goes_left = np.array(given or np.empty((0, 0))) == _LEFT
        number = np.full(len(items), -1, np.int32)
        number[[subset is not None for subset in known]] = np.arange(len(given))
        return goes_left.astype(np.uint8), number


def make_trees(
    levels: list[Level], plan: Plan, table: Table | CategoricalTable, step: float | None
) -> list[Tree]:
    """Make trees of their levels.

    Parameters
    ----------
    levels : list of Level
    plan : cart.growth.plan.Plan
    table : Table or CategoricalTable
        Complete; without codes.
    step : float or None
        The length of a step of targets; None for classes.

    Returns
    -------
    list of Tree
    """
    sizes = _subtree_sizes(levels)
    ends = np.cumsum(sizes[0])
    first = ends - sizes[0]
    nodes = Nodes.create(int(ends[-1]), plan.n_outputs, plan.n_values)  # tree after tree
    place, places = first, []
    for level, below in zip(levels, sizes[1:], strict=True):
        places.append(place)
        left = place[level.feature >= 0] + 1
        children = np.column_stack((left, left + below[0::2]))
        _write_level(nodes, level, place, children, first[level.tree], table, step)
        place = children.ravel()
    has_categories = isinstance(table, CategoricalTable)
    joined = _join_categories(levels, places, ends[-1]) if has_categories else None
    trees = []
    for begin, end in zip(first, ends, strict=True):
        mine, categories = Nodes(*(array[begin:end] for array in nodes)), None
        if joined is not None:
            categories = joined.select(np.arange(begin, end), np.isnan(mine.threshold))
        tree = Tree.grown(compress_if_large(mine), len(table.columns), categories)
        trees.append(prune(tree, plan.ccp_alpha) if plan.ccp_alpha > 0.0 else tree)
    return trees


def _subtree_sizes(levels):
    """Number of nodes in the subtree of each node, level by level; no number behind the last."""
    sizes = [np.empty(0, np.int64)]
    for level in reversed(levels):
        size = np.ones(len(level.key), np.int64)
        for item, tree in level.below.items():
            size[item] = tree.node_count
        size[level.feature >= 0] += sizes[-1][0::2] + sizes[-1][1::2]
        sizes.append(size)
    return sizes[::-1]


def _write_level(nodes, level, place, children, first, table, step):
    """Write a level's nodes, given the places of these, of children and of each tree's root."""
    weight = level.weight
    threshold = level.cut.view(np.float64).copy()
    write_thresholds(level.feature, threshold, table)
    is_split = level.feature >= 0
    threshold[~is_split] = UNDEFINED
    threshold[list(level.subset)] = np.nan
    sums = level.cells & WEIGHT if level.is_class else level.cells[:, 1:2] * step
    sides = nodes.children_left, nodes.children_right
    for side, of_side in zip(sides, children.T, strict=True):
        side[place] = LEAF
        side[place[is_split]] = of_side - first[is_split]
    nodes.feature[place] = level.feature
    nodes.threshold[place] = threshold
    nodes.impurity[place] = level.impurity
    nodes.n_node_samples[place] = level.n_rows
    nodes.weighted_n_node_samples[place] = weight
    nodes.missing_go_to_left[place] = level.missing_left
    nodes.value[place, 0] = sums / weight[:, None]
    for item, tree in level.below.items():  # insert the subtrees of small nodes
        span = slice(place[item], place[item] + tree.node_count)
        for mine, theirs in zip(nodes, tree.nodes, strict=True):
            mine[span] = theirs
        for side in sides:
            side[span][side[span] != LEAF] += place[item] - first[item]


def _join_categories(levels, places, n_nodes):
    """The Categories of the nodes of all trees."""
    sizes, flags = np.zeros(n_nodes, np.int64), np.zeros(n_nodes, np.uint8)
    lists = [(-1, np.empty(0, np.uint32))]  # pairs of a place and its listed categories
    for level, place in zip(levels, places, strict=True):
        for item, subset in level.subset.items():
            at, smaller = place[item], _LEFT if level.listed_left[item] else _RIGHT
            listed = np.flatnonzero(subset == smaller).astype(np.uint32)
            sizes[at], flags[at] = len(listed), level.listed_left[item]
            lists.append((at, listed))
        for item, below in level.below.items():
            span = slice(place[item], place[item] + below.node_count)
            sizes[span] = np.diff(below.categories.start)
            flags[span] = below.categories.listed_left
            lists.append((place[item], below.categories.listed))
    lists.sort(key=itemgetter(0))
    start = np.concatenate(([0], np.cumsum(sizes)))
    return Categories(start, np.concatenate([listed for _, listed in lists]), flags)
