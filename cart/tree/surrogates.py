"""Further splits of a node: surrogates, which stand in for its own split, and competitors.

Both are stored in arrays for all nodes of a tree, node after node, the best split first:

    node         0      1  2  3           a leaf has none
    start      [ 0      3  3  4  4 ]      start[i]:start[i + 1] are those of node i
    feature    [ 4 1 7 |  | 2 | ]

A split on categories has the threshold nan and a list: `list_start` says where the list begins.
`listed` has twice each of its categories, plus 1 if the category goes left, in ascending order.
"""

from typing import NamedTuple, Self

import numpy as np

from cart.files import require, storable
from cart.tree.nodes import runs_of

_DTYPES = {
    "start": np.int64, "feature": np.int32, "threshold": np.float64, "low_left": np.uint8,
    "agree": np.float64, "adj": np.float64, "n_sent": np.int32, "improvement": np.float64,
    "list_start": np.int64, "listed": np.uint32, "primary": np.float64,
}  # fmt: skip


class Surrogate(NamedTuple):
    """A split that stands in for the split of a node if the value of its feature is missing."""

    feature: int
    threshold: float  # nan: a split on categories
    low_left: bool  # whether values up to the threshold go left
    agree: float  # share of the weight that goes the same way as by the node's split
    adj: float  # agreement beyond that of the majority, as a share of what is possible
    n_sent: int  # training rows that lack the value of the node's split and go by this one
    left: tuple[int, ...]  # codes of the categories that go left
    right: tuple[int, ...]


class Competitor(NamedTuple):
    """The best split of a node on another feature than that of its own split."""

    feature: int
    threshold: float  # nan: a split on categories
    improvement: float  # decrease of impurity x weight, over the rows that have the feature
    left: tuple[int, ...]
    right: tuple[int, ...]


class Surrogates(NamedTuple):
    """Surrogate splits of a tree.

    `routes` says whether rows go by them; if not, they are only information. `primary` is the
    decrease of impurity x weight by the node's own split.

    Examples
    --------
    >>> from cart import DecisionTreeClassifier
    >>> X = [[1.0, 9.0], [2.0, 8.0], [3.0, 1.0], [4.0, 2.0], [5.0, 7.0]]
    >>> tree = DecisionTreeClassifier(max_depth=1, surrogates=1, random_state=0)
    >>> splits = tree.fit(X, [0, 0, 1, 1, 1]).tree_.surrogates
    >>> [(s.feature, s.agree, s.low_left) for s in splits.of(0)]
    [(0, 1.0, False)]
    """

    start: np.ndarray  # (n_nodes + 1,) int64
    feature: np.ndarray  # (n_splits,) int32
    threshold: np.ndarray  # (n_splits,) float64
    low_left: np.ndarray  # (n_splits,) uint8
    list_start: np.ndarray  # (n_splits + 1,) int64
    listed: np.ndarray  # uint32
    primary: np.ndarray  # (n_nodes,) float64
    agree: np.ndarray  # (n_splits,) float64
    adj: np.ndarray  # (n_splits,) float64
    n_sent: np.ndarray  # (n_splits,) int32
    routes: bool

    def of(self, node: int) -> list[Surrogate]:
        """The surrogates of a node, the best first."""
        return [
            Surrogate(
                int(self.feature[i]), float(self.threshold[i]), bool(self.low_left[i]),
                float(self.agree[i]), float(self.adj[i]), int(self.n_sent[i]),
                *_sides(self, i),
            )
            for i in range(self.start[node], self.start[node + 1])
        ]  # fmt: skip

    def select(self, kept: np.ndarray, is_split: np.ndarray) -> Self:
        """The splits of the nodes `kept`; none where `is_split` is False."""
        counts = np.where(is_split, np.diff(self.start)[kept], 0)
        taken, start = runs_of(self.start[kept], counts)
        primary = np.where(is_split, self.primary[kept], 0.0)
        return _take(self, taken)._replace(start=start, primary=primary)

    def on_columns(self, columns: np.ndarray, split_on: np.ndarray) -> Self:
        """Rename feature j to columns[j]; nodes split on the columns `split_on`.

        If several features are the same column, only the best split is kept, and none on the column
        of the node's own split: if that is missing, they all are.
        """
        node = np.repeat(np.arange(len(split_on)), np.diff(self.start))
        column = np.asarray(columns, np.int32)[self.feature]
        first = np.unique(np.column_stack((node, column)), axis=0, return_index=True)[1]
        taken = np.sort(first[column[first] != split_on[node[first]]])
        start = np.concatenate(([0], np.cumsum(np.bincount(node[taken], minlength=len(split_on)))))
        return _take(self._replace(feature=column), taken)._replace(start=start)

    def check(self, n_features: int, is_split: np.ndarray) -> None:
        """Raise DamagedModelError if rows cannot be sent by these splits."""
        _check(self, n_features, is_split, "surrogates")
        require(self.low_left.max(initial=0) <= 1, "low_left of surrogates is neither 0 nor 1")
        require(type(self.routes) is bool, "routes of surrogates is not a bool")


class Competitors(NamedTuple):
    """The best splits of other features in the nodes of a tree.

    `primary` is the improvement of the node's own split, to compare `improvement` with.

    Examples
    --------
    >>> from cart import DecisionTreeClassifier
    >>> X = [[1.0, 9.0], [2.0, 8.0], [3.0, 1.0], [4.0, 2.0], [5.0, 7.0]]
    >>> tree = DecisionTreeClassifier(max_depth=1, competitors=1, random_state=0)
    >>> tree.fit(X, [0, 0, 1, 1, 1]).tree_.competitors.of(0)[0].threshold
    2.5
    """

    start: np.ndarray  # (n_nodes + 1,) int64
    feature: np.ndarray  # (n_splits,) int32
    threshold: np.ndarray  # (n_splits,) float64
    list_start: np.ndarray  # (n_splits + 1,) int64
    listed: np.ndarray  # uint32
    primary: np.ndarray  # (n_nodes,) float64
    improvement: np.ndarray  # (n_splits,) float64

    def of(self, node: int) -> list[Competitor]:
        """The competitors of a node, the best first."""
        return [
            Competitor(
                int(self.feature[i]), float(self.threshold[i]), float(self.improvement[i]),
                *_sides(self, i),
            )
            for i in range(self.start[node], self.start[node + 1])
        ]  # fmt: skip

    @property
    def margin(self) -> np.ndarray:
        """(n_nodes,) float64: how much better a node's split is than the best one on another
        feature, as a share of its improvement.

        It is near 0 for a close choice, 1 without competitors, and nan in leaves. It is negative if
        the tree looks at some features only and a better one was not drawn. It may be so, too, with
        missing="learned" if values are missing, as then a node's own split is judged by all rows.
        """
        runner_up = np.zeros(len(self.primary))
        has_some = np.diff(self.start) > 0
        runner_up[has_some] = self.improvement[self.start[:-1][has_some]]
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.primary > 0.0, 1.0 - runner_up / self.primary, np.nan)

    select = Surrogates.select
    on_columns = Surrogates.on_columns

    def check(self, n_features: int, is_split: np.ndarray) -> None:
        """Raise DamagedModelError if these splits do not fit such a tree."""
        _check(self, n_features, is_split, "competitors")


def _sides(splits, i):
    """Codes of the categories that split number i sends left, and of those it sends right."""
    listed = splits.listed[splits.list_start[i] : splits.list_start[i + 1]]
    left = (listed & 1) == 1
    return tuple((listed[left] >> 1).tolist()), tuple((listed[~left] >> 1).tolist())


def _of_splits(splits):
    """The names of the arrays that have an item for each split."""
    return set(splits._fields) & set(_DTYPES) - {"start", "list_start", "listed", "primary"}


def _take(splits, taken):
    """Take the splits with these numbers; `start` and `primary` are left to the caller."""
    at, list_start = runs_of(splits.list_start[taken], np.diff(splits.list_start)[taken])
    arrays = {name: getattr(splits, name)[taken] for name in _of_splits(splits)}
    return splits._replace(**arrays, list_start=list_start, listed=splits.listed[at])


def _check(splits, n_features, is_split, what):
    for name in set(splits._fields) & set(_DTYPES):
        array, dtype = getattr(splits, name), _DTYPES[name]
        is_array = isinstance(array, np.ndarray) and array.ndim == 1 and array.dtype == dtype
        require(is_array, f"{name} of {what} is not an array of {np.dtype(dtype)}")
    n_splits = len(splits.feature)
    for name in _of_splits(splits):
        require(len(getattr(splits, name)) == n_splits, f"{name} of {what} has the wrong length")
    require(len(splits.primary) == len(is_split), f"{what} do not match the number of nodes")
    _check_starts(splits.start, len(is_split), n_splits, what)
    _check_starts(splits.list_start, n_splits, len(splits.listed), f"categories of {what}")
    require(not np.any(np.diff(splits.start)[~is_split]), f"a leaf has {what}")
    is_known = splits.feature.min(initial=0) >= 0 and splits.feature.max(initial=-1) < n_features
    require(bool(is_known), f"{what} are on a feature outside the {n_features} features")
    has_list = np.diff(splits.list_start) > 0
    is_same = np.array_equal(np.isnan(splits.threshold), has_list)
    require(is_same, f"{what} need either a threshold or categories")


def _check_starts(start, n, end, what):
    is_whole = len(start) == n + 1 and start[0] == 0 and start[-1] == end
    is_ascending = bool(is_whole and np.diff(start).min(initial=0) >= 0)
    require(is_ascending, f"the start offsets of {what} do not match")


# They are checked by the tree that has them.
storable("Surrogates", Surrogates, restore=lambda state: Surrogates(**state))
storable("Competitors", Competitors, restore=lambda state: Competitors(**state))
