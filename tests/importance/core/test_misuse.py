"""What is not the forest, the table or the rows that an importance is of: caught, or put right."""

import inspect
import warnings
from functools import partial

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn import ensemble as peers
from sklearn.base import clone
from sklearn.feature_selection import SelectKBest, f_regression
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import cartwood
import importance
from cart import DecisionTreeClassifier, DecisionTreeRegressor
from forest import (
    BaggingClassifier,
    BaggingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from forest.inference.training_rows import row_fingerprints
from importance import (
    compare,
    conditional_permutation,
    conditional_test,
    drop_column,
    forest_permutation,
    held_out_permutation,
    mdi,
    oob_permutation,
    optimism,
    over_data,
    permutation_test,
    select_features,
    shadow,
    unbiased_mdi,
)

BOTH = pytest.mark.parametrize("kind", [RandomForestRegressor, peers.RandomForestRegressor])
EACH_REFIT = pytest.mark.parametrize(
    "function",
    [
        *(over_data, permutation_test, select_features, shadow, importance.janitza),
        *(drop_column, conditional_test),
    ],
)
OF_A_TABLE = [
    *(unbiased_mdi, optimism, oob_permutation, forest_permutation, held_out_permutation),
    *(conditional_permutation, drop_column, compare, over_data, permutation_test),
    *(select_features, shadow, importance.janitza),
]


def table(n=80, seed=0):
    X = np.random.RandomState(seed).normal(size=(n, 4)).astype(np.float32)
    return X, 2.0 * X[:, 3] + X[:, 0]


def classes(n=200, seed=0):
    X, _ = table(n, seed)
    return X, (X[:, 3] > 0.0).astype(int)


# ------------------------------------------------------------ the forest that was fitted

CHANGED = {
    "drop_column": lambda f, X, y: drop_column(f, X, y).values,
    "permutation_test": lambda f, X, y: permutation_test(f, X, y, n_repeats=5, random_state=0).null,
    "over_data": lambda f, X, y: over_data(f, X, y, n_subsamples=3, random_state=0).errors[
        "over data"
    ],
    "folds": lambda f, X, y: drop_column(f, X, y, on=2).values,
}


@pytest.mark.parametrize("name", CHANGED)
def test_parameters_are_those_of_the_fit(name):
    X, y = table()
    forest = RandomForestRegressor(5, max_depth=2, max_samples=0.5, random_state=0).fit(X, y)
    expected = CHANGED[name](forest, X, y)
    forest.set_params(max_depth=None, max_samples=None, min_samples_leaf=7, n_jobs=1)
    with pytest.warns(
        UserWarning, match="max_depth=2 to None.*are those of the forest as it was fitted"
    ) as caught:
        found = CHANGED[name](forest, X, y)
    np.testing.assert_array_equal(found, expected)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert forest.max_depth is None


def test_class_weights_in_bag_are_those_of_the_fit():
    X, y = classes(100)
    forest = RandomForestClassifier(5, class_weight="balanced_subsample", random_state=0).fit(X, y)
    expected = unbiased_mdi(forest, X, y).values
    with pytest.warns(UserWarning, match="class_weight"):
        found = unbiased_mdi(forest.set_params(class_weight=None), X, y).values
    np.testing.assert_array_equal(found, expected)


def test_what_does_not_shape_trees_may_change():
    X, y = table()
    forest = RandomForestRegressor(5, random_state=0).fit(X, y)
    forest.set_params(n_estimators=7, random_state=1, n_jobs=2, verbose=0, oob_score=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        drop_column(forest, X, y)


@pytest.mark.parametrize("change", [{"max_depth": 3}, {"bootstrap": False}, {"max_features": 1}])
def test_trees_of_scikit_learn_contradict_changed_parameters(change):
    X, y = table()
    forest = peers.RandomForestRegressor(5, random_state=0).fit(X, y).set_params(**change)
    for function in (drop_column, over_data, oob_permutation):
        with pytest.raises(ValueError, match=f"{next(iter(change))}=.*set_params"):
            function(forest, X, y)


@pytest.mark.parametrize("change", [{"max_samples": 0.5}, {"class_weight": "balanced"}])
def test_draws_of_scikit_learn_contradict_changed_parameters(change):
    X, y = classes(101)
    forest = peers.RandomForestClassifier(5, random_state=0).fit(X, y).set_params(**change)
    with pytest.raises(ValueError, match=next(iter(change))):
        over_data(forest, X, y)


def test_class_weights_of_scikit_learn_are_seen_in_the_leaves():
    X, y = classes(101)
    forest = peers.RandomForestClassifier(5, class_weight="balanced_subsample", random_state=0)
    with pytest.raises(ValueError, match="class_weight was changed"):
        unbiased_mdi(forest.fit(X, y).set_params(class_weight=None), X, y)


def test_trees_of_several_fits_are_not_grown_anew():
    X, y = table()
    forest = RandomForestRegressor(5, random_state=0, warm_start=True).fit(X, y)
    forest.set_params(n_estimators=8, max_depth=2).fit(X, y)
    oob_permutation(forest, X, y)
    with pytest.raises(TypeError, match="several sets of parameters"):
        drop_column(forest, X, y)
    with pytest.raises(TypeError, match="several sets of parameters"):
        over_data(forest, X, y)


# ------------------------------------------------------------ held out is held out


@BOTH
@pytest.mark.parametrize("share", [1.0, 0.3])
def test_drop_column_refuses_training_rows_in_any_order(kind, share):
    X, y = table()
    forest = kind(5, random_state=0).fit(X, y)
    rows = np.random.RandomState(0).permutation(80)[: int(80 * share)]
    with pytest.raises(ValueError, match=r"are in the table .* not held out"):
        drop_column(forest, X, y, on=(X[rows], y[rows]))
    drop_column(forest, X, y, on=table(seed=1))


@BOTH
@pytest.mark.parametrize("is_shuffled", [False, True])
def test_held_out_rows_are_not_the_training_table(kind, is_shuffled):
    X, y = table()
    forest = kind(5, random_state=0).fit(X, y)
    rows = np.random.RandomState(0).permutation(80) if is_shuffled else np.arange(80)
    with pytest.raises(ValueError, match="not held out"):
        held_out_permutation(forest, X[rows], y[rows])
    with pytest.raises(ValueError, match="not held out"):
        held_out_permutation(forest, X[rows[:40]], y[rows[:40]], training=(X, y))
    held_out_permutation(forest, *table(seed=1))
    held_out_permutation(forest, *table(200, seed=1))


def test_few_training_rows_are_counted():
    X, y = table()
    forest = RandomForestRegressor(5, random_state=0).fit(csr_matrix(X), y)
    X_new, y_new = table(seed=1)
    X_new[[3, 40]], y_new[[3, 40]] = X[[5, 9]], y[[5, 9]]
    with pytest.warns(UserWarning, match="2 of 80 rows are in the table") as caught:
        held_out_permutation(forest, X_new, y_new)
    assert caught[0].filename == __file__


def test_fresh_rows_of_few_values_are_held_out():
    def draw(seed):
        X = np.random.RandomState(seed).randint(2, size=(150, 4)).astype(np.float32)
        return X, X[:, 0].astype(int)

    forest = RandomForestClassifier(5, random_state=0).fit(*draw(0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        held_out_permutation(forest, *draw(1))


def test_stumps_of_scikit_learn_take_fresh_rows():
    forest = peers.RandomForestRegressor(20, max_depth=1, random_state=0).fit(*table())
    held_out_permutation(forest, *table(seed=1))
    held_out_permutation(forest, *table(2000, seed=1))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_fingerprints_of_rows(dtype):
    X = np.random.RandomState(0).randint(-2, 3, size=(60, 5)).astype(dtype)
    y = np.random.RandomState(1).randint(3, size=60).astype(float)
    found = row_fingerprints(X, y)
    _, expected = np.unique(np.column_stack((X, y)), axis=0, return_inverse=True)
    equal = found[:, np.newaxis] == found
    np.testing.assert_array_equal(equal, expected.ravel()[:, np.newaxis] == expected.ravel())
    np.testing.assert_array_equal(row_fingerprints(csr_matrix(X), y), found)
    np.testing.assert_array_equal(row_fingerprints(np.where(X == 0, -0.0, X), y, dtype), found)
    rows = np.random.RandomState(2).permutation(60)
    np.testing.assert_array_equal(row_fingerprints(X[rows], y[rows]), found[rows])


# ------------------------------------------------------------ the table of the fit


@BOTH
@EACH_REFIT
def test_refits_take_the_table_of_the_fit(kind, function):
    X, y = table()
    forest = kind(5, random_state=0).fit(X, y)
    order = np.random.RandomState(0).permutation(80)
    for other in ((X, y[order]), (X[order], y[order]), (X + 1.0, y)):
        with pytest.raises(ValueError, match="not the table that the forest was fitted on"):
            function(forest, *other)


@pytest.mark.parametrize("n_classes", [1, 2])
def test_stumps_tell_their_table_exactly(n_classes):
    X, y = table() if n_classes == 1 else classes()
    kind = peers.RandomForestRegressor if n_classes == 1 else peers.RandomForestClassifier
    for seed in range(10):
        forest = kind(10, max_depth=1, random_state=seed).fit(X, y)
        oob_permutation(forest, X, y)
        order = np.random.RandomState(seed).permutation(len(y))
        with pytest.raises(ValueError, match="not the table"):
            oob_permutation(forest, X, y[order])


@pytest.mark.parametrize("criterion", ["squared_error", "absolute_error", "poisson"])
@pytest.mark.parametrize("bootstrap", [True, False])
def test_every_criterion_knows_its_table(criterion, bootstrap):
    X, y = table()
    y, weight = np.exp(y), np.random.RandomState(0).randint(3, size=80)
    params = {"criterion": criterion, "bootstrap": bootstrap, "min_samples_leaf": 3}
    forest = peers.RandomForestRegressor(4, random_state=0, **params)
    forest.fit(X, y, sample_weight=weight)
    drop_column(forest, X, y, on=2)
    with pytest.raises(ValueError, match="not the table"):
        drop_column(forest, X, y[::-1], on=2)


def test_a_forest_of_two_tables_has_none():
    X, y = table()
    forest = RandomForestRegressor(5, random_state=0, warm_start=True).fit(X, y)
    forest.set_params(n_estimators=10).fit(X, y)
    oob_permutation(forest, X, y)
    other = table(seed=1)
    forest.set_params(n_estimators=15).fit(*other)
    for some in ((X, y), other):
        with pytest.raises(ValueError, match="several tables"):
            oob_permutation(forest, *some)
        with pytest.raises(ValueError, match="not held out"):
            held_out_permutation(forest, *some)
    held_out_permutation(forest, *table(seed=2))
    mdi(forest)
    rows, targets = np.vstack((X, other[0])), np.concatenate((y, other[1])).astype(np.float64)
    order = np.argsort(row_fingerprints(rows, targets))  # that in which the forest keeps them
    found = row_fingerprints(rows[order], targets[order])
    np.testing.assert_array_equal(found, forest._row_fingerprints)
    forest.set_params(n_estimators=20).fit(rows[order], targets[order])
    with pytest.raises(ValueError, match="several tables"):
        oob_permutation(forest, rows[order], targets[order])


# ------------------------------------------------------------ Bagging and strangers


@pytest.mark.parametrize("kind", [BaggingClassifier, peers.BaggingClassifier])
@pytest.mark.parametrize("drawn", [{"bootstrap_features": True}, {"max_features": 0.5}])
def test_columns_that_bagging_drew_are_those_of_the_table(kind, drawn):
    X, y = classes()
    bagging = kind(n_estimators=30, random_state=0, **drawn).fit(X, y)
    expected = np.zeros(4)
    for tree, columns in zip(bagging.estimators_, bagging.estimators_features_, strict=True):
        np.add.at(expected, columns, tree.feature_importances_)
    np.testing.assert_allclose(mdi(bagging).values, expected / expected.sum())
    for found in (
        held_out_permutation(bagging, *classes(seed=1)),
        oob_permutation(bagging, X, y),
        unbiased_mdi(bagging, X, y),
        forest_permutation(bagging, X, y, random_state=0),
        conditional_permutation(bagging, X, y),
    ):
        assert found.values.argmax() == 3
        assert np.delete(np.abs(found.values), 3).max() < 0.2 * found.values[3]
    with pytest.raises(ValueError, match="not the table"):
        oob_permutation(bagging, X, y[::-1])
    with pytest.raises(ValueError, match="not held out"):
        held_out_permutation(bagging, X, y)


def test_bagging_of_all_columns_is_a_forest():
    X, y = table()
    bagging = BaggingRegressor(n_estimators=8, random_state=0).fit(X, y)
    forest = RandomForestRegressor(8, random_state=1)
    counts = [np.bincount(rows, minlength=80) for rows in bagging.estimators_samples_]
    forest.fit(X, y, in_bag=np.array(counts))
    a, b = oob_permutation(bagging, X, y), oob_permutation(forest, X, y)
    # Trees draw the order of features by their seeds: only ties differ.
    np.testing.assert_allclose(a.per_tree, b.per_tree, atol=0.2 * b.values.max())


@pytest.mark.parametrize("kind", [BaggingRegressor, peers.BaggingRegressor])
@pytest.mark.parametrize(
    "options", [{"criterion": "absolute_error"}, {"monotonic_cst": [-1, 1, 0, 0]}]
)
def test_bagging_of_trees_of_other_values_knows_its_table(kind, options):
    X, y = table()
    tree = DecisionTreeRegressor(max_depth=3, **options)
    bagging = kind(tree, n_estimators=5, random_state=0).fit(X, y)
    assert np.isfinite(oob_permutation(bagging, X, y).values).all()
    with pytest.raises(ValueError, match="not the table"):
        oob_permutation(bagging, X[::-1], y)


def test_bagging_of_trees_that_weigh_classes_is_told_from_another_table():
    X, y = classes()
    for name, value in (("class_weight", "balanced"), ("priors", [0.3, 0.7])):
        bagging = BaggingClassifier(DecisionTreeClassifier(**{name: value}), n_estimators=3)
        with pytest.raises(TypeError, match=f"trees with {name} weights rows tree by tree"):
            oob_permutation(bagging.fit(X, y), X, y)
        assert mdi(bagging).values.argmax() == 3


@EACH_REFIT
@pytest.mark.parametrize("kind", [BaggingRegressor, peers.BaggingRegressor])
def test_bagging_is_not_grown_anew(kind, function):
    X, y = table()
    with pytest.raises(
        TypeError, match="BaggingRegressor does not support, because it draws columns and rows"
    ):
        function(kind(n_estimators=3).fit(X, y), X, y)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (peers.IsolationForest(n_estimators=5), "does not predict a target"),
        (peers.RandomTreesEmbedding(5), "does not predict a target"),
        (peers.GradientBoostingRegressor(n_estimators=3), "not a random forest"),
        (peers.HistGradientBoostingRegressor(max_iter=3), "a fitted random forest"),
        (peers.BaggingRegressor(LinearRegression(), n_estimators=2), "not a random forest"),
        (BaggingRegressor(RandomForestRegressor(2), n_estimators=2), "not a random forest"),
        (StandardScaler(), "a fitted random forest"),
    ],
)
@pytest.mark.parametrize("function", OF_A_TABLE)
def test_strangers_are_refused_in_words(function, model, words):
    X, y = table(20)
    model = clone(model).fit(X, y)
    for call in (lambda: function(model, X, y), lambda: mdi(model)):
        with pytest.raises(TypeError, match=words):
            call()


@pytest.mark.parametrize(
    "kind",
    [
        *(RandomForestRegressor, peers.RandomForestRegressor),
        *(RandomForestClassifier, BaggingRegressor, peers.BaggingRegressor),
    ],
)
@pytest.mark.parametrize("function", OF_A_TABLE)
def test_several_outputs_are_refused_in_the_same_words(function, kind):
    X, _ = table(20)
    model = kind(n_estimators=3).fit(X, (X[:, :2] > 0).astype(int))
    words = r"predicts 2 outputs; take one of them, of_output\("
    with pytest.raises(TypeError, match=words + "|grown for several outputs; fit a forest for one"):
        function(model, X, X[:, :2] > 0)
    with pytest.raises(TypeError, match=words):
        importance.shap_values(model, X)


# ------------------------------------------------------------ weights


@pytest.mark.parametrize(
    ("weight", "words"),
    [
        (np.full(60, 1e308), "no finite sum; divide them by the largest"),
        (np.nan, "contain NaN"),
        (0.0, "at least one"),
    ],
)
@pytest.mark.parametrize(
    "function",
    [
        *(importance.oob_permutation, importance.conditional_permutation, drop_column),
        *(importance.forest_permutation, importance.unbiased_mdi, importance.optimism),
    ],
)
def test_weights_without_a_finite_sum_are_refused(function, weight, words):
    X, y = table(60)
    model = RandomForestRegressor(5, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match=words):
        function(model, X, y, sample_weight=weight)


@pytest.mark.parametrize(
    "function", [importance.conditional_permutation, importance.forest_permutation]
)
def test_huge_weights_count_as_their_shares(function):
    """Their sum is finite, but those of losses and squares were not."""
    X, y = table(60)
    model = RandomForestRegressor(5, random_state=0).fit(X, y)
    huge = function(model, X, y, sample_weight=np.full(60, 2.0**1016), random_state=0)
    plain = function(model, X, y, sample_weight=np.ones(60), random_state=0)
    np.testing.assert_array_equal(huge.values, plain.values)
    np.testing.assert_array_equal(huge.standard_error, plain.standard_error)


# ------------------------------------------------------------ threads

WITH_THREADS = [
    name
    for name in cartwood.__all__
    if inspect.isfunction(getattr(cartwood, name))
    and "n_jobs" in inspect.signature(getattr(cartwood, name)).parameters
]


@pytest.mark.parametrize("n_jobs", ["a", 1.5])
@pytest.mark.parametrize("name", WITH_THREADS)
def test_a_number_of_threads_that_is_none_is_named(name, n_jobs):
    X, y = table(60)
    kind = DecisionTreeRegressor if name == "cv_prune" else RandomForestRegressor
    model = kind(random_state=0).fit(X, y)
    rows = (X,) if name == "shap_values" else (X, y)
    with pytest.raises(ValueError, match=f"n_jobs={n_jobs!r} must be a whole number of threads"):
        getattr(cartwood, name)(model, *rows, n_jobs=n_jobs)


# ------------------------------------------------------------ pipelines, searches


def test_searches_are_their_best_forest():
    X, y = table()
    search = GridSearchCV(RandomForestRegressor(5, random_state=0), {"max_depth": [2, 4]}, cv=2)
    search.fit(X, y)
    for function in (oob_permutation, drop_column, shadow):
        options = {"random_state": 0} if function is shadow else {}
        a, b = (function(m, X, y, **options) for m in (search, search.best_estimator_))
        np.testing.assert_array_equal(
            getattr(a, "values", getattr(a, "rounds", None)),
            getattr(b, "values", getattr(b, "rounds", None)),
        )


def test_pipelines_are_the_forest_behind_their_steps():
    pandas = pytest.importorskip("pandas")
    X, y = table()
    X = pandas.DataFrame(X, columns=["a", "b", "c", "d"])
    forest = RandomForestRegressor(5, random_state=0)
    pipeline = make_pipeline(SelectKBest(f_regression, k=2), StandardScaler(), forest).fit(X, y)
    inner = pipeline[:-1].transform(X)
    for function in (unbiased_mdi, oob_permutation, drop_column):
        found = function(pipeline, X, y)
        np.testing.assert_array_equal(found.values, function(forest, inner, y).values)
        assert list(found.feature_names) == ["a", "d"]
    X_new = pandas.DataFrame(table(seed=1)[0], columns=X.columns)
    held_out_permutation(pipeline, X_new, table(seed=1)[1])
    with pytest.raises(ValueError, match="not held out"):
        held_out_permutation(pipeline, X, y)
    assert list(mdi(pipeline).feature_names) == ["a", "d"]


@pytest.mark.parametrize("function", [compare, oob_permutation, held_out_permutation])
def test_the_steps_of_a_pipeline_run_once(function):
    seen = []
    step = FunctionTransformer(lambda X: seen.append(len(X)) or X)
    pipeline = make_pipeline(step, RandomForestRegressor(5, random_state=0)).fit(*table())
    seen.clear()
    function(pipeline, *table(seed=int(function is held_out_permutation)))
    assert len(seen) == 1


@pytest.mark.parametrize(
    "function",
    [
        over_data,
        permutation_test,
        select_features,
        shadow,
        conditional_test,
        partial(conditional_test, method="drop"),
        partial(drop_column, on=3),
    ],
)
def test_steps_before_a_forest_would_have_to_be_refitted(function):
    X, y = table()
    pipeline = make_pipeline(StandardScaler(), RandomForestRegressor(5, random_state=0)).fit(X, y)
    with pytest.raises(TypeError, match=r"pipeline\[:-1\]"):
        function(pipeline, X, y)
