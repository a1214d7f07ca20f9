"""Our models as scikit-learn's and back: the same predictions, bit for bit."""

import matplotlib
import numpy as np
import pytest
import sklearn.ensemble
import sklearn.tree
from sklearn.datasets import load_diabetes, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge

import cart
import forest
from forest.interop.bridge import from_sklearn, to_sklearn

IRIS = load_iris(return_X_y=True)
DIABETES = load_diabetes(return_X_y=True)
GAPS = np.where(np.random.RandomState(0).rand(*IRIS[0].shape) < 0.1, np.nan, IRIS[0])
SEVERAL = np.column_stack((IRIS[1], IRIS[1] % 2))
CASES = {
    "classes": (IRIS[0], IRIS[1], "Classifier", {}),
    "names": (IRIS[0], np.array(["a", "b", "c"])[IRIS[1]], "Classifier", {"max_leaf_nodes": 5}),
    "missing": (GAPS, IRIS[1], "Classifier", {"criterion": "entropy"}),
    "several": (IRIS[0], SEVERAL, "Classifier", {}),
    "numbers": (*DIABETES, "Regressor", {"max_depth": 6}),
    "numbers, several": (DIABETES[0], np.column_stack((DIABETES[1],) * 2), "Regressor", {}),
}
MODELS = [
    (cart, sklearn.tree, "DecisionTree"),
    (cart, sklearn.tree, "ExtraTree"),
    (forest, sklearn.ensemble, "RandomForest"),
    (forest, sklearn.ensemble, "ExtraTrees"),
]


def outputs(model, X):
    """All that a model says of X."""
    said = [model.predict(X), model.feature_importances_, model.apply(X)]
    if hasattr(model, "predict_proba"):
        shares = model.predict_proba(X)
        said += shares if isinstance(shares, list) else [shares]
    return said


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("model", MODELS, ids=lambda model: model[2])
@pytest.mark.parametrize("there", [True, False], ids=["to scikit-learn", "from scikit-learn"])
def test_predictions_are_the_same_there_and_back(model, case, there):
    ours, theirs, name = model
    X, y, task, params = CASES[case]
    params = {**params, "random_state": 0}
    if ours is forest:
        params |= {"n_estimators": 5, "bootstrap": True}
    source, target = (ours, theirs) if there else (theirs, ours)
    convert, back = (to_sklearn, from_sklearn) if there else (from_sklearn, to_sklearn)
    fitted = getattr(source, name + task)(**params).fit(X, y)
    other = convert(fitted)
    assert type(other) is getattr(target, name + task)
    ours_only = {
        "precision": "float32",
        "max_bins": None,
        "missing": "learned",
        "surrogates": 0,
        "surrogate_style": "all",
        "surrogate_features": "all",
        "competitors": 0,
        "feature_draw": "sequence",
        "bootstrap_draw": "sequence",
        "categorical_features": None,
        "min_category_ratio": 5.0,
        "replace": True,
        "stratify": False,
        "voting": "soft",
        "final_estimator": None,
        "callback": None,
        "max_time": None,
        "max_memory": None,
        "priors": None,
        "loss": None,
    }
    assert ours_only | other.get_params() == ours_only | fitted.get_params()
    for model in (other, back(other)):
        for a, b in zip(outputs(fitted, X), outputs(model, X), strict=True):
            np.testing.assert_array_equal(a, b)
        if ours is forest:
            for a, b in zip(fitted.estimators_samples_, model.estimators_samples_, strict=True):
                np.testing.assert_array_equal(a, b)


def test_every_array_of_the_tree_goes_over():
    tree = cart.DecisionTreeClassifier(random_state=0).fit(GAPS, IRIS[1])
    peer = to_sklearn(tree).tree_
    for name in (*tree.tree_.nodes._fields, "node_count", "max_depth", "n_leaves"):
        np.testing.assert_array_equal(getattr(tree.tree_, name), getattr(peer, name))


@pytest.mark.parametrize("sides", [("left",), ("left", "right")], ids=" and ".join)
@pytest.mark.parametrize("node", [0, 2, 5])
def test_a_tree_pruned_by_hand_is_cut_off_there(node, sides):
    peer = sklearn.tree.DecisionTreeRegressor(max_depth=6, random_state=0).fit(*DIABETES)
    for side in sides:
        getattr(peer.tree_, f"children_{side}")[node] = -1
    ours = from_sklearn(peer)
    np.testing.assert_array_equal(ours.predict(DIABETES[0]), peer.predict(DIABETES[0]))
    tree = ours.tree_
    assert tree.node_count == 2 * tree.n_leaves - 1 < peer.tree_.node_count
    assert np.all((tree.feature == -2) == (tree.children_left == -1))
    back = to_sklearn(ours)
    np.testing.assert_array_equal(back.predict(DIABETES[0]), peer.predict(DIABETES[0]))


@pytest.mark.parametrize("params", [{}, {"feature_names": list("abcd"), "decimals": 4}], ids=str)
def test_export_text_is_scikit_learns(params):
    X, y = IRIS
    ours = cart.DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y)
    peer = sklearn.tree.DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y)
    assert cart.export_text(ours, **params) == sklearn.tree.export_text(peer, **params)
    params = {"filled": True, "rounded": True, "proportion": True, "node_ids": True}
    assert cart.export_graphviz(ours, **params) == sklearn.tree.export_graphviz(peer, **params)


def test_plot_tree_draws_every_node():
    matplotlib.use("Agg")
    tree = cart.DecisionTreeRegressor(max_depth=3, random_state=0).fit(*DIABETES)
    drawn = cart.plot_tree(tree, filled=True)
    assert sum("samples" in text.get_text() for text in drawn) == tree.tree_.node_count


def test_strangers_are_refused():
    X, y = IRIS
    for convert in (to_sklearn, from_sklearn):
        with pytest.raises(TypeError, match="Ridge"):
            convert(Ridge().fit(X, y))
    boosted = sklearn.ensemble.GradientBoostingClassifier(n_estimators=2).fit(X, y)
    with pytest.raises(TypeError, match="GradientBoosting"):
        from_sklearn(boosted)
    with pytest.raises(TypeError, match="BaggingClassifier is not a forest"):
        from_sklearn(sklearn.ensemble.BaggingClassifier(n_estimators=2).fit(X, y))
    for model in (cart.DecisionTreeClassifier(), forest.RandomForestClassifier()):
        with pytest.raises(NotFittedError):
            to_sklearn(model)
    with pytest.raises(AttributeError, match="no attribute 'fit'"):
        cart.fit  # noqa: B018
