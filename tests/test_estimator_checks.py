"""Our models are scikit-learn estimators: its own checks, and its tools around them."""

import pickle

import numpy as np
import pytest
from scipy.sparse import csr_array, csr_matrix
from sklearn import config_context, ensemble, tree
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.compose import TransformedTargetRegressor
from sklearn.feature_selection import RFE, SelectFromModel
from sklearn.inspection import permutation_importance
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

from cart import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreeClassifier,
    ExtraTreeRegressor,
    PrunedTreeClassifier,
    PrunedTreeRegressor,
)
from forest import (
    BaggingClassifier,
    BaggingRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from tests.data import load

MODELS = [
    DecisionTreeClassifier(random_state=0),
    DecisionTreeRegressor(random_state=0),
    RandomForestClassifier(5, random_state=0),
    RandomForestRegressor(5, random_state=0),
]
EXTRA = [
    ExtraTreeClassifier(random_state=0),
    ExtraTreeRegressor(random_state=0),
    ExtraTreesClassifier(5, random_state=0),
    ExtraTreesRegressor(5, random_state=0),
]
PRUNED = [PrunedTreeClassifier(cv=3, random_state=0), PrunedTreeRegressor(cv=3, random_state=0)]
BAGGING = [
    BaggingClassifier(n_estimators=5, random_state=0),
    BaggingRegressor(n_estimators=5, random_state=0),
]
IDS = [type(model).__name__ for model in MODELS]
EACH_MODEL = pytest.mark.parametrize("model", MODELS, ids=IDS)


def expected_failures(model):
    """Checks that cannot pass, each with its reason."""
    if model in PRUNED:
        reason = "a row of weight 2 is in one fold, two rows may be in two: passes by luck alone"
        return {
            f"check_sample_weight_equivalence_on_{kind}_data": reason
            for kind in ("dense", "sparse")
        }
    if not getattr(model, "bootstrap", False):
        return {}
    reason = "weights are how likely the bootstrap draws a row, as in scikit-learn >= 1.9"
    return {
        f"check_sample_weight_equivalence_on_{kind}_data": reason for kind in ("dense", "sparse")
    }


@parametrize_with_checks(
    MODELS + EXTRA + PRUNED + BAGGING, expected_failed_checks=expected_failures
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def table_for(model):
    return load("wine" if is_classifier(model) else "diabetes")


@EACH_MODEL
def test_grid_search_in_a_pipeline(model):
    X, y = table_for(model)
    name = type(model).__name__.lower()
    search = GridSearchCV(
        make_pipeline(StandardScaler(), clone(model)), {f"{name}__max_depth": [1, 4]}, cv=3
    ).fit(X, y)
    best = search.best_estimator_[-1]
    assert search.score(X, y) == best.score(search.best_estimator_[:-1].transform(X), y)
    assert search.best_score_ > 0.2


@EACH_MODEL
def test_clone_takes_parameters_only(model):
    X, y = table_for(model)
    fitted = clone(model).set_params(max_depth=3, min_samples_leaf=2).fit(X, y)
    copy = clone(fitted)
    assert copy.get_params() == fitted.get_params()
    assert not hasattr(copy, "n_features_in_")


@EACH_MODEL
def test_pickle_keeps_the_fit(model):
    X, y = table_for(model)
    fitted = clone(model).fit(X, y)
    copy = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(copy.predict(X), fitted.predict(X))
    np.testing.assert_array_equal(copy.feature_importances_, fitted.feature_importances_)
    assert copy.get_params() == fitted.get_params()


@EACH_MODEL
def test_kind(model):
    assert is_classifier(model) == ("Classifier" in type(model).__name__)
    assert is_regressor(model) != is_classifier(model)


@EACH_MODEL
def test_feature_names(model):
    pd = pytest.importorskip("pandas")
    X, y = table_for(model)
    frame = pd.DataFrame(X, columns=[f"f{i}" for i in range(X.shape[1])])
    fitted = clone(model).fit(frame, y)
    assert fitted.feature_names_in_.tolist() == list(frame.columns)
    np.testing.assert_array_equal(fitted.predict(frame), clone(model).fit(X, y).predict(X))


@EACH_MODEL
def test_around_it(model):
    """Cross-validation, selection of features and permutation importance take it."""
    X, y = table_for(model)
    assert cross_val_score(clone(model), X, y, cv=3).shape == (3,)
    assert SelectFromModel(clone(model)).fit(X, y).get_support().any()
    assert RFE(clone(model), n_features_to_select=2).fit(X, y).support_.sum() == 2
    fitted = clone(model).fit(X, y)
    assert permutation_importance(fitted, X, y, n_repeats=2).importances_mean.max() > 0


@pytest.mark.parametrize(
    "asked", [{}, {"max_bins": 255}, {"missing": "majority"}, {"categorical_features": [0]}]
)
@EACH_MODEL
def test_the_tag_of_sparse_tables_is_true(model, asked):
    X, y = table_for(model)
    asking = clone(model).set_params(**asked)
    assert get_tags(asking).input_tags.sparse == (not asked)
    if asked:
        with pytest.raises(ValueError, match="dense table"):
            asking.fit(csr_array(X), y)


@pytest.mark.parametrize("model", MODELS + EXTRA, ids=lambda model: type(model).__name__)
def test_tags_are_scikit_learns(model):
    peers = {name: getattr(module, name) for module in (tree, ensemble) for name in module.__all__}
    assert get_tags(model) == get_tags(peers[type(model).__name__]())


@pytest.mark.parametrize("model", PRUNED, ids=lambda model: type(model).__name__)
def test_pruned_trees_say_that_they_take_one_output(model):
    assert not get_tags(model).target_tags.multi_output


@EACH_MODEL
def test_groups_of_a_search_are_the_splitters(model):
    """Under metadata routing, too; a forest that shall draw by them asks for them."""
    X, y = table_for(model)
    groups = np.arange(len(y)) // 5
    with config_context(enable_metadata_routing=True):
        routed = cross_val_score(clone(model), X, y, cv=GroupKFold(3), params={"groups": groups})
        expected = [
            clone(model).fit(X[train], y[train]).score(X[test], y[test])
            for train, test in GroupKFold(3).split(X, y, groups)
        ]
        np.testing.assert_array_equal(routed, expected)
        if hasattr(model, "n_estimators"):
            asking = make_pipeline(clone(model).set_fit_request(groups=True))
            by_group = clone(model).fit(X, y, groups=groups).predict(X)
            found = asking.fit(X, y, groups=groups).predict(X)
            np.testing.assert_array_equal(found, by_group)


@EACH_MODEL
def test_infinities_are_refused_whatever_is_assumed(model):
    X, y = table_for(model)
    X = np.where(X[3, 1] == X, 1e300, X)
    with config_context(assume_finite=True):
        for table in (X, X.astype(object)):
            with pytest.raises(ValueError, match="infinity"):
                clone(model).fit(table, y)


@EACH_MODEL
def test_decision_paths_are_of_the_sparse_interface_at_hand(model):
    X, y = table_for(model)
    fitted = clone(model).fit(X, y)
    for interface, kind in (("sparray", csr_array), ("spmatrix", csr_matrix)):
        with config_context(sparse_interface=interface):
            paths = fitted.decision_path(X)
        assert type(paths[0] if isinstance(paths, tuple) else paths) is kind


def test_transformed_target():
    X, y = load("diabetes")
    model = TransformedTargetRegressor(DecisionTreeRegressor(), func=np.log, inverse_func=np.exp)
    np.testing.assert_allclose(model.fit(X, y).predict(X), y)
