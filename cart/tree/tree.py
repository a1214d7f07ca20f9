"""The fitted tree, as users and the rest of the library see it."""

from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, issparse

from cart.files import checksum_of, require, storable
from cart.tree.compact import Compact
from cart.tree.nodes import LEAF, Categories, Nodes, Steps, levels_of, nodes_of
from cart.tree.packed import pack
from cart.tree.partial_dependence import add_partial_dependence
from cart.tree.structure import check_compact, check_nodes
from cart.tree.surrogates import Competitors, Surrogates
from cart.tree.traversal import leaf_ids, paths_to, sum_of_values


class Tree:
    """A grown tree, with the attributes and methods of `sklearn.tree._tree.Tree`.

    Parameters
    ----------
    nodes : cart.tree.nodes.Nodes, or an object that can be expanded to them
    n_features : int
    categories : cart.tree.nodes.Categories, optional
    surrogates : cart.tree.surrogates.Surrogates, optional
    competitors : cart.tree.surrogates.Competitors, optional

    Raises
    ------
    cart.files.DamagedModelError
        If the nodes do not form a tree that can be walked.

    Attributes
    ----------
    children_left, children_right : ndarray of shape (node_count,), int64
        Number of the child; -1 in a leaf.
    feature : ndarray of shape (node_count,), int64
        Feature that the node splits on; -2 in a leaf.
    threshold : ndarray of shape (node_count,), float64
        Samples with x <= threshold go left; -2 in a leaf.
    impurity, weighted_n_node_samples : ndarray of shape (node_count,), float64
    n_node_samples : ndarray of shape (node_count,), int64
    missing_go_to_left : ndarray of shape (node_count,), uint8
    value : ndarray of shape (node_count, n_outputs, max_n_classes), float64
        Class shares, or the mean target.
    n_classes : ndarray of shape (n_outputs,), int64
        Number of classes of each output; 1 in regression.
    n_features, n_outputs, max_n_classes, node_count, capacity, n_leaves, max_depth : int
        `capacity` is the same as `node_count`.
    categories : cart.tree.nodes.Categories or None
        Which categories go left, if nodes split on subsets of categories.
    surrogates : cart.tree.surrogates.Surrogates or None
        The splits that stand in for that of a node, if they were asked for.
    competitors : cart.tree.surrogates.Competitors or None
        The best splits of other features, if they were asked for.

    Notes
    -----
    A large tree takes a few bytes per node until one of its arrays is asked for. The arrays are
    read-only: kernels rely on them. `nodes` has integers of 32 bits, as kernels take them.
    """

    children_left: NDArray[np.int64]
    children_right: NDArray[np.int64]
    feature: NDArray[np.int64]
    threshold: NDArray[np.float64]
    impurity: NDArray[np.float64]
    n_node_samples: NDArray[np.int64]
    weighted_n_node_samples: NDArray[np.float64]
    missing_go_to_left: NDArray[np.uint8]
    value: NDArray[np.float64]
    _n_classes: NDArray[np.int64] | None = None  # if outputs have different numbers of classes
    has_cuts = False  # whether it has cuts in place of thresholds, see `cart.table.thresholds`
    surrogates: Surrogates | None = None
    competitors: Competitors | None = None

    def __init__(
        self,
        nodes: Any,
        n_features: int,
        categories: Categories | None = None,
        surrogates: Surrogates | None = None,
        competitors: Competitors | None = None,
    ) -> None:
        self._hold(nodes)
        self.n_features = n_features
        self.categories = categories
        self.surrogates, self.competitors = surrogates, competitors
        self.check()

    @classmethod
    def grown(cls, nodes: Any, n_features: int, categories: Categories | None = None) -> Self:
        """Make a tree of nodes that our own kernels have grown, without a check."""
        tree = object.__new__(cls)
        tree._hold(nodes)
        tree.n_features = n_features
        tree.categories = categories
        return tree

    def check(self) -> None:
        """Check that the nodes form a tree that can be walked; see `cart.tree.structure`."""
        held = self._held
        if isinstance(held, Compact):
            check_compact(held.kept, self.n_features, self.categories)
        else:
            check_nodes(self.nodes, self.n_features, self.categories)
        for splits, cls in ((self.surrogates, Surrogates), (self.competitors, Competitors)):
            if splits is not None:
                require(type(splits) is cls, f"the tree's {cls.__name__} have the wrong type")
                splits.check(self.n_features, self.steps.children_right != LEAF)

    @property
    def alternatives(self) -> dict[str, Any]:
        """Surrogates and competitors by name, as far as there are any."""
        kept = {"surrogates": self.surrogates, "competitors": self.competitors}
        return {name: splits for name, splits in kept.items() if splits is not None}

    def _hold(self, nodes):
        """Set the nodes: cart.tree.nodes.Nodes, or an object that can be expanded to them."""
        is_plain = isinstance(nodes, Nodes)
        self._nodes = nodes if is_plain else None
        self._held = None if is_plain else nodes

    def __getattr__(self, name):
        # Node arrays are made, read-only, when first asked for, and kept.
        if name in Nodes._fields and "_held" in vars(self):
            array = getattr(self.expanded, name)
            array = array.astype(np.int64) if array.dtype == np.int32 else array.view()
            array.flags.writeable = False
            vars(self)[name] = array
            return array
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def packed_for(self, dtype):
        """The tree packed for rows of a dtype; it is packed when first asked for, and kept."""
        packs, dtype = vars(self).setdefault("_packs", {}), np.dtype(dtype)
        if dtype not in packs:
            packs[dtype] = pack([self], dtype)
        return packs[dtype]

    def _compact(self):
        return self._held if isinstance(self._held, Compact) else Compact.of(self.nodes)

    def _checksum_of(self, compact):
        kept = compact, self.n_features, self.categories, *self.alternatives.values()
        return checksum_of(kept)

    def __getstate__(self):
        compact = self._compact()
        cuts = {"has_cuts": True} if self.has_cuts else {}
        return {
            "n_features": self.n_features, "categories": self.categories, **cuts,
            **self.alternatives, "_held": compact, "_checksum": self._checksum_of(compact),
        }  # fmt: skip

    def __setstate__(self, state):
        state = dict(state)
        expected = state.pop("_checksum", None)  # older versions had none
        vars(self).update({"_nodes": None, **state})
        require(isinstance(self._held, Compact), "a tree has no nodes")
        if expected is not None:
            require(
                self._checksum_of(self._held) == expected, "the checksum of a tree does not match"
            )
        self.check()

    def __deepcopy__(self, memo):
        return self  # it never changes, and its arrays are read-only

    @property
    def nodes(self) -> Nodes:
        """The node arrays as kernels take them; a compact tree stays compact."""
        held = self._held  # which another thread may expand at any time
        return self._nodes if held is None else held.expand()

    @property
    def expanded(self) -> Nodes:
        """The node arrays as in `nodes`; the tree stays expanded from now on."""
        held = self._held  # which another thread may expand at any time
        if held is not None:
            self._hold(held.expand())
        return self._nodes

    @property
    def steps(self) -> Steps:
        """The parts of the tree that are needed to pack it; a compact tree stays compact."""
        held = self._held
        return held.steps() if isinstance(held, Compact) else Steps.of(self.nodes)

    @property
    def splits(self) -> tuple[np.ndarray, np.ndarray]:
        """Features and thresholds of the nodes (leaves have a negative feature) or of the splits
        alone; thresholds may be written to."""
        held = self._held
        return (self.nodes if held is None else held).splits

    @property
    def nbytes(self) -> int:
        """Bytes of the nodes, as they are held."""
        held = self._held
        return sum(array.nbytes for array in self.nodes) if held is None else held.nbytes

    @property
    def node_count(self) -> int:
        held = self._held
        return len(self._nodes.children_left) if held is None else held.n_nodes

    @property
    def capacity(self) -> int:
        return self.node_count

    @property
    def _shape(self):
        held = self._held
        return self._nodes.value.shape[1:] if held is None else held.shape

    @property
    def is_subset(self) -> NDArray[np.bool_]:
        """(node_count,) bool: whether the node splits on a subset of categories."""
        return np.isnan(self.threshold)

    @property
    def n_leaves(self) -> int:
        return int(np.count_nonzero(self.children_left == LEAF))

    @property
    def n_outputs(self) -> int:
        return self._shape[0]

    @property
    def max_n_classes(self) -> int:
        return self._shape[1]

    @property
    def n_classes(self) -> NDArray[np.int64]:
        if self._n_classes is not None:
            return self._n_classes
        return np.full(self.n_outputs, self.max_n_classes)

    @cached_property
    def max_depth(self) -> int:
        return int(self.compute_node_depths().max()) - 1

    def compute_node_depths(self) -> NDArray[np.int64]:
        """Depth of every node; the root has depth 1, as in scikit-learn.

        Returns
        -------
        ndarray of shape (node_count,), int64
        """
        depth = np.empty(self.node_count, np.int64)
        for number, level in enumerate(levels_of(self.children_left, self.children_right), 1):
            depth[level] = number
        return depth

    def compute_feature_importances(self, normalize: bool = True) -> NDArray[np.float64]:
        """Mean decrease in impurity of every feature.

        For each split on the feature, weight x impurity of the node minus that of its children;
        summed, and divided by the weight of the root (Breiman et al. 1984).

        Parameters
        ----------
        normalize : bool, default=True
            Whether to divide by the sum, so that the importances sum to 1 (or are all 0).

        Returns
        -------
        ndarray of shape (n_features,), float64
        """
        return impurity_decrease(self, normalize)

    def apply(self, X: Any) -> NDArray[np.int64]:
        """Number of the leaf that each row of X reaches.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features), float32 or float64

        Returns
        -------
        ndarray of shape (n_samples,), int64
        """
        X = _as_rows(X)
        return leaf_ids(self.packed_for(X.dtype), 0, X)

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Value of the leaf that each row of X reaches.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features), float32 or float64

        Returns
        -------
        ndarray of shape (n_samples, n_outputs, max_n_classes), float64
            Without the second axis if there is one output.
        """
        values = self.predict_all(X)
        return values[:, 0] if self.n_outputs == 1 else values

    def predict_all(self, X: Any) -> NDArray[np.float64]:
        """As `predict`, but always with an axis of outputs."""
        X = _as_rows(X)
        return self.shaped(sum_of_values(self.packed_for(X.dtype), X))

    def shaped(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Reshape values of rows to (n_rows, n_outputs, max_n_classes)."""
        return values.reshape(-1, *self._shape)

    def decision_path(self, X: Any) -> csr_matrix:
        """Which nodes each row of X passes.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features), float32 or float64

        Returns
        -------
        scipy.sparse.csr_matrix of shape (n_samples, node_count), int64
        """
        return paths_to(self.apply(X)[np.newaxis], [self])[0]

    def compute_partial_dependence(
        self, X: Any, target_features: Any, out: NDArray[np.float64]
    ) -> None:
        """Add the partial dependence on some features to `out`.

        At a split on another feature, points go both ways, each weighted by its share of training
        rows. The tree must be one of regression on one output.

        Parameters
        ----------
        X : ndarray of shape (n_points, n_target_features), float32 or float64
            Values of the target features.
        target_features : ndarray of shape (n_target_features,), intp
            Their numbers.
        out : ndarray of shape (n_points,), float64
            Is added to.
        """
        add_partial_dependence(self, X, target_features, out)


def _as_rows(X):
    X = X.tocsr() if issparse(X) else np.ascontiguousarray(X)
    if X.dtype not in (np.float32, np.float64):
        raise ValueError(f"X.dtype should be float32 or float64, but is {X.dtype}.")
    return X


def copied_nodes(tree: Any) -> Nodes:
    """Copies of the node arrays of a tree, with the dtypes of Nodes.

    Parameters
    ----------
    tree : any object with scikit-learn's node arrays

    Returns
    -------
    Nodes
    """
    kinds = zip(Nodes._fields, Nodes.create(0, 1, 1), strict=True)
    return Nodes(*(np.array(getattr(tree, name), like.dtype) for name, like in kinds))


def parents_of(tree: Any) -> NDArray[np.int64]:
    """Number of each node's parent; -1 for the root.

    Parameters
    ----------
    tree : Tree, or any object with scikit-learn's node arrays

    Returns
    -------
    ndarray of shape (node_count,), int64
    """
    parent = np.full(tree.node_count, -1)
    split = np.flatnonzero(tree.children_left != LEAF)
    parent[tree.children_left[split]] = split
    parent[tree.children_right[split]] = split
    return parent


def impurity_decrease(tree: Any, normalize: bool) -> NDArray[np.float64]:
    """Weighted impurity decrease of the splits on each feature, see `Tree`.

    Parameters
    ----------
    tree : Tree, or any object with scikit-learn's node arrays
    normalize : bool

    Returns
    -------
    ndarray of shape (n_features,), float64
    """
    nodes = nodes_of(tree)
    split = np.flatnonzero(nodes.children_left != LEAF)
    importances = np.bincount(nodes.feature[split], decreases(nodes, split), tree.n_features)
    importances = importances / nodes.weighted_n_node_samples[0]
    total = importances.sum()
    return importances / total if normalize and total > 0.0 else importances


def decreases(nodes: Any, split: Any) -> Any:
    """The decrease of impurity x weight by one or several splits."""
    left, right = nodes.children_left[split], nodes.children_right[split]
    with np.errstate(all="ignore"):  # nan for huge targets, as in scikit-learn
        burden = nodes.weighted_n_node_samples * nodes.impurity
        return burden[split] - burden[left] - burden[right]


def _state_of(tree):
    return {
        "nodes": tree._compact(), "n_features": tree.n_features, "categories": tree.categories,
        **tree.alternatives,
    }  # fmt: skip


storable("Compact", Compact, lambda compact: compact.kept, Compact)
storable("Categories", Categories)
storable("Tree", Tree, _state_of, lambda state: Tree(**state))  # which checks it
