"""Predictions while another thread fits: the fit before or the new one, nothing in between."""

import subprocess
import sys

import numpy as np
import pytest

import cart
import forest
from cart.estimators.validation import as_of_now, fitted_at_once

# A process of its own, which the old code ended by reading past the end of arrays.
PROGRAM = """
import sys, threading, warnings
import numpy as np
import cart, forest
rng = np.random.default_rng(0)
kind, model = sys.argv[1], None
tables = []
for n_features, n_classes in ((3, 2), (40, 5)):
    X = rng.normal(size=(80, n_features))
    code = (np.abs(X[:, 0]) * 10).astype(int) % n_classes
    tables.append((X, code if "Regress" not in kind else X[:, 0]))
model = getattr(forest, kind, None) or getattr(cart, kind)
model = model(random_state=0, **({"n_estimators": 3} if hasattr(forest, kind) else {}))
expected = []
for X, y in tables:
    expected.append(model.fit(X, y).predict(X))
    getattr(model, "predict_proba", model.predict)(X)
stop, wrong = threading.Event(), []

def predict():
    while not stop.is_set():
        for (X, y), of_table in zip(tables, expected):
            try:
                said = model.predict(X)
                getattr(model, "predict_proba", model.predict)(X)
            except ValueError as error:  # of the other table
                if "features" not in str(error):
                    wrong.append(error)
            else:
                if not np.array_equal(said, of_table):
                    wrong.append("predictions of two fits")

threads = [threading.Thread(target=predict) for _ in range(3)]
for thread in threads:
    thread.start()
for i in range(60):
    X, y = tables[i % 2]
    model.fit(X, y)
stop.set()
for thread in threads:
    thread.join()
print(wrong[:1])
"""


@pytest.mark.parametrize(
    "kind",
    ["DecisionTreeClassifier", "DecisionTreeRegressor", "RandomForestClassifier",
     "RandomForestRegressor", "BaggingClassifier"],
)  # fmt: skip
def test_predictions_during_a_fit_are_of_one_fit(kind):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, kind], capture_output=True, text=True, timeout=500
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout == "[]\n"


def test_a_fit_shows_when_it_stands():
    X = np.arange(12.0).reshape(6, 2)
    tree = cart.DecisionTreeRegressor().fit(X, X[:, 0])
    view, old = as_of_now(tree), tree.tree_
    with fitted_at_once(tree) as draft:
        draft.n_features_in_ = 7
        assert tree.n_features_in_ == 2
    assert (tree.n_features_in_, view.n_features_in_) == (7, 2)
    assert view.tree_ is tree.tree_ is old


class Fitting(forest.RandomForestRegressor):
    """Is fitted anew, on another target, whenever it has said in which leaves rows are."""

    def apply(self, X):
        leaves = super().apply(X)
        self.other.fit(X, X[:, 1])
        return leaves


def test_proximities_are_of_one_fit():
    X = np.random.default_rng(0).normal(size=(50, 2))
    still = forest.RandomForestRegressor(4, random_state=0).fit(X, X[:, 0])
    model = Fitting(4, random_state=0).fit(X, X[:, 0])
    model.other = model.set_params(random_state=1)  # of the fits to come
    found = forest.proximity(model, X, pairs="gap")
    np.testing.assert_array_equal(
        found.toarray(), forest.proximity(still, X, pairs="gap").toarray()
    )


class Row:
    """A table of one row; whoever looks at its numbers has a tree fitted anew."""

    shape, ndim = (1, 2), 2

    def __init__(self, tree):
        self.tree = tree

    def __array__(self, dtype=None, copy=None):
        self.tree.fit([[0.0], [1.0]], [7.0, 8.0])
        return np.array([[3.0, 9.0]], dtype)


def test_a_path_is_of_one_fit():
    X = np.array([[0.0, 5.0], [0.0, 8.0]])
    tree = cart.DecisionTreeRegressor().fit(X, [1.0, 2.0])
    assert cart.explain_path(tree, Row(tree)).steps[0].condition == "x[1] > 6.5"
    assert tree.n_features_in_ == 1


def test_what_is_found_on_a_view_is_the_estimators():
    X = np.arange(40.0).reshape(20, 2)
    model = forest.RandomForestRegressor(3, random_state=0).fit(X, X[:, 0])
    view = as_of_now(model)
    view.keep_leaves()
    assert model._training_rows is view._training_rows
    model.fit(X + 1.0, X[:, 0])
    assert not hasattr(model, "_training_rows")
    assert view.predict_quantiles(X, 0.5).shape == (20,)
