"""Every criterion, splitter and kind of table: a part of the matrix of `benchmarks identity`."""

import numpy as np
import pytest
import sklearn.ensemble
import sklearn.tree

import cart
import forest
from benchmarks.identity import cases
from benchmarks.identity.run import fit_both, judge
from tests.agreement.same import SEEDS, TOLERANCE, assert_same_tree, trees_of
from tests.data import load

PER_GROUP = 2  # cases of each group and criterion
CLOSE = {"rtol": 1e-9, "atol": 1e-9}


def some_cases():
    """Of each group and criterion the first case and one further on."""
    strata = {}
    for case in cases.all_cases():
        if "california" not in case.data:
            strata.setdefault((case.group, case.criterion), []).append(case)
    for stratum in strata.values():
        yield from stratum[:: -(-len(stratum) // PER_GROUP)]


def name(case):
    return f"{case.group}-{case.criterion}-{case.data}-{case.model}"


def some_values_missing(X, share=0.2, seed=0):
    return np.where(np.random.default_rng(seed).random(X.shape) < share, np.nan, X)


def assert_same_arrays(ours, theirs, **tolerance):
    """Arrays, or lists of arrays, one per output."""
    assert type(ours) is type(theirs)
    pairs = [(ours, theirs)]
    if isinstance(theirs, list):
        pairs = zip(ours, theirs, strict=True)
    for a, b in pairs:
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, **tolerance)


def assert_same_answers(ours, theirs, X, **tolerance):
    """Two models say the same about rows X, and of themselves."""
    for method in ("predict", "predict_proba", "predict_log_proba"):
        if hasattr(theirs, method):
            with np.errstate(divide="ignore"):
                assert_same_arrays(
                    getattr(ours, method)(X), getattr(theirs, method)(X), **tolerance
                )
    if not hasattr(theirs, "apply"):  # Bagging
        return
    np.testing.assert_array_equal(ours.apply(X), theirs.apply(X))
    paths, their_paths = ours.decision_path(X), theirs.decision_path(X)
    if isinstance(their_paths, tuple):
        np.testing.assert_array_equal(paths[1], their_paths[1])
        paths, their_paths = paths[0], their_paths[0]
    assert (paths != their_paths).nnz == 0
    assert_same_arrays(ours.feature_importances_, theirs.feature_importances_, **CLOSE)


@pytest.mark.parametrize("case", list(some_cases()), ids=name)
def test_same_model(case):
    for seed in SEEDS[:2]:
        ours, theirs = fit_both(case, seed)
        verdicts, agreements = judge(case, seed, ours, theirs)
        assert "wrong" not in verdicts
        if set(verdicts) == {"identical"}:
            assert max(each.gap for each in agreements) < 1e-9
            X = cases.training(case, seed).X * 1.01
            X = X.tocsr() if case.zeros else some_values_missing(X, 0.05)
            assert_same_answers(ours, theirs, X, **CLOSE)


@pytest.mark.parametrize("max_leaf_nodes", [None, 9])
def test_a_side_of_zeros_whose_sum_is_not_zero_but_for_rounding(max_leaf_nodes):
    """scikit-learn takes Poisson sums of up to ten epsilons for 0."""
    X = np.array([1, 2, 0, 5, 4, 3, 6], float)[:, None]
    y = np.array([1, 2, 2, 0, 2, 2, 0], float)
    weight = np.array([0.58, 0.18, 0.67, 0.87, 0.22, 0.54, 0.34])
    ours, theirs = (
        home.DecisionTreeRegressor(
            criterion="poisson", max_leaf_nodes=max_leaf_nodes, random_state=0
        ).fit(X, y, weight)
        for home in (cart, sklearn.tree)
    )
    assert theirs.tree_.node_count > 1
    assert_same_tree(ours.tree_, theirs.tree_)


KINDS = [
    *((cart, sklearn.tree, f"{way}Tree") for way in ("Decision", "Extra")),
    *((forest, sklearn.ensemble, kind) for kind in ("RandomForest", "ExtraTrees")),
]
EACH_KIND = pytest.mark.parametrize(("mine", "peer", "kind"), KINDS, ids=[k[2] for k in KINDS])


def fit_pair(mine, peer, kind, X, y, **params):
    if mine is forest:
        params = {"n_estimators": 30, **params}
    return tuple(getattr(home, kind)(random_state=0, **params).fit(X, y) for home in (mine, peer))


@EACH_KIND
@pytest.mark.parametrize("task", ["Classifier", "Regressor"])
def test_missing_values_where_training_had_none(mine, peer, kind, task):
    X, y = load("wine")
    ours, theirs = fit_pair(mine, peer, kind + task, X, y)
    assert_same_answers(ours, theirs, some_values_missing(X, 0.5), **CLOSE)
    assert_same_answers(ours, theirs, np.full_like(X[:3], np.nan), **CLOSE)


@EACH_KIND
def test_missing_values_in_one_feature_only(mine, peer, kind):
    X, y = load("wine")
    X = X.copy()
    X[y == 1, 0] = np.nan
    X[:, 3] = np.nan
    ours, theirs = fit_pair(mine, peer, kind + "Classifier", X, y)
    for a, b in zip(trees_of(ours), trees_of(theirs), strict=True):
        assert_same_tree(a, b)
    assert_same_answers(ours, theirs, some_values_missing(X, 0.5), rtol=0, atol=0)


@EACH_KIND
def test_labels_of_several_outputs(mine, peer, kind):
    X, y = load("iris")
    labels = np.column_stack([np.array(["c", "a", "b"])[y], np.where(X[:, 1] > 3, "wide", "slim")])
    ours, theirs = fit_pair(mine, peer, kind + "Classifier", X[:, 2:], labels, max_depth=3)
    for a, b in zip(ours.classes_, theirs.classes_, strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(ours.n_classes_, theirs.n_classes_)
    np.testing.assert_array_equal(ours.predict(X[:, 2:]), theirs.predict(X[:, 2:]))
    for a, b in zip(ours.predict_proba(X[:, 2:]), theirs.predict_proba(X[:, 2:]), strict=True):
        np.testing.assert_array_equal(a, b)


OUT_OF_BAG = [
    ("RandomForestClassifier", "gini", 1),
    ("RandomForestClassifier", "entropy", 2),
    ("ExtraTreesClassifier", "gini", 2),
    ("RandomForestRegressor", "squared_error", 2),
    ("RandomForestRegressor", "poisson", 1),
    ("RandomForestRegressor", "absolute_error", 1),
    ("ExtraTreesRegressor", "squared_error", 2),
]


@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize(("kind", "criterion", "n_outputs"), OUT_OF_BAG)
def test_out_of_bag(kind, criterion, n_outputs, missing):
    X, y = load("diabetes")
    if kind.endswith("Classifier"):
        y = (y > 140).astype(int)
    X, y = X[:150], y[:150]
    if n_outputs > 1:
        y = np.column_stack([y, y[::-1]])
    X = some_values_missing(X, missing)
    ours, theirs = fit_pair(
        forest, sklearn.ensemble, kind, X, y,
        criterion=criterion, bootstrap=True, oob_score=True, max_features=0.5,
    )  # fmt: skip
    attribute = (
        "oob_prediction_" if hasattr(theirs, "oob_prediction_") else "oob_decision_function_"
    )
    assert_same_arrays(getattr(ours, attribute), getattr(theirs, attribute), **CLOSE)
    assert ours.oob_score_ == pytest.approx(theirs.oob_score_, abs=TOLERANCE)


@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("kind", ["DecisionTree", "ExtraTree"])
@pytest.mark.parametrize("criterion", cases.CRITERIA)
def test_pruning_path(kind, criterion, missing):
    is_classifier = criterion in cases.CLASSIFICATION
    X, y = load("breast_cancer" if is_classifier else "diabetes")
    X = some_values_missing(X, missing)
    weight = np.random.default_rng(0).integers(0, 3, len(y))
    kind += "Classifier" if is_classifier else "Regressor"
    ours, theirs = (
        getattr(home, kind)(criterion=criterion, random_state=0, min_samples_leaf=2)
        for home in (cart, sklearn.tree)
    )
    a, b = (model.cost_complexity_pruning_path(X, y, weight) for model in (ours, theirs))
    assert_same_arrays(a.ccp_alphas, b.ccp_alphas, **CLOSE)
    assert_same_arrays(a.impurities, b.impurities, **CLOSE)
    steps = b.ccp_alphas[[1, len(b.ccp_alphas) // 2, -2]]
    for alpha in np.maximum(steps, 0) * (1 + 1e-9):  # rounding may put 0 below 0
        a, b = (m.set_params(ccp_alpha=alpha).fit(X, y, weight).tree_ for m in (ours, theirs))
        assert_same_tree(a, b)


@pytest.mark.parametrize("kind", ["RandomForest", "ExtraTrees"])
@pytest.mark.parametrize("task", ["Classifier", "Regressor"])
def test_the_model_does_not_depend_on_n_jobs(kind, task):
    X, y = load("digits")
    X = some_values_missing(X[:600])
    y = np.column_stack([y[:600], y[:600] % 2])
    one, two = (
        getattr(forest, kind + task)(
            12, n_jobs=n, bootstrap=True, oob_score=task == "Regressor", random_state=0
        ).fit(X, y)
        for n in (1, 2)
    )
    for a, b in zip(trees_of(one), trees_of(two), strict=True):
        assert_same_tree(a, b)
    assert_same_answers(one, two, X, rtol=0, atol=0)
    if task == "Regressor":
        np.testing.assert_array_equal(one.oob_prediction_, two.oob_prediction_)
