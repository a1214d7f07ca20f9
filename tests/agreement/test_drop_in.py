"""What scikit-learn's models answer beyond fit and predict, and what they say of bad arguments."""

import pickle
import warnings

import numpy as np
import pytest
import sklearn.ensemble
import sklearn.tree
from scipy.sparse import csr_array
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError

import cart
import forest
from cart.interop.bridge import from_sklearn

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


def test_criteria_are_named():
    criterion = sklearn.tree._criterion.MSE(1, len(Y))
    with pytest.raises(ValueError, match="'criterion' parameter"):
        cart.DecisionTreeRegressor(criterion=criterion).fit(X, Y)
