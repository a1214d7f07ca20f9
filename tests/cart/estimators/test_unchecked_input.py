"""`check_input=False`: what is then looked at all the same."""

import numpy as np
import pandas as pd
import pytest
import sklearn.tree
from scipy.sparse import csc_matrix, csr_matrix

import cart
from forest import RandomForestClassifier, RandomForestRegressor
from tests.data import load

NAMES = "DecisionTreeClassifier", "ExtraTreeClassifier", "DecisionTreeRegressor"


@pytest.mark.parametrize("kind", [list, pd.Series])
@pytest.mark.parametrize("name", NAMES)
def test_targets_need_not_be_arrays(name, kind):
    X, y = load("wine")
    X = X.astype(np.float32)
    ours, theirs = (getattr(package, name)(random_state=0) for package in (cart, sklearn.tree))
    found = ours.fit(X, kind(y), check_input=False).predict(X, check_input=False)
    np.testing.assert_array_equal(found, theirs.fit(X, kind(y), check_input=False).predict(X))


@pytest.mark.parametrize("convert", [np.float64, np.int64, ">f4", "list"])
@pytest.mark.parametrize("method", ["predict", "apply", "decision_path", "predict_proba"])
def test_rows_of_another_type_are_refused(method, convert):
    """In double precision a row could end in another leaf than `predict` sends it to."""
    X, y = load("wine")
    rows = X.tolist() if convert == "list" else X.astype(convert)
    for package in (cart, sklearn.tree):
        tree = package.DecisionTreeClassifier(random_state=0).fit(X, y)
        with pytest.raises(ValueError, match=r"X.dtype should be|X should be"):
            getattr(tree, method)(rows, check_input=False)


@pytest.mark.parametrize("convert", [csc_matrix, csr_matrix, np.asfortranarray])
def test_rows_may_be_stored_in_any_order(convert):
    X, y = load("wine")
    X = X.astype(np.float32)
    for kind in (cart.DecisionTreeClassifier, RandomForestClassifier, RandomForestRegressor):
        model = kind(random_state=0).fit(X, y)
        for rows in (X, X[:5]):
            for method in {"predict", "predict_proba"} & {*dir(model)}:
                found = getattr(model, method)(convert(rows), check_input=False)
                np.testing.assert_array_equal(found, getattr(model, method)(rows))


@pytest.mark.parametrize("method", ["predict", "apply", "decision_path"])
def test_trees_take_floating_numbers_alone(method):
    X, y = load("wine")
    for package in (cart, sklearn.tree):
        tree = package.DecisionTreeClassifier(random_state=0).fit(X, y).tree_
        for dtype in (np.int64, ">f4"):
            with pytest.raises(ValueError, match=r"X.dtype should be"):
                getattr(tree, method)(X.astype(dtype))


def test_a_fit_forgets_the_categories_and_dates_of_one_before():
    """It used its categories as positions in memory."""
    X = np.random.default_rng(0).integers(0, 5, (60, 2)).astype(np.float32)
    y = np.isin(X[:, 0], [1, 3])
    tree = cart.DecisionTreeClassifier(categorical_features=[0], random_state=0).fit(X, y)
    assert tree.tree_.is_subset.any()
    with pytest.raises(ValueError, match="categorical_features needs check_input=True"):
        tree.fit(X, y, check_input=False)
    numbers = 1e3 * X - 2e3
    tree.set_params(categorical_features=None).fit(numbers, y, check_input=False)
    twin = sklearn.tree.DecisionTreeClassifier(random_state=0).fit(numbers, y)
    np.testing.assert_array_equal(tree.tree_.threshold, twin.tree_.threshold)
    np.testing.assert_array_equal(tree.predict(numbers), y)
    tree.fit(numbers.astype("M8[s]"), y).fit(numbers, y, check_input=False)
    assert cart.export_text(tree) == sklearn.tree.export_text(twin)
