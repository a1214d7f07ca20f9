"""Categorical models as scikit-learn's on columns of 0 and 1: the same nodes and predictions."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.pipeline import Pipeline

import cart
import forest
from forest.interop.bridge import to_sklearn
from tests.agreement.same import trees_of

RNG = np.random.default_rng(0)
N = 400
CITY = RNG.choice(list("abcdefghijklmn"), N)
TABLE = pd.DataFrame(
    {
        "size": RNG.normal(size=N),
        "city": np.where(RNG.random(N) < 0.1, None, CITY),
        "age": np.where(RNG.random(N) < 0.1, np.nan, RNG.normal(size=N)),
        "kind": RNG.choice(["x", "y", "z"], N),
    }
)
NUMBER = TABLE["size"] + np.isin(CITY, list("acf")) + (TABLE["kind"] == "y")
CLASS = np.digitize(NUMBER, [0.3, 1.0])
NEW = TABLE.assign(city=RNG.permutation(np.where(RNG.random(N) < 0.2, "new", CITY)))
# A classifier of few classes and a regressor, single and many; of a kind the kernels are compiled.
MODELS = (
    cart.DecisionTreeClassifier(random_state=0, categorical_features=["city", "kind"]),
    forest.RandomForestClassifier(8, random_state=0, categorical_features=["city", "kind"]),
    forest.RandomForestRegressor(8, random_state=0, categorical_features=["city", "kind"]),
)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_the_same_nodes_and_predictions(model):
    y = NUMBER if isinstance(model, forest.RandomForestRegressor) else CLASS
    model.fit(TABLE, y)
    theirs = to_sklearn(model, categories="indicators")
    assert isinstance(theirs, Pipeline)
    for table in (TABLE, NEW, TABLE[TABLE.columns[::-1]]):
        mine = table[TABLE.columns]
        np.testing.assert_array_equal(theirs.predict(table), model.predict(mine))
        if hasattr(model, "classes_"):
            np.testing.assert_array_equal(theirs.predict_proba(table), model.predict_proba(mine))
    n_subsets = 0
    for tree, other in zip(trees_of(model), trees_of(theirs[-1]), strict=True):
        assert other.node_count == tree.node_count
        np.testing.assert_array_equal(other.children_left, tree.children_left)
        n_subsets += np.count_nonzero(tree.is_subset)
    columns = theirs[0].transform(TABLE)
    names = theirs[0].get_feature_names_out()
    assert list(names[:2]) == ["size", "age"]
    assert all("city " in name or "kind " in name for name in names[2:])
    assert columns.shape == (N, len(names))
    assert 0 < len(names) - 2 <= n_subsets
    assert set(np.unique(columns[:, 2:][~np.isnan(columns[:, 2:])])) == {0.0, 1.0}


def test_one_column_for_a_subset_that_occurs_twice():
    X = pd.DataFrame({"kind": ["x", "y"] * 20})
    y = np.tile([0, 1], 20)
    model = forest.RandomForestClassifier(5, random_state=0, categorical_features=["kind"])
    theirs = to_sklearn(model.fit(X, y), categories="indicators")
    assert theirs[0].transform(X).shape[1] <= 2  # one, or its complement
    assert "kind " in theirs[0].get_feature_names_out()[0]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("city", ["a", None])
def test_a_table_of_categories_without_a_split_has_a_column(model, city):
    """That every row has a 1 in, but for missing values."""
    X = pd.DataFrame({"city": [city] * 19 + ["a"], "kind": "x"})
    y = np.ones(20, int)
    theirs = to_sklearn(clone(model).fit(X, y), categories="indicators")
    assert theirs[0].get_feature_names_out().tolist() == ["city not in {}"]
    assert np.nanmin(theirs[0].transform(X)) == 1.0
    np.testing.assert_array_equal(theirs.predict(X), y)


def test_words_for_who_has_not_asked():
    model = MODELS[0].fit(TABLE, CLASS)
    with pytest.raises(ValueError, match=r'to_sklearn\(\.\.\., categories="indicators"\)'):
        to_sklearn(model)
    theirs = to_sklearn(model, categories="indicators")
    with pytest.raises(ValueError, match="yet now missing:\n- city"):
        theirs.predict(TABLE.drop(columns="city"))
    for table in (TABLE.to_numpy()[:, :3], np.tile(TABLE.to_numpy(), 2)):
        with pytest.raises(ValueError, match="expecting 4 features"):
            theirs.predict(table)
    with pytest.raises(TypeError, match="cross-validate or search with that model"):
        clone(theirs)
    with pytest.raises(ValueError, match="but is 'codes'"):
        to_sklearn(model, categories="codes")
    plain = cart.DecisionTreeClassifier(random_state=0).fit(TABLE[["size"]], CLASS)
    assert not isinstance(to_sklearn(plain, categories="indicators"), Pipeline)
