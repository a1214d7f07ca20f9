"""One output of several: `of_output`."""

import numpy as np
import pytest
import sklearn.ensemble as peers
import sklearn.tree
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import cartwood
from cartwood import (
    BaggingRegressor,
    DecisionTreeRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    compare,
    conditional_permutation,
    drop_column,
    forest_permutation,
    held_out_permutation,
    mdi,
    of_output,
    oob_permutation,
    optimism,
    over_data,
    shap_values,
    surrogate_importance,
    unbiased_mdi,
)

FORESTS = [RandomForestClassifier, RandomForestRegressor]
FORESTS += [peers.RandomForestClassifier, peers.RandomForestRegressor]


def table(n=150, missing=0.0):
    """X, and outputs of two and of three classes."""
    rng = np.random.RandomState(0)
    X = rng.normal(size=(n, 4)).round(2)
    first, second = X[:, 0], X[:, 1] + 0.3 * rng.normal(size=n)
    X[rng.rand(*X.shape) < missing] = np.nan
    return X, np.column_stack([first > 0, np.searchsorted([-0.5, 0.5], second)]).astype(int)


@pytest.mark.parametrize("kind", FORESTS)
@pytest.mark.parametrize(
    "measure",
    [
        lambda f, X, y: oob_permutation(f, X, y),
        lambda f, X, y: forest_permutation(f, X, y, random_state=0),
        lambda f, X, y: conditional_permutation(f, X, y, random_state=0),
        lambda f, X, y: unbiased_mdi(f, X, y),
        lambda f, X, y: held_out_permutation(f, X + 0.01, y),
    ],
    ids=["oob", "forest", "conditional", "ufi", "held_out"],
)
def test_outputs_that_are_equal_are_as_important_as_one(kind, measure):
    X, Y = table()
    Y = Y.astype(float)
    forests = [kind(20, random_state=0).fit(X, y) for y in (Y[:, 1], Y[:, [1, 1]])]
    expected = measure(forests[0], X, Y[:, 1])
    found = measure(of_output(forests[1], 1), X, Y[:, 1])
    np.testing.assert_allclose(found.values, expected.values, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.standard_error, expected.standard_error, rtol=1e-9)


@pytest.mark.parametrize("kind", FORESTS)
@pytest.mark.parametrize("output", [0, 1])
def test_an_output_is_explained_and_predicted_as_by_the_forest(kind, output):
    X, Y = table(missing=0.1)
    forest = kind(10, random_state=0).fit(X, Y)
    one = of_output(forest, output)
    np.testing.assert_array_equal(one.predict(X), forest.predict(X)[:, output])
    expected = forest.predict(X)[:, output]
    if hasattr(forest, "classes_"):
        expected = forest.predict_proba(X)[output]
        np.testing.assert_array_equal(one.predict_proba(X), expected)
    found = shap_values(one, X)
    np.testing.assert_allclose(found.values.sum(axis=1) + found.base_value, expected, atol=1e-12)


@pytest.mark.parametrize("library", [cartwood, sklearn.tree])
def test_an_output_of_a_tree(library):
    X, Y = table()
    tree = library.DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, Y)
    one = of_output(tree, 1)
    found = shap_values(one, X)
    total = found.values.sum(axis=1) + found.base_value
    np.testing.assert_allclose(total, tree.predict_proba(X)[1], atol=1e-12)
    np.testing.assert_array_equal(one.predict(X), tree.predict(X)[:, 1])


def test_an_output_of_bagging_on_some_columns_and_behind_a_pipeline():
    X, Y = table()
    bagging = BaggingRegressor(DecisionTreeRegressor(), 20, max_features=0.5, random_state=0)
    values = oob_permutation(of_output(bagging.fit(X, Y), 1), X, Y[:, 1]).values
    assert values.argmax() == 1
    pipeline = make_pipeline(StandardScaler(), RandomForestRegressor(20, random_state=0))
    values = oob_permutation(of_output(pipeline.fit(X, Y), 0), X, Y[:, 0]).values
    assert values.argmax() == 0


def test_intervals_of_an_output():
    X, Y = table()
    Y = Y[:, [1, 1]].astype(float)
    forests = [
        RandomForestRegressor(20, min_samples_leaf=5, random_state=0).fit(X, y)
        for y in (Y[:, 0], Y)
    ]
    with pytest.raises(
        ValueError, match=r"take of_output\(forest, 0\).keep_leaves\(X, y\[:, 0\]\)"
    ):
        forests[1].predict_interval(X)
    one = of_output(forests[1], 1).keep_leaves(X, Y[:, 1])
    np.testing.assert_allclose(one.predict_interval(X), forests[0].predict_interval(X), rtol=1e-12)


def test_what_of_all_outputs_and_what_of_one():
    X, Y = table()
    forest = RandomForestClassifier(20, random_state=0, surrogates=1).fit(X, Y)
    one = of_output(forest, 1)
    np.testing.assert_array_equal(mdi(forest).values, forest.feature_importances_)
    with pytest.raises(TypeError, match="give mdi the forest itself"):
        mdi(one)
    assert surrogate_importance(one).values.sum() > 0.0
    assert optimism(one, X, Y[:, 1]).by_feature.argmax() != 1
    found = compare(one, X, Y[:, 1])
    assert found.left_out.keys() >= {"mdi", "drop_column"}
    for refitting in (drop_column, over_data):
        with pytest.raises(TypeError, match="grown for several outputs; fit a forest for one"):
            refitting(one, X, Y[:, 1])


def test_an_output_that_is_fitted_again_is_a_forest_like_others():
    X, Y = table()
    one = of_output(RandomForestClassifier(5, random_state=0).fit(X, Y), 1).fit(X, Y[:, 0])
    expected = RandomForestClassifier(5, random_state=0).fit(X, Y[:, 0])
    np.testing.assert_array_equal(mdi(one).values, expected.feature_importances_)


def test_the_column_of_y_must_be_that_of_the_output():
    X, Y = table()
    forest = RandomForestRegressor(30, random_state=0, oob_score=True).fit(X, Y)
    one = of_output(forest, 0)
    assert not hasattr(one, "oob_prediction_")  # of all outputs
    with pytest.raises(ValueError, match="not the table that the forest was fitted on"):
        oob_permutation(one, X, Y[:, 1])
    with pytest.raises(ValueError, match="are not held out"):
        held_out_permutation(one, X, Y[:, 0])


def test_what_has_no_such_output_is_refused():
    X, Y = table()
    forest = RandomForestClassifier(3, random_state=0, class_weight="balanced").fit(X, Y)
    for output in (2, -1, 0.0, True, "first"):
        with pytest.raises(ValueError, match="output="):
            of_output(forest, output)
    with pytest.raises(ValueError, match=r"the model has 1 output\(s\)"):
        of_output(of_output(forest, 0), 0)
    for measure in (oob_permutation, held_out_permutation):
        with pytest.raises(TypeError, match="weights rows by the classes of all outputs"):
            measure(of_output(forest, 0), X, Y[:, 0])
    assert shap_values(of_output(forest, 0), X, out_of_bag=True).values.shape == (150, 4, 2)
    with pytest.raises(TypeError, match="neither a forest nor a tree"):
        of_output(StandardScaler().fit(X), 0)
