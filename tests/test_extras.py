"""Tools that know scikit-learn's models only run on ours through the bridge."""

import matplotlib
import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_iris

import cart
import forest
from forest.interop.bridge import to_sklearn

WHY = 'not installed; pip install "cartwood[bridge]" brings it'
IRIS = load_iris(return_X_y=True)
DIABETES = load_diabetes(return_X_y=True)
EACH_MODEL = pytest.mark.parametrize(
    ("model", "data"),
    [
        (cart.DecisionTreeClassifier(max_depth=4, random_state=0), IRIS),
        (cart.DecisionTreeRegressor(max_depth=6, random_state=0), DIABETES),
        (forest.RandomForestClassifier(10, random_state=0), IRIS),
        (forest.ExtraTreesRegressor(10, random_state=0), DIABETES),
    ],
    ids=lambda value: type(value).__name__ if hasattr(value, "fit") else "",
)


def require(package):
    return pytest.importorskip(package, reason=f"{package} is {WHY}")


def outputs(model, X):
    """Class shares, or the prediction."""
    return model.predict_proba(X) if hasattr(model, "predict_proba") else model.predict(X)


@EACH_MODEL
def test_shap_values_sum_to_the_prediction(model, data):
    shap = require("shap")
    X, y = data
    expected = outputs(model.fit(X, y), X)
    explainer = shap.TreeExplainer(to_sklearn(model))
    base = np.ravel(explainer.expected_value)
    total = base + explainer.shap_values(X).reshape(len(X), X.shape[1], -1).sum(axis=1)
    np.testing.assert_allclose(total.reshape(expected.shape), expected, rtol=1e-9, atol=1e-9)


@EACH_MODEL
def test_onnx_predicts_the_same(model, data):
    """In single precision, as ONNX keeps values and thresholds."""
    onnxruntime = require("onnxruntime")
    convert = require("skl2onnx").to_onnx
    X, y = data[0].astype(np.float32), data[1]
    expected = outputs(model.fit(X, y), X)
    options = {"zipmap": False} if hasattr(model, "classes_") else None
    graph = convert(to_sklearn(model), X[:1], options=options)
    session = onnxruntime.InferenceSession(
        graph.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    said = session.run(None, {"X": X})
    np.testing.assert_allclose(said[-1].reshape(expected.shape), expected, rtol=2e-6, atol=1e-6)
    if hasattr(model, "classes_"):
        np.testing.assert_array_equal(said[0], model.predict(X))


def test_dtreeviz_draws_every_node():
    """And finds the same rows and class shares in each."""
    dtreeviz = require("dtreeviz")
    matplotlib.use("Agg")
    X, y = IRIS
    model = cart.DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y)
    tree = model.tree_
    view = dtreeviz.model(
        to_sklearn(model), X, y, feature_names=list("abcd"), target_name="species",
        class_names=list("xyz"),
    )  # fmt: skip
    drawn = view.view(fontname="DejaVu Sans").dot
    for node in range(tree.node_count):
        kind = "leaf" if tree.children_left[node] == -1 else "node"
        assert f"{kind}{node} [" in drawn
    found = view.shadow_tree.get_node_samples()
    assert sorted(found) == list(range(tree.node_count))
    for node, rows in found.items():
        assert len(rows) == tree.n_node_samples[node]
        shares = np.bincount(y[rows], minlength=3) / len(rows)
        np.testing.assert_allclose(shares, tree.value[node, 0])
