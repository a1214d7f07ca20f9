"""Tools that know scikit-learn's models only, and ours: what docs/other-tools.md says."""

import re
from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib
import numpy as np
import pytest
import sklearn.ensemble
import sklearn.tree
from sklearn.datasets import load_diabetes, load_iris, make_classification
from sklearn.inspection import partial_dependence, permutation_importance

import cart
import forest
from cartwood import to_sklearn

WHY = 'not installed; pip install "cartwood[bridge]" brings it'
X_MANY, Y_MANY = make_classification(
    200, 5, n_informative=3, n_redundant=0, n_classes=3, random_state=0
)
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


@EACH_MODEL
def test_treelite_predicts_the_same(model, data):
    """Of forests; it takes no single tree of scikit-learn's."""
    treelite = require("treelite")
    X, y = data[0].astype(np.float32), data[1]
    peer = to_sklearn(model.fit(X, y))
    if not hasattr(model, "n_estimators"):
        with pytest.raises(treelite.TreeliteError, match="Not supported model type"):
            treelite.sklearn.import_model(peer)
        return
    said = treelite.gtil.predict(treelite.sklearn.import_model(peer), X)
    expected = outputs(model, X)
    np.testing.assert_allclose(said.reshape(expected.shape), expected, rtol=2e-6, atol=1e-6)


@pytest.fixture(params=[forest.RandomForestClassifier, forest.RandomForestRegressor])
def behind_indicators(request):
    """A forest of categories: its peer, the columns of 0 and 1, and what it predicts."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(300, 3)), rng.integers(0, 8, 300)]).astype(np.float32)
    model = request.param(10, categorical_features=[3], random_state=0)
    y = (X[:, 3] % 3 == 0) * (1 + (X[:, 0] > 0))
    pipeline = to_sklearn(model.fit(X, y), categories="indicators")
    columns = pipeline[:-1].transform(X).astype(np.float32)
    return pipeline[-1], columns, outputs(model, X)


def test_onnx_and_treelite_read_forests_of_categories(behind_indicators):
    peer, columns, expected = behind_indicators
    treelite = require("treelite")
    said = treelite.gtil.predict(treelite.sklearn.import_model(peer), columns)
    np.testing.assert_allclose(said.reshape(expected.shape), expected, rtol=2e-6, atol=1e-6)
    onnxruntime, convert = require("onnxruntime"), require("skl2onnx").to_onnx
    options = {"zipmap": False} if hasattr(peer, "classes_") else None
    graph = convert(peer, columns[:1], options=options)
    session = onnxruntime.InferenceSession(
        graph.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    said = session.run(None, {"X": columns})[-1]
    np.testing.assert_allclose(said.reshape(expected.shape), expected, rtol=2e-6, atol=1e-6)


def test_shap_reads_forests_of_categories(behind_indicators):
    peer, columns, expected = behind_indicators
    explainer = require("shap").TreeExplainer(peer)
    values = explainer.shap_values(columns[:50]).reshape(50, columns.shape[1], -1)
    total = np.ravel(explainer.expected_value) + values.sum(axis=1)
    np.testing.assert_allclose(total.reshape(expected[:50].shape), expected[:50], atol=1e-6)


IRIS_TREE = cart.DecisionTreeClassifier(max_depth=2, random_state=0)


@pytest.mark.parametrize("name", ["plot_tree", "export_text"])
def test_scikit_learns_own_drawings_take_its_trees_only(name):
    """Ours of the same name take both, and say what to draw of a forest."""
    matplotlib.use("Agg")
    tree = IRIS_TREE.fit(*IRIS)
    theirs, ours = getattr(sklearn.tree, name), getattr(cart, name)
    with pytest.raises(ValueError, match="must be an instance of 'sklearn"):
        theirs(tree)
    assert str(theirs(to_sklearn(tree))) == str(ours(tree))
    with pytest.raises(TypeError, match=rf"{name}\(forest.estimators_\[0\]\)"):
        ours(forest.RandomForestClassifier(2, random_state=0).fit(*IRIS))


def test_scikit_learn_draws_ours_with_graphviz():
    tree = IRIS_TREE.fit(*IRIS)
    assert sklearn.tree.export_graphviz(tree) == sklearn.tree.export_graphviz(to_sklearn(tree))


@pytest.mark.parametrize("model", [EACH_MODEL.args[1][1][0], forest.RandomForestRegressor(10)])
def test_partial_dependence_by_recursion(model):
    """Through the bridge; averages over rows take ours as they are."""
    X, y = DIABETES
    model.fit(X, y)
    ask = {"features": [2], "grid_resolution": 4}
    with pytest.raises(ValueError, match="support the 'recursion'"):
        partial_dependence(model, X, method="recursion", **ask)
    found = partial_dependence(to_sklearn(model), X, method="recursion", **ask)["average"]
    over_rows = partial_dependence(model, X, **ask)["average"]
    by_peer = partial_dependence(to_sklearn(model), X, method="brute", **ask)["average"]
    np.testing.assert_array_equal(over_rows, by_peer)
    assert np.corrcoef(found[0], over_rows[0])[0, 1] > 0.9


@EACH_MODEL
def test_eli5_and_skops_read_what_the_bridge_gives(model, data):
    eli5, files = (pytest.importorskip(name) for name in ("eli5", "skops.io"))
    peer = to_sklearn(model.fit(*data))
    assert eli5.explain_weights(peer).error is None
    assert eli5.explain_prediction(peer, data[0][0]).error is None
    kept = files.loads(files.dumps(peer), trusted=["sklearn.tree._tree.Tree"])
    np.testing.assert_array_equal(outputs(kept, data[0]), outputs(model, data[0]))


def variances(package, forest):
    return package.random_forest_error(forest, (200, 5), X_MANY[:30], calibrate=False)


def contributions(package, forest):
    return np.concatenate([part.ravel() for part in package.predict(forest, X_MANY[:30])])


def tensors(package, forest):
    return package.convert(forest, "torch").predict_proba(X_MANY.astype(np.float32))


def interactions(package, forest):
    explainer = package.TreeExplainer(model=forest, max_order=2, index="SII")
    return explainer.explain(X_MANY[0]).get_n_order_values(2)


def shrunk(package, tree):
    return package.HSTreeClassifier(estimator_=tree, reg_param=5).predict_proba(X_MANY)


def page(package, model):
    """What would be drawn; the package writes it to a file."""
    names = [*"abcdefghij"[: model.n_features_in_]]
    data = np.zeros((1, len(names)))
    with TemporaryDirectory() as folder:
        drawn = package.SuperTree(model, data, [0], names, ["no", "yes", "maybe"])
        drawn.save_json_tree(f"{folder}/tree")
        return [(Path(folder) / "tree.json").read_text()]


def code(package, forest):
    written = {}
    exec(package.export_to_python(forest), written)
    return [written["score"](row) for row in X_MANY[:30].tolist()]


@pytest.mark.filterwarnings("ignore")  # of the packages
@pytest.mark.parametrize(
    ("package", "program", "name"),
    [
        ("forestci", variances, "RandomForestRegressor"), ("m2cgen", code, "ExtraTreesRegressor"),
        ("treeinterpreter.treeinterpreter", contributions, "RandomForestClassifier"),
        ("hummingbird.ml", tensors, "RandomForestClassifier"),
        ("shapiq", interactions, "RandomForestRegressor"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_packages_that_know_forests_say_the_same_of_what_the_bridge_gives(package, program, name):
    package = pytest.importorskip(package, reason=f"{package} is not installed")
    ours, peer = (
        getattr(module, name)(20, random_state=0).fit(X_MANY, Y_MANY)
        for module in (forest, sklearn.ensemble)
    )
    expected = program(package, peer)
    np.testing.assert_allclose(program(package, to_sklearn(ours)), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.filterwarnings("ignore")  # of the packages
@pytest.mark.parametrize(("package", "program"), [("imodels", shrunk), ("supertree", page)])
def test_packages_that_know_trees_say_the_same_of_what_the_bridge_gives(package, program):
    package = pytest.importorskip(package, reason=f"{package} is not installed")
    ours, peer = (
        module.DecisionTreeClassifier(max_depth=3, random_state=0).fit(X_MANY, Y_MANY)
        for module in (cart, sklearn.tree)
    )
    assert list(np.ravel(program(package, to_sklearn(ours)))) == list(
        np.ravel(program(package, peer))
    )


@pytest.mark.filterwarnings("ignore")  # of the package
def test_forestci_needs_the_draws_of_ours():
    """Without them it takes every row for one that no tree has seen."""
    package = pytest.importorskip("forestci", reason="forestci is not installed")
    ours = forest.RandomForestRegressor(20, random_state=0).fit(X_MANY, Y_MANY)
    draws = [np.bincount(rows, minlength=200) for rows in ours.estimators_samples_]
    shape = X_MANY.shape, X_MANY[:30]
    found = package.random_forest_error(ours, *shape, inbag=np.stack(draws, 1), calibrate=False)
    np.testing.assert_allclose(found, variances(package, to_sklearn(ours)))
    assert np.abs(found).max() > 0.1
    assert np.abs(variances(package, ours)).max() < 1e-20


@pytest.mark.filterwarnings("ignore")  # of the package
def test_ngboost_predicts_the_same_with_ours_and_has_no_importances():
    package = pytest.importorskip("ngboost", reason="ngboost is not installed")
    ours, theirs = (
        package.NGBRegressor(
            Base=module.DecisionTreeRegressor(max_depth=3, random_state=0), n_estimators=10,
            random_state=0, verbose=False,
        ).fit(*DIABETES)
        for module in (cart, sklearn.tree)
    )  # fmt: skip
    np.testing.assert_allclose(ours.predict(DIABETES[0]), theirs.predict(DIABETES[0]), rtol=1e-9)
    assert ours.feature_importances_ is None
    assert theirs.feature_importances_.shape == (2, 10)


def test_permutation_importance_takes_ours_as_they_are():
    model = IRIS_TREE.fit(*IRIS)
    ask = {"n_repeats": 2, "random_state": 0}
    ours, peers = (
        permutation_importance(each, *IRIS, **ask) for each in (model, to_sklearn(model))
    )
    np.testing.assert_array_equal(ours.importances, peers.importances)


def refused_by(tool, model, X, y):
    """What a tool raises that is given our model as it is."""
    if tool == "shap":
        require("shap").TreeExplainer(model)
    elif tool == "skl2onnx":
        require("skl2onnx").to_onnx(model, X[:1].astype(np.float32))
    elif tool == "treelite":
        require("treelite").sklearn.import_model(model)
    elif tool == "eli5":
        raise ValueError(
            pytest.importorskip("eli5").explain_weights(model).error
        )  # which it returns
    elif tool == "skops":
        files = pytest.importorskip("skops.io")
        files.loads(files.dumps(model))
    elif tool == "treeinterpreter":
        pytest.importorskip("treeinterpreter.treeinterpreter").predict(model, X)
    elif tool == "m2cgen":
        pytest.importorskip("m2cgen").export_to_python(model)
    elif tool == "hummingbird":
        pytest.importorskip("hummingbird.ml").convert(model, "torch")
    elif tool == "shapiq":
        pytest.importorskip("shapiq").TreeExplainer(model=model, max_order=1, index="SV")
    elif tool == "imodels":
        pytest.importorskip("imodels").HSTreeRegressor(estimator_=model)
    elif tool == "supertree":
        page(pytest.importorskip("supertree"), model)
    else:
        names = [*"abcdefghij"[: X.shape[1]]]
        require("dtreeviz").model(model, X, y, feature_names=names, target_name="y")


@pytest.mark.parametrize(
    ("tool", "words"),
    [
        ("shap", "Model type not yet supported by TreeExplainer"),
        ("skl2onnx", "Unable to find a shape calculator for type"),
        ("treelite", "Not supported model type"),
        ("dtreeviz", "Tree model must be in"),
        ("eli5", "is not supported"),
        ("skops", "Untrusted types found in the file"),
        ("treeinterpreter", "Wrong model type"),
        ("m2cgen", "is not supported"),
        ("hummingbird", "Unable to find converter for model type"),
        ("shapiq", "Unsupported model type"),
        ("imodels", "assignment destination is read-only"),
        ("supertree", "is not JSON serializable"),
    ],
)
def test_what_tools_say_of_ours_stands_on_the_page(tool, words):
    """So that whoever searches for the error finds the remedy."""
    page = (Path(__file__).resolve().parents[1] / "docs" / "other-tools.md").read_text()
    assert tool in page
    assert words in page
    model = cart.DecisionTreeRegressor(max_depth=2, random_state=0).fit(*DIABETES)
    with pytest.raises(Exception, match=re.escape(words)):
        refused_by(tool, model, *DIABETES)
