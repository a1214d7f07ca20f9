"""What scikit-learn has no form for is refused by name, or shown as what it is."""

import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn.tree

from cart import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreeClassifier,
    ExtraTreeRegressor,
    PrunedTreeClassifier,
    explain_path,
    export_graphviz,
    export_text,
    plot_tree,
    summary,
)
from cart import load as load_model
from cart.interop.bridge import to_sklearn
from forest import RandomForestClassifier
from forest.interop.bridge import to_sklearn as forest_to_sklearn
from tests.data import load

PRIORS = [0.2, 0.3, 0.5]
LOSS = [[0, 1, 4], [2, 0, 1], [3, 3, 0]]


@pytest.mark.parametrize(
    ("params", "named"),
    [
        ({"criterion": "twoing"}, "criterion='twoing'"),
        ({"criterion": "ordered_twoing"}, "criterion='ordered_twoing'"),
        ({"priors": PRIORS}, "priors="),
        ({"loss": LOSS}, "loss="),
        ({"missing": "surrogate", "surrogates": 2}, "missing='surrogate'"),
        ({"missing": "refuse"}, "missing='refuse'"),
    ],
)
def test_the_bridge_names_what_it_refuses(params, named):
    X, y = load("iris")
    with pytest.raises(ValueError, match=named):
        to_sklearn(DecisionTreeClassifier(max_depth=2, **params).fit(X, y))
    with pytest.raises(ValueError, match=named):
        forest_to_sklearn(RandomForestClassifier(2, max_depth=2, **params).fit(X, y))


def test_what_was_fitted_counts():
    """Not what parameters were set to since."""
    X, y = load("iris")
    by_surrogates = DecisionTreeClassifier(max_depth=2, missing="surrogate", surrogates=2)
    by_surrogates.fit(X, y).set_params(missing="learned")
    with pytest.raises(ValueError, match="missing='surrogate'"):
        to_sklearn(by_surrogates)
    with_loss = DecisionTreeClassifier(max_depth=2, loss=LOSS).fit(X, y).set_params(loss=None)
    with pytest.raises(ValueError, match="loss="):
        to_sklearn(with_loss)


@pytest.mark.parametrize("share", [0.0, 0.2])
def test_rows_with_missing_values_go_with_the_majority_there_too(share):
    """Surrogates and competitors that are there to be read are left behind."""
    X, y = load("iris")
    rng = np.random.default_rng(0)
    holes = np.where(rng.random(X.shape) < 0.3, np.nan, X)
    X = np.where(rng.random(X.shape) < share, np.nan, X)
    for missing in ("majority", "learned"):
        kept = {"missing": missing, "surrogates": 2, "competitors": 1, "random_state": 0}
        tree = DecisionTreeClassifier(max_depth=4, **kept).fit(X, y)
        forest = RandomForestClassifier(5, max_depth=4, **kept).fit(X, y)
        for ours, theirs in ((tree, to_sklearn(tree)), (forest, forest_to_sklearn(forest))):
            np.testing.assert_array_equal(theirs.predict_proba(holes), ours.predict_proba(holes))


def test_a_pruned_tree_is_a_tree():
    X, y = load("iris")
    ours = PrunedTreeClassifier(random_state=0).fit(X, y)
    theirs = to_sklearn(ours)
    assert type(theirs) is sklearn.tree.DecisionTreeClassifier
    np.testing.assert_array_equal(theirs.predict_proba(X), ours.predict_proba(X))


def test_pictures_of_twoing_name_the_impurity():
    X, y = load("iris")
    model = DecisionTreeClassifier(criterion="twoing", max_depth=2, random_state=0).fit(X, y)
    assert "gini" in export_graphviz(model)
    assert "class: 0" in export_text(model)


def test_pictures_show_the_class_that_is_predicted():
    """Of two classes at losses; of more, where they could not, they say what can."""
    X, y = load("breast_cancer")
    loss = [[0, 40], [1, 0]]
    model = DecisionTreeClassifier(loss=loss, max_depth=1, random_state=0).fit(X, y)
    shown = [line.rsplit(" ", 1)[1] for line in export_text(model).splitlines() if "class" in line]
    leaves = model.tree_.children_left == -1
    reached = [X[model.apply(X) == leaf][:1] for leaf in np.flatnonzero(leaves)]
    assert shown == [str(model.predict(row)[0]) for row in reached]
    assert shown == ["0", "0"] or len({*shown}) == 2
    X, y = load("iris")
    of_three = DecisionTreeClassifier(loss=LOSS, max_depth=1).fit(X, y)
    for draw in (export_text, export_graphviz, plot_tree):
        with pytest.raises(ValueError, match="summary"):
            draw(of_three)


def test_pictures_of_categories_leave_the_tree_as_it_was():
    X = np.random.RandomState(0).randint(5, size=(200, 2))
    y = np.isin(X[:, 0], [1, 3]) ^ (X[:, 1] == 2)
    model = DecisionTreeClassifier(categorical_features=[0, 1], random_state=0).fit(X, y)
    assert model.tree_.is_subset.any()  # the tree keeps the arrays that it was asked for
    assert export_text(model).count("not in") == model.get_n_leaves() - 1
    np.testing.assert_array_equal(model.predict(X), y)


@pytest.mark.parametrize("splitter", ["best", "random"])
@pytest.mark.parametrize("model", [ExtraTreeClassifier, ExtraTreeRegressor])
def test_extra_trees_send_missing_values_there_too(model, splitter):
    X, y = load("iris")
    gaps = np.where(X > 6.0, np.nan, X)
    ours = model(splitter=splitter, random_state=0).fit(gaps, y)
    np.testing.assert_array_equal(to_sklearn(ours).predict(gaps), ours.predict(gaps))


@pytest.mark.parametrize("model", [DecisionTreeClassifier, DecisionTreeRegressor])
def test_a_lone_root_of_several_outputs_is_drawn(model):
    X, y = np.arange(8.0)[:, np.newaxis], np.ones((8, 2), int)
    ours = model().fit(X, y)
    with pytest.raises(ValueError, match="NaN"), pytest.warns(RuntimeWarning, match="invalid"):
        sklearn.tree.export_graphviz(to_sklearn(ours), filled=True)
    assert "samples = 8" in export_graphviz(ours, filled=True)
    assert len(plot_tree(ours, filled=True)) == 1


DATES = pd.DataFrame({"day": pd.date_range("2024-03-01", periods=8), "n": np.arange(8.0) % 2})
DATES["later"] = DATES["day"].dt.tz_localize("Asia/Tokyo")


@pytest.mark.parametrize(
    "X",
    [DATES, DATES[["day"]], "polars", DATES[["day"]].to_numpy()],
    ids=["pandas", "alone", "polars", "NumPy"],
)
def test_thresholds_of_dates_are_shown_as_dates(X):
    X = pytest.importorskip("polars").from_pandas(DATES) if isinstance(X, str) else X
    y = np.arange(8) > 3
    tree = DecisionTreeClassifier(surrogates=2, precision="float64", random_state=0).fit(X, y)
    names = [*map(str, range(np.shape(X)[1]))]
    assert export_text(tree, feature_names=names).startswith("|--- 0 <= 2024-03-04 12:00:00\n")
    assert "0 <= 2024-03-04 12:00:00" in export_graphviz(tree, feature_names=names)
    assert "0 > 2024-03-04 12:00:00" in export_text(tree, feature_names=names)
    assert plot_tree(tree)[0].get_text().startswith("x[0] <= 2024-03-04 12:00:00\n")
    assert " <= 2024-03-04 12:00:00 to node 1 (4 rows)" in summary(tree)
    if len(names) == 3:
        shown = export_text(tree, feature_names=names, surrogates=1)
        assert "surrogate: 2 <= 2024-03-04 03:00:00 (agree 1" in shown
        tree.fit(X[["n"]], X["n"])
        assert export_text(tree).startswith("|--- feature_0 <= 0.50\n")


def test_forests_and_files_keep_which_thresholds_are_dates(tmp_path):
    X = DATES[["day"]].set_axis(["n"], axis=1)
    forest = RandomForestClassifier(1, bootstrap=False, precision="float64")
    forest.fit(X, np.arange(8) > 2).save(tmp_path / "f")
    for model in (forest, load_model(tmp_path / "f"), pickle.loads(pickle.dumps(forest))):
        assert export_text(model[0]).startswith("|--- feature_0 <= 2024-03-03 12:00:00\n")
        path = explain_path(model[0], X.to_numpy()[:1])
        assert path.steps[0].condition == "x[0] <= 2024-03-03 12:00:00"
    forest.fit(DATES[["n"]], DATES["n"])
    assert export_text(forest[0]).startswith("|--- feature_0 <= 0.50\n")
