"""Record the nodes of all trees, level by level, and make trees of them in the end.

The rows, weight and sums of a node are in its cell (see `forest.partitioned.histograms`). The
subtree of a small node was grown elsewhere, as a tree of its own, and is inserted in its place.
"""

from dataclasses import dataclass

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
from forest.partitioned.choice import CUT, Choices
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
        self.child = np.full(n, -1)  # item of the left child in the next level; -1 without split
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
        """Split the nodes for which a cut was found.

        Parameters
        ----------
        items : ndarray of shape (n_chosen,), int
        choices : Choices
            Results of the search for these items.
        keys : ndarray of shape (n_cut, 2), uint64
            Keys of the children.

        Returns
        -------
        Level
            The children: left, right, left, right, ...
        """
        is_cut = choices.found == CUT
        items, choices = items[is_cut], Choices(*(array[is_cut] for array in choices))
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
        self.child[items] = 2 * np.arange(n)
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
    numbers = [np.zeros(len(levels[0].key), np.int64)]
    for level, below in zip(levels[:-1], sizes[1:], strict=True):
        split = np.flatnonzero(level.child >= 0)
        number = np.empty(2 * len(split), np.int64)
        left = level.child[split]
        number[left] = numbers[-1][split] + 1
        number[left + 1] = number[left] + below[left]
        numbers.append(number)
    trees = [Nodes.create(int(n), plan.n_outputs, plan.n_values) for n in sizes[0]]
    for i, (level, number) in enumerate(zip(levels, numbers, strict=True)):
        following = numbers[i + 1] if i + 1 < len(levels) else None
        _write_level(trees, level, number, following, table, step)
    subsets = [None] * len(trees)
    if isinstance(table, CategoricalTable):
        subsets = _join_categories(levels, numbers, trees)
    grown = [
        Tree.grown(compress_if_large(nodes), len(table.columns), categories)
        for nodes, categories in zip(trees, subsets, strict=True)
    ]
    return [prune(tree, plan.ccp_alpha) if plan.ccp_alpha > 0.0 else tree for tree in grown]


def _subtree_sizes(levels):
    """Number of nodes in the subtree of each node, level by level."""
    sizes: list[np.ndarray] = []
    for level in reversed(levels):
        size = np.ones(len(level.key), np.int64)
        for item, tree in level.below.items():
            size[item] = tree.node_count
        split = np.flatnonzero(level.child >= 0)
        if len(split):
            left = level.child[split]
            size[split] += sizes[-1][left] + sizes[-1][left + 1]
        sizes.append(size)
    return sizes[::-1]


def _write_level(trees, level, number, following, table, step):
    weight, n_rows = level.weight, level.n_rows
    threshold = level.cut.view(np.float64).copy()
    write_thresholds(level.feature, threshold, table)
    threshold[level.feature < 0] = UNDEFINED
    threshold[list(level.subset)] = np.nan
    if level.is_class:
        value = (level.cells & WEIGHT) / weight[:, None]
    else:
        value = level.cells[:, 1:2] * step / weight[:, None]
    order = np.argsort(level.tree, kind="stable")
    bounds = np.searchsorted(level.tree[order], np.arange(len(trees) + 1))
    for t, nodes in enumerate(trees):
        mine = order[bounds[t] : bounds[t + 1]]
        at = number[mine]
        is_split = level.child[mine] >= 0
        left = level.child[mine[is_split]]
        for array, child in ((nodes.children_left, left), (nodes.children_right, left + 1)):
            array[at] = LEAF
            if len(child):
                array[at[is_split]] = following[child]
        nodes.feature[at] = level.feature[mine]
        nodes.threshold[at] = threshold[mine]
        nodes.impurity[at] = level.impurity[mine]
        nodes.n_node_samples[at] = n_rows[mine]
        nodes.weighted_n_node_samples[at] = weight[mine]
        nodes.missing_go_to_left[at] = level.missing_left[mine]
        nodes.value[at, 0] = value[mine]
    for item, tree in level.below.items():  # insert the subtrees of small nodes
        nodes, first = trees[level.tree[item]], int(number[item])
        span = slice(first, first + tree.node_count)
        for mine, theirs in zip(nodes, tree.nodes, strict=True):
            mine[span] = theirs
        for children in (nodes.children_left[span], nodes.children_right[span]):
            children[children != LEAF] += first


def _join_categories(levels, numbers, trees):
    """The Categories of every tree."""
    sizes = [np.zeros(len(nodes.feature), np.int64) for nodes in trees]
    flags = [np.zeros(len(nodes.feature), np.uint8) for nodes in trees]
    lists: list[list] = [[] for _ in trees]  # pairs of a node number and its listed categories
    for level, number in zip(levels, numbers, strict=True):
        for item, subset in level.subset.items():
            t, at = level.tree[item], number[item]
            smaller = _LEFT if level.listed_left[item] else _RIGHT
            listed = np.flatnonzero(subset == smaller).astype(np.uint32)
            sizes[t][at], flags[t][at] = len(listed), level.listed_left[item]
            lists[t].append((at, listed))
        for item, below in level.below.items():
            t, at = level.tree[item], number[item]
            span = slice(at, at + below.node_count)
            sizes[t][span] = np.diff(below.categories.start)
            flags[t][span] = below.categories.listed_left
            lists[t].append((at, below.categories.listed))
    joined = []
    for size, flag, found in zip(sizes, flags, lists, strict=True):
        found.sort(key=lambda pair: pair[0])
        listed = np.concatenate([np.empty(0, np.uint32), *(items for _, items in found)])
        joined.append(Categories(np.concatenate(([0], np.cumsum(size))), listed, flag))
    return joined
