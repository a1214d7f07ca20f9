"""What scikit-learn's models answer beyond fit and predict, and what they say of bad arguments."""

import pickle
import warnings

import numpy as np
import pytest
import sklearn.ensemble
import sklearn.tree
from scipy.sparse import csr_array
from sklearn import config_context
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError

import cart
import forest
from cart.interop.bridge import from_sklearn, to_sklearn
from tests.agreement.same import assert_same_tree

X, Y = load_iris(return_X_y=True)
SEVERAL = np.column_stack((Y, Y > 0))
FORESTS = [
    *("RandomForestClassifier", "RandomForestRegressor"),
    *("ExtraTreesClassifier", "ExtraTreesRegressor"),
]
EACH_FOREST = pytest.mark.parametrize("name", FORESTS)
EACH_PACKAGE = pytest.mark.parametrize(
    ("trees", "forests"),
    [(cart, forest), (sklearn.tree, sklearn.ensemble)],
    ids=["ours", "theirs"],
)


@pytest.mark.parametrize("name", ["DecisionTreeClassifier", "DecisionTreeRegressor"])
def test_arrays_of_a_tree_have_scikit_learns_types(name):
    ours, theirs = (getattr(home, name)(random_state=0).fit(X, Y) for home in (cart, sklearn.tree))
    for field in ours.tree_.nodes._fields:
        array, expected = getattr(ours.tree_, field), getattr(theirs.tree_, field)
        assert (array.dtype, array.shape) == (expected.dtype, expected.shape), field


@EACH_FOREST
def test_a_forest_is_the_sequence_of_its_trees(name):
    model = getattr(forest, name)(4, random_state=0).fit(X, Y)
    assert len(model) == 4
    assert model[-1] is model.estimators_[3]
    assert [*model] == model.estimators_ == model[:]


@EACH_FOREST
def test_a_forest_names_the_kind_of_its_trees(name):
    ours, theirs = getattr(forest, name)(2), getattr(sklearn.ensemble, name)(2)
    assert type(ours.estimator).__name__ == type(theirs.estimator).__name__
    assert ours.estimator.splitter == theirs.estimator.splitter
    with pytest.raises(NotFittedError):
        ours.estimator_  # noqa: B018
    assert type(ours.fit(X, Y).estimator_) is type(ours[0])


@EACH_FOREST
def test_a_forest_names_the_parameters_of_its_trees(name):
    ours, theirs = getattr(forest, name)(1, max_depth=2), getattr(sklearn.ensemble, name)(1)
    assert set(ours.estimator_params) >= set(theirs.estimator_params)
    for model in (ours, theirs):
        assert type(model.estimator_params) is tuple
        values = {name: getattr(model, name) for name in model.estimator_params}
        (grown,) = model.fit(X, Y)
        values["random_state"] = grown.random_state
        assert model.estimator.set_params(**values).get_params() == grown.get_params()


def test_bagging_has_no_parameters_of_its_estimators():
    for home in (forest, sklearn.ensemble):
        assert home.BaggingClassifier().estimator_params == ()
        assert home.BaggingRegressor().estimator_params == ()


@pytest.mark.parametrize("y", [Y, SEVERAL], ids=["one output", "several outputs"])
@pytest.mark.parametrize("name", ["DecisionTreeClassifier", "DecisionTreeRegressor"])
def test_a_tree_knows_its_classes_and_capacity(name, y, tmp_path):
    theirs = getattr(sklearn.tree, name)(random_state=0).fit(X, y)
    grown = getattr(cart, name)(random_state=0).fit(X, y)
    path = tmp_path / "model"
    grown.save(path)
    models = grown, from_sklearn(theirs), pickle.loads(pickle.dumps(grown)), cart.load(path)
    for ours in (model.tree_ for model in models):
        np.testing.assert_array_equal(ours.n_classes, theirs.tree_.n_classes)
        assert ours.max_n_classes == theirs.tree_.max_n_classes
        assert ours.capacity == theirs.tree_.capacity


@EACH_PACKAGE
def test_forests_list_the_numbers_of_classes_and_trees_have_an_array(trees, forests):
    model = forests.RandomForestClassifier(2, random_state=0).fit(X, SEVERAL)
    assert type(model.n_classes_) is list
    assert model.n_classes_ == [3, 2]
    for tree in (model[0], trees.DecisionTreeClassifier().fit(X, SEVERAL)):
        assert type(tree.n_classes_) is np.ndarray
        assert tree.n_classes_.tolist() == [3, 2]


@EACH_PACKAGE
def test_labels_may_be_bytes(trees, forests):
    labels = np.array([b"ab", b"c", b"d"])[Y]
    for kind in (trees.DecisionTreeClassifier, forests.RandomForestClassifier):
        model = kind(random_state=0).fit(X, labels)
        np.testing.assert_array_equal(model.classes_, [b"ab", b"c", b"d"])
        np.testing.assert_array_equal(
            model.predict(X), model.classes_[kind(random_state=0).fit(X, Y).predict(X)]
        )


@EACH_PACKAGE
def test_a_sparse_target_is_refused(trees, forests):
    with pytest.raises(TypeError, match="dense data is required"):
        trees.DecisionTreeRegressor().fit(X, csr_array(SEVERAL))
    with pytest.raises(ValueError, match="sparse multilabel-indicator for y is not supported"):
        forests.RandomForestClassifier().fit(X, csr_array(SEVERAL))


@EACH_PACKAGE
def test_the_table_is_reported_before_parameters_that_contradict(trees, forests):
    model = forests.RandomForestClassifier(bootstrap=False, oob_score=True)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.fit(X, Y[1:])
    bagging = forests.BaggingClassifier(bootstrap=False, oob_score=True)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        bagging.fit(X, Y[1:])
    for both in (model, bagging):
        with pytest.raises(ValueError, match="only available if bootstrap=True"):
            both.fit(X, Y)


@EACH_PACKAGE
def test_a_target_is_reported_before_its_length(trees, forests):
    with pytest.raises(ValueError, match="y are negative"):
        trees.DecisionTreeRegressor(criterion="poisson").fit(X, [-1.0, 1.0])


@EACH_FOREST
def test_a_warm_start_that_adds_no_tree_looks_at_no_table(name):
    model = getattr(forest, name)(3, warm_start=True, random_state=0).fit(X, Y)
    before = dict(vars(model))
    with pytest.warns(UserWarning, match="does not fit new trees"):
        model.fit(X[:50], SEVERAL[:50])
    assert vars(model) == before


@EACH_PACKAGE
def test_weights_without_a_bootstrap_are_warned_of(trees, forests):
    bagging = forests.BaggingClassifier(bootstrap=False)
    with pytest.warns(UserWarning, match="with sample_weight it is recommended to use bootstrap"):
        bagging.fit(X, Y, np.ones(len(Y)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bagging.fit(X, Y)


@EACH_PACKAGE
def test_only_estimators_are_drawn(trees, forests):
    model = trees.DecisionTreeClassifier()
    with pytest.raises(NotFittedError):
        trees.export_graphviz(model)
    with pytest.raises(TypeError, match="is not an estimator instance"):
        trees.export_graphviz(model.fit(X, Y).tree_)


def test_many_leaves_need_no_memory():
    many = 2**61 - 1
    with pytest.raises(MemoryError):
        sklearn.tree.DecisionTreeClassifier(max_leaf_nodes=many).fit(X, Y)
    assert cart.DecisionTreeClassifier(max_leaf_nodes=many).fit(X, Y).score(X, Y) == 1.0


@pytest.mark.parametrize("params", [{"min_samples_leaf": -2, "max_depth": 4}, {"max_features": 0}])
@pytest.mark.parametrize(
    ("name", "y"), [("DecisionTreeClassifier", Y), ("DecisionTreeRegressor", X[:, 0])]
)
def test_leaves_have_rows_and_splits_features_whatever_is_validated(name, y, params):
    """Trees grew without end, or wrote beyond an array, which ended the interpreter."""
    with config_context(skip_parameter_validation=True):
        ours, theirs = (
            getattr(home, name)(**params, random_state=0).fit(X, y) for home in (cart, sklearn.tree)
        )
    assert_same_tree(ours.tree_, theirs.tree_)


def test_criteria_are_named():
    criterion = sklearn.tree._criterion.MSE(1, len(Y))
    with pytest.raises(ValueError, match="'criterion' parameter"):
        cart.DecisionTreeRegressor(criterion=criterion).fit(X, Y)


@pytest.mark.parametrize("name", ["Classifier", "Regressor"])
def test_extra_trees_that_search_every_cut_take_missing_values(name):
    gaps = np.where(X > 6.0, np.nan, X)
    params = {"splitter": "best", "max_features": None, "random_state": 0}
    with pytest.raises(ValueError, match="Input X contains NaN"):
        getattr(sklearn.tree, f"ExtraTree{name}")(**params).fit(gaps, Y)
    ours = getattr(cart, f"ExtraTree{name}")(**params).fit(gaps, Y)
    assert_same_tree(
        ours.tree_, getattr(sklearn.tree, f"DecisionTree{name}")(**params).fit(gaps, Y).tree_
    )


def test_splits_that_decrease_nothing_have_no_importance():
    table, y = [[0.0], [0.0], [1.0], [1.0]], [0.0, 1.0, 0.0, 1.0]
    theirs = sklearn.ensemble.ExtraTreesRegressor(2, random_state=0).fit(table, y)
    with pytest.warns(RuntimeWarning, match="invalid value"):
        assert np.isnan(theirs.feature_importances_).all()
    ours = forest.ExtraTreesRegressor(2, random_state=0).fit(table, y)
    assert ours[0].tree_.node_count == theirs[0].tree_.node_count == 3
    assert ours.feature_importances_.tolist() == [0.0]


def test_monotonic_constraints_stay_as_they_are():
    signs = [1, 0, -1, 0]
    ours, theirs = np.array(signs, np.int8), np.array(signs, np.int8)
    params = {"n_estimators": 3, "random_state": 0}
    sklearn.ensemble.RandomForestClassifier(monotonic_cst=theirs, **params).fit(X, Y > 0)
    assert theirs.tolist() == [-1, 0, 1, 0]
    model = forest.RandomForestClassifier(monotonic_cst=ours, **params).fit(X, Y > 0)
    assert ours.tolist() == signs
    peer = sklearn.ensemble.RandomForestClassifier(monotonic_cst=signs, **params).fit(X, Y > 0)
    for grown, other in zip(model, peer, strict=True):
        assert_same_tree(grown.tree_, other.tree_)


@pytest.mark.parametrize("name", [name for name in FORESTS if "Classifier" in name])
def test_the_logarithm_of_no_share_is_silent(name):
    """Minus infinity, also where floating-point errors are raised; scikit-learn's divides by 0."""
    ours, theirs = (getattr(home, name)(4, random_state=0) for home in (forest, sklearn.ensemble))
    with np.errstate(divide="raise"):
        found = ours.fit(X, Y).predict_log_proba(X)
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        np.testing.assert_array_equal(found, theirs.fit(X, Y).predict_log_proba(X))


def test_the_bridge_gives_the_state_of_a_tree_in_scikit_learns_records():
    """Public code reads `tree_.__getstate__()["nodes"]` and `["values"]`; our state is another."""
    ours, theirs = (
        home.DecisionTreeClassifier(random_state=0).fit(X, Y) for home in (cart, sklearn.tree)
    )
    assert "nodes" not in ours.tree_.__getstate__()
    found, expected = to_sklearn(ours).tree_.__getstate__(), theirs.tree_.__getstate__()
    assert found.keys() == expected.keys()
    for name in expected["nodes"].dtype.names:
        np.testing.assert_array_equal(found["nodes"][name], expected["nodes"][name])
    np.testing.assert_array_equal(found["values"], expected["values"])


def test_a_tree_is_pruned_by_hand_behind_the_bridge():
    """The recipe of public code, which writes leaves into `tree_.children_left` and `_right`."""
    ours, theirs = (
        home.DecisionTreeClassifier(random_state=0).fit(X, Y) for home in (cart, sklearn.tree)
    )
    with pytest.raises(ValueError, match="read-only"):
        ours.tree_.children_left[2] = -1
    peer = to_sklearn(ours)
    for tree in (peer.tree_, theirs.tree_):
        tree.children_left[2] = tree.children_right[2] = -1
    np.testing.assert_array_equal(peer.predict_proba(X), theirs.predict_proba(X))
    assert not np.array_equal(peer.predict_proba(X), ours.predict_proba(X))


def test_counts_of_a_tree_are_integers_of_python_and_its_paths_short_ones():
    ours, theirs = (
        home.DecisionTreeClassifier(random_state=0).fit(X, Y) for home in (cart, sklearn.tree)
    )
    for model, kind, dtype in ((ours, int, np.int32), (theirs, np.int64, np.int64)):
        counts = model.n_classes_, model.tree_.n_leaves, model.get_n_leaves()
        assert {type(count) for count in counts} == {kind}
        assert model.decision_path(X).indices.dtype == dtype
    found = sklearn.ensemble.RandomForestClassifier(2).fit(X, Y).decision_path(X)[0]
    assert found.indices.dtype == np.int32  # theirs, too
