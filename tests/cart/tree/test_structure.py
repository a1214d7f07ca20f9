"""Trees from arrays: what cannot be walked is refused before a kernel sees it."""

import pickle
import tracemalloc
from functools import cache

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier as PeerChain
from sklearn.tree import DecisionTreeRegressor as PeerTree

from cart import DecisionTreeClassifier, DecisionTreeRegressor
from cart.files import DamagedModelError
from cart.interop import bridge
from cart.tree.compact import Compact
from cart.tree.nodes import Categories, Nodes
from cart.tree.packed import pack
from cart.tree.tree import Tree

X = np.arange(12.0).reshape(6, 2)


@cache
def grown():
    return DecisionTreeRegressor().fit(X, X[:, 0]).tree_


def changed(name, place, value):
    nodes = Nodes(*(array.copy() for array in grown().nodes))
    getattr(nodes, name)[place] = value
    return nodes


@pytest.mark.parametrize(
    ("name", "place", "value", "words"),
    [
        ("children_left", 0, 99, "out of range"),
        ("children_left", 0, -7, "out of range"),
        ("children_left", 0, 0, "out of range, or is the root"),
        ("children_left", 0, -1, "only one child"),
        ("children_right", 0, 1, "two parents"),
        ("children_left", 0, 2, "two parents"),
        ("feature", 0, 2, "outside the 2 features"),
        ("feature", 0, -2, "outside the 2 features"),
        ("threshold", 0, np.nan, "nan"),
    ],
)
def test_nodes_that_form_no_tree_are_refused(name, place, value, words):
    with pytest.raises(DamagedModelError, match=words):
        Tree(changed(name, place, value), 2)


@pytest.mark.parametrize("name", Nodes._fields)
def test_arrays_of_another_type_are_refused(name):
    array = getattr(grown().nodes, name)
    for changed in (array.astype(np.float16), array[:, np.newaxis], array.view(np.recarray)):
        with pytest.raises(DamagedModelError, match=f"{name} is not an array"):
            Tree(grown().nodes._replace(**{name: changed}), 2)


def test_trees_without_nodes_or_values_are_refused():
    with pytest.raises(DamagedModelError, match="a tree has 0 nodes"):
        Tree(Nodes.create(0, 1, 1), 2)
    for shape in ((0, 1), (1, 0)):
        with pytest.raises(DamagedModelError, match="a value has shape"):
            Tree(grown().nodes._replace(value=np.empty((grown().node_count, *shape))), 2)


def test_nodes_below_themselves_are_refused():
    """All but the root have one parent, but two are their own grandparents."""
    left = np.array([-1, 2, 1, -1, -1], np.int32)
    right = np.array([-1, 3, 4, -1, -1], np.int32)
    n = len(left)
    nodes = Nodes(
        left, right, np.zeros(n, np.int32), np.zeros(n), np.zeros(n), np.ones(n, np.int32),
        np.ones(n), np.zeros(n, np.uint8), np.ones((n, 1, 1)),
    )  # fmt: skip
    with pytest.raises(DamagedModelError, match="form a cycle"):
        Tree(nodes, 1)


def test_children_may_stand_before_their_parents():
    order = np.array([0, *range(grown().node_count - 1, 0, -1)])
    place = np.argsort(order).astype(np.int32)
    nodes = Nodes(*(array[order] for array in grown().nodes))
    for children in (nodes.children_left, nodes.children_right):
        children[children >= 0] = place[children[children >= 0]]
    tree = Tree(nodes, 2)
    rows = X.astype(np.float32)
    np.testing.assert_array_equal(tree.predict(rows), grown().predict(rows))
    again = pickle.loads(pickle.dumps(tree))
    np.testing.assert_array_equal(again.predict(rows), grown().predict(rows))


@pytest.mark.parametrize(
    "change",
    [
        lambda c: c._replace(start=c.start + 1),
        lambda c: c._replace(start=c.start[:-1]),
        lambda c: c._replace(start=c.start + 9 * ((c.start > 0) & (c.start < c.start[-1]))),
        lambda c: c._replace(listed=c.listed[:-1]),
        lambda c: c._replace(listed=c.listed.astype(np.int64)),
        lambda c: c._replace(listed_left=c.listed_left + 1),
        lambda c: c._replace(listed_left=c.listed_left.astype(float)),
        lambda c: c._replace(start=c.start.tolist()),
        lambda c: c._replace(listed=c.listed[:, np.newaxis]),
        lambda c: c._replace(listed_left=c.listed_left - np.int8(1)),
        lambda c: tuple(c),
    ],
)
def test_lists_of_categories_are_checked(change):
    codes = np.tile(np.arange(6.0), 5)[:, np.newaxis]
    tree = DecisionTreeClassifier(categorical_features=[0]).fit(codes, codes[:, 0] % 3).tree_
    assert isinstance(tree.categories, Categories)
    assert (tree.feature >= 0).sum() == 2
    for nodes in (tree.nodes, Compact.of(tree.nodes)):
        Tree(nodes, 1, tree.categories)
        with pytest.raises(DamagedModelError):
            Tree(nodes, 1, change(tree.categories))
    with pytest.raises(DamagedModelError, match="nan"):
        Tree(tree.nodes, 1)


@pytest.mark.parametrize("number", [-1, 2**31, 2.0, True, None])
def test_numbers_of_nodes_and_features_are_checked(number):
    with pytest.raises(DamagedModelError, match=f"a tree has {number!r} features"):
        Tree(grown().nodes, number)
    kept = Compact.of(grown().nodes).kept
    with pytest.raises(DamagedModelError, match=f"a tree has {number!r} nodes"):
        Tree(Compact(kept | {"n_nodes": number}), 2)


def test_a_split_at_a_threshold_lists_no_categories():
    table = np.column_stack((np.repeat(np.arange(8.0), 8), np.tile(np.arange(8.0), 8)))
    y = (table[:, 0] % 3 == 1) + 2 * (table[:, 1] > 3)
    tree = DecisionTreeClassifier(categorical_features=[0]).fit(table, y).tree_
    is_split = tree.feature >= 0
    assert {*tree.feature[is_split]} == {0, 1}
    at = np.flatnonzero(tree.feature == 1)[0]
    start, listed, listed_left = tree.categories
    start = start + (np.arange(len(start)) > at)
    more = Categories(start, np.insert(listed, start[at], np.uint32(1)), listed_left)
    for nodes in (tree.nodes, Compact.of(tree.nodes)):
        Tree(nodes, 2, tree.categories)
        with pytest.raises(DamagedModelError, match="at a threshold lists categories"):
            Tree(nodes, 2, more)


@pytest.mark.parametrize(
    "shape", [(0, 3), (1, 0), (-1, -3), (1, 2**31), (1, 3, 1), [1, 3], (1, 3.0)]
)
def test_values_of_no_shape_are_refused(shape):
    tree = DecisionTreeClassifier().fit(X, [0, 1, 2, 0, 1, 2]).tree_
    kept = Compact.of(tree.nodes).kept
    Tree(Compact(kept), 2)
    with pytest.raises(DamagedModelError, match="a value has shape"):
        Tree(Compact(kept | {"shape": shape}), 2)


@pytest.mark.parametrize("n_leaves", [2, 4, 5, 8, 9, 13, 20])
def test_leaf_bits_are_those_of_one_tree(n_leaves):
    """Of all turns of some bits, one is a tree, depth first: there is always a place left."""
    y = np.arange(n_leaves)
    kept = Compact.of(DecisionTreeRegressor().fit(y[:, np.newaxis], y).tree_.nodes).kept
    rng = np.random.default_rng(n_leaves)
    for _ in range(3):
        bits = rng.permutation(np.repeat([True, False], [n_leaves, n_leaves - 1]))
        n_trees = 0
        for turn in range(len(bits)):
            turned = np.roll(bits, turn)
            places = np.cumsum(np.where(turned, -1, 1)) + 1
            changed = Compact(kept | {"leaves": np.packbits(turned)})
            if places[:-1].min() > 0:
                assert Tree(changed, 1).n_leaves == n_leaves
                n_trees += 1
            else:
                with pytest.raises(DamagedModelError, match="do not form one tree"):
                    Tree(changed, 1)
        assert n_trees == 1


def test_what_is_stored_beside_the_leaves_is_checked():
    model = DecisionTreeClassifier(max_leaf_nodes=4).fit(X, [0, 1, 0, 0, 1, 1])
    kept = Compact.of(model.tree_.nodes).kept
    assert "children_left" in kept
    last_first = np.packbits(np.unpackbits(kept["leaves"], count=kept["n_nodes"])[::-1])
    far = kept["children_left"] + 99 * (kept["children_left"] > 0).astype(np.int32)
    for changed, words in (
        ({"leaves": last_first}, "do not match the leaves"),
        ({"children_left": far}, "out of range"),
        ({"more": kept["leaves"]}, "an unknown array 'more'"),
    ):
        with pytest.raises(DamagedModelError, match=words):
            Tree(Compact(kept | changed), 2)


@pytest.mark.parametrize(
    "model",
    [
        DecisionTreeClassifier(max_leaf_nodes=4),
        DecisionTreeClassifier(class_weight={0: 0.3, 1: 2.1}),
        DecisionTreeRegressor(),
        DecisionTreeRegressor(criterion="absolute_error"),
    ],
)
def test_compact_arrays_of_another_form_are_refused(model):
    """Of an array with a name of the node arrays, the dtype is that of the node array."""
    kept = Compact.of(model.fit(X, [0, 1, 0, 0, 1, 1]).tree_.nodes).kept
    Tree(Compact(kept), 2)
    arrays = {name: array for name, array in kept.items() if isinstance(array, np.ndarray)}
    for name, array in arrays.items():
        longer = np.zeros((len(array) + 1, *array.shape[1:]), array.dtype)
        wrong = [array.astype(np.float16), array[..., np.newaxis], longer, array.view(np.recarray)]
        wrong += [array.astype(np.int64), array.astype(np.uint16)] if name in Nodes._fields else []
        for other in wrong:
            with pytest.raises(DamagedModelError):
                Tree(Compact(kept | {name: other}), 2)


@pytest.mark.parametrize(
    "model",
    [
        DecisionTreeClassifier(max_leaf_nodes=4),
        DecisionTreeRegressor(),
        DecisionTreeRegressor(criterion="absolute_error"),
    ],
)
def test_compact_trees_have_each_array_once(model):
    nodes = model.fit(X, [0, 1, 0, 0, 1, 1]).tree_.nodes
    kept = Compact.of(nodes).kept
    optional = {"missing_go_to_left", "value"}  # a tree without them is another tree
    for name in kept.keys() - optional:
        with pytest.raises(DamagedModelError):
            Tree(Compact({other: kept[other] for other in kept if other != name}), 2)
    for twice in (("feature", "threshold"), ("n_node_samples",), ("weighted_n_node_samples",)):
        with pytest.raises(DamagedModelError, match="a tree needs either"):
            Tree(Compact(kept | {name: getattr(nodes, name) for name in twice}), 2)


def test_leaves_of_compact_trees_have_what_their_values_are_made_of():
    y = [0, 1, 0, 0, 1, 1]
    nodes = DecisionTreeRegressor().fit(X, y).tree_.nodes
    sums = Compact.of(nodes).kept
    assert "totals" in sums
    classes = Compact.of(DecisionTreeClassifier().fit(X, y).tree_.nodes).kept
    weight = {"weighted_n_node_samples": nodes.weighted_n_node_samples}
    for kept, words in (
        (sums | {"shape": (1, 3)}, "of several values"),
        ({name: sums[name] for name in sums if name != "counts"} | weight, "no weights"),
        ({name: classes[name] for name in classes if name != "counts"} | weight, "counts"),
    ):
        with pytest.raises(DamagedModelError, match=words):
            Tree(Compact(kept), 2)


def test_the_number_of_features_is_a_number_in_range():
    """Also of a lone root, which has no split to check."""
    root = DecisionTreeRegressor().fit(X, np.zeros(len(X))).tree_.nodes
    for held in (root, Compact.of(root)):
        for n_features in (0, np.int64(3), 2**31 - 1):
            assert Tree(held, n_features).n_features == n_features
        for wrong in (-1, 2**31, True, 2.0, "2", None):
            with pytest.raises(DamagedModelError, match=f"a tree has {wrong!r} features"):
                Tree(held, wrong)


def test_the_bridge_checks_what_it_takes_over():
    peer = PeerTree().fit(X, X[:, 0])
    state = peer.tree_.__getstate__()
    state["nodes"]["left_child"][0] = 10_000
    peer.tree_.__setstate__(state)
    with pytest.raises(DamagedModelError, match="out of range"):
        bridge.from_sklearn(peer)


def test_pickles_without_a_checksum_are_checked():
    """As earlier versions wrote them."""
    state = grown().__getstate__()
    del state["_checksum"]
    Tree.__new__(Tree).__setstate__(state)
    with pytest.raises(DamagedModelError, match="outside the 0 features"):
        Tree.__new__(Tree).__setstate__(state | {"n_features": 0})
    with pytest.raises(DamagedModelError, match="a tree has no nodes"):
        Tree.__new__(Tree).__setstate__(state | {"_held": None})


def test_fitted_arrays_are_read_only():
    for name in Nodes._fields:
        with pytest.raises(ValueError, match="read-only"):
            getattr(grown(), name)[0] = 0


def test_trees_of_other_tables_are_not_packed_together():
    other = DecisionTreeRegressor().fit(X[:, :1], X[:, 0]).tree_
    with pytest.raises(ValueError, match="cannot vote together"):
        pack([grown(), other], np.float32)


def test_paths_take_the_memory_of_the_rows_that_are_asked_for():
    """Labels that alternate grow a chain, whose nodes' paths sum to the square of its depth."""
    X = np.arange(2000.0)[:, None]
    theirs = PeerChain(random_state=0).fit(X, np.arange(2000) % 2)
    ours = bridge.from_sklearn(theirs)
    assert ours.get_depth() == 1999
    rows = X[::500].astype(np.float32)
    ours.decision_path(rows)
    tracemalloc.start()
    paths = ours.decision_path(rows)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (paths != theirs.decision_path(rows)).nnz == 0
    assert peak < 2_000_000
