"""Paths and summaries say what the tree does."""

import numpy as np
import pytest
import sklearn.tree
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

from cart import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    cp_table,
    cv_prune,
    explain_path,
    prune_at,
    summary,
)
from cart.tree.tree import decreases
from forest import BaggingClassifier, RandomForestClassifier
from tests.data import load


def rows_that_fulfil(frame, conditions):
    """Rows of a table of numbers that fulfil conditions such as "a <= 3"."""
    met = np.ones(len(frame), bool)
    for text in conditions:
        name, sign, bound = text.rsplit(" ", 2)
        met &= frame[name] <= float(bound) if sign == "<=" else frame[name] > float(bound)
    return met


@pytest.mark.parametrize("max_leaf_nodes", [None, 12])
def test_the_conditions_lead_to_the_rows_of_the_leaf(max_leaf_nodes):
    """Also where children do not have the next numbers (growth that is best first)."""
    pd = pytest.importorskip("pandas")
    X, y = load("diabetes")
    frame = pd.DataFrame(np.round(1000 * X), columns=[f"f {j}" for j in range(X.shape[1])])
    model = DecisionTreeRegressor(
        max_depth=5, max_leaf_nodes=max_leaf_nodes, random_state=0, precision="float64"
    ).fit(frame, y)
    leaves = model.apply(frame)
    for i in range(0, len(y), 37):
        path = explain_path(model, frame.iloc[[i]])
        assert path.leaf == leaves[i]
        rows = rows_that_fulfil(frame, [step.condition for step in path.steps])
        np.testing.assert_array_equal(rows, leaves == leaves[i])
        assert path.n_samples == path.steps[-1].n_samples == rows.sum()
        assert path.answer == f"predicts {y[rows].mean():.5g}"


def test_a_row_of_a_frame_goes_by_its_names():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(
        {
            "city": ["Oslo", "Rome"] * 20,
            "day": pd.date_range("2020-01-01", periods=40),
            "size": np.arange(40.0) % 7,
        }
    )
    y = np.arange(40) % 2 + (frame["size"] > 3) + 2 * (np.arange(40) > 20)
    model = DecisionTreeRegressor(categorical_features=["city"], random_state=0).fit(frame, y)
    for i in range(0, 40, 7):
        said = str(explain_path(model, frame.iloc[[i]]))
        assert str(explain_path(model, frame.iloc[i])) == said
    with pytest.raises(ValueError, match="same order"):
        explain_path(model, frame[["size", "day", "city"]].iloc[0])


def test_a_split_of_the_missing_from_the_known_says_so():
    X = np.array([["Oslo"], [None], ["Rome"], [None], ["Rome"]], object)
    tree = DecisionTreeClassifier(categorical_features=[0]).fit(X, [0, 1, 0, 1, 0])
    assert "split: x[0] is known to node" in summary(tree)
    assert str(explain_path(tree, X[0])).startswith("1. x[0] is known ")


def test_neighbouring_whole_numbers_are_told_apart():
    """12346 is said to be above 12345.5, not above 12346; so are seconds of dates."""
    for low in (12345, 1_600_000_000):
        X = np.array([[low], [low + 1], [low - 9], [low + 9]], np.float64)
        tree = DecisionTreeClassifier(precision="float64", competitors=1).fit(X, [0, 1, 0, 1])
        assert f"x[0] > {low}.5 " in str(explain_path(tree, X[1]))
        assert f"split: x[0] <= {low}.5 to" in summary(tree)


def test_values_of_six_digits_are_told_apart():
    """-122.23 is said to be above -122.235, not above -122.23."""
    X = np.array([[-122.24], [-122.23], [-122.25], [-122.22]])
    tree = DecisionTreeClassifier(competitors=1).fit(X, [0, 1, 0, 1])
    assert "x[0] > -122.235 " in str(explain_path(tree, X[1]))
    assert "split: x[0] <= -122.235 to" in summary(tree)


def test_a_row_may_come_in_several_forms():
    X, y = load("iris")
    model = DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, y)
    said = str(explain_path(model, X[77]))
    assert said == str(explain_path(model, X[[77]])) == str(explain_path(model, X[77].tolist()))
    assert "x[3] <= 1.75" in said
    assert said.endswith("-> predicts 1 (1 90.7%, 2 9.3%), from 54 rows")
    with pytest.raises(ValueError, match="one row, but x has 2"):
        explain_path(model, X[:2])
    for none in (None, 5.0):
        with pytest.raises(ValueError, match=f"one row, but x is {none}"):
            explain_path(model, none)
    for none in (-1, 2.5, None):
        with pytest.raises(ValueError, match=f"non-negative whole number, but is {none}"):
            summary(model, none)


def test_values_of_a_row_keep_their_types():
    """The 3 beside a text is no text, and what is missing in a row of a frame is a number."""
    X = [["Oslo", 3, None], ["Rome", 4, 1.0], ["Oslo", 4, 2.0], ["Rome", 3, None]] * 5
    model = DecisionTreeRegressor(categorical_features=[0, 1], random_state=0)
    model.fit(X, [5.0, 1.0, 9.0, 3.0] * 5)
    assert [explain_path(model, x).leaf for x in X] == model.apply(X).tolist()
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=["city", "rooms", "size"]).convert_dtypes()
    frame["day"] = pd.to_datetime(["2024-01-01", None, "2024-02-01", None] * 5)
    model.set_params(categorical_features=["city"]).fit(frame, [5.0, 1.0, 9.0, 3.0] * 5)
    found = [explain_path(model, frame.iloc[i]).leaf for i in range(4)]
    assert found == model.apply(frame[:4]).tolist()


def test_categories_and_missing_values_in_words():
    pd = pytest.importorskip("pandas")
    colour = np.array(["red", "green", "blue", "grey"] * 15)
    size = np.arange(60.0)
    y = np.where(colour == "red", "stop", np.where(size > 30, "go", "wait"))
    frame = pd.DataFrame({"colour": pd.Categorical(colour), "size": size})
    model = DecisionTreeClassifier(
        categorical_features="from_dtype", random_state=0, min_category_ratio=0.0
    ).fit(frame, y)
    red, green = (explain_path(model, frame.iloc[[i]]) for i in (0, 1))
    assert any(step.condition == "colour in {red}" for step in red.steps)
    assert any(step.condition == "colour not in {red}" for step in green.steps)
    gap = pd.DataFrame({"colour": ["blue"], "size": [np.nan]})
    path = explain_path(model, gap)
    taken = [step.condition for step in path.steps if "missing" in step.condition]
    assert taken
    assert "size" in taken[0]
    assert model.predict(gap)[0] in path.answer
    assert path.leaf == model.apply(gap)[0]


def test_surrogates_in_words():
    """Whoever lacks a value goes by the surrogate that is named, if that is what it says."""
    pd = pytest.importorskip("pandas")
    X, y = load("breast_cancer")
    frame = pd.DataFrame(X[:, :8], columns=[f"f{j}" for j in range(8)])
    model = DecisionTreeClassifier(
        max_depth=4, missing="surrogate", surrogates=3, competitors=2, random_state=0,
        precision="float64",
    ).fit(frame, y)  # fmt: skip
    rng = np.random.default_rng(0)
    gaps = frame.mask(rng.random(frame.shape) < 0.4)
    n_by_surrogate = n_by_majority = 0
    for i in range(0, len(y), 9):
        row = gaps.iloc[[i]]
        path = explain_path(model, row)
        assert path.leaf == model.apply(row)[0]
        for step in path.steps:
            if "surrogate: " in step.condition:
                said = step.condition.partition("surrogate: ")[2]
                assert np.asarray(rows_that_fulfil(row, [said])).all()
                n_by_surrogate += 1
            elif "missing" in step.condition:
                assert step.condition.endswith("the side of most rows")
                n_by_majority += 1
    assert n_by_surrogate > 20
    assert n_by_majority > 0
    text = summary(model)
    for node in np.flatnonzero(model.tree_.children_left >= 0)[:3]:
        for split in model.tree_.surrogates.of(node):
            assert f"f{split.feature}" in text
        assert f"agree {model.tree_.surrogates.of(node)[0].agree:.5g}" in text
        improvement = model.tree_.competitors.of(node)[0].improvement
        assert f"(improvement {improvement:.5g})" in text


def test_a_surrogate_of_categories_in_words():
    pd = pytest.importorskip("pandas")
    x = np.arange(40.0)
    frame = pd.DataFrame({"x": x, "kind": np.select([x < 19, x < 30], ["a", "b"], "c")})
    model = DecisionTreeClassifier(
        max_depth=1, missing="surrogate", surrogates=1, categorical_features=["kind"]
    ).fit(frame, x >= 20)
    for kind, side in (("a", "a"), ("b", "b, c"), ("c", "b, c")):
        row = pd.DataFrame({"x": [np.nan], "kind": [kind]})
        said = explain_path(model, row).steps[0].condition
        assert said == f"x is missing; surrogate: kind in {{{side}}}"


def test_missing_values_that_were_split_off():
    X = np.array([[np.nan]] * 5 + [[1.0]] * 5)
    model = DecisionTreeClassifier().fit(X, [0] * 5 + [1] * 5)
    assert explain_path(model, [1.0]).steps[0].condition == "x[0] is known"
    assert "x[0] is missing" in explain_path(model, [np.nan]).steps[0].condition


def test_the_answer_is_that_of_the_losses():
    X, y = load("breast_cancer")
    loss = [[0, 30], [1, 0]]
    model = DecisionTreeClassifier(loss=loss, max_depth=2, random_state=0).fit(X, y)
    for i in range(0, len(y), 50):
        path = explain_path(model, X[i])
        shares = model.predict_proba(X[[i]])[0]
        assert path.answer.startswith(f"predicts {model.predict(X[[i]])[0]} (")
        for label in (0, 1):
            if shares[label] > 0:
                assert f"{label} {shares[label]:.1%}" in path.answer


def test_classes_that_are_dates_are_written_as_such():
    days = np.array(["2024-01-01", "2024-02-01"], "datetime64[ns]")
    model = DecisionTreeClassifier(max_depth=1).fit([[0.0], [1.0]], days)
    assert str(explain_path(model, [0.0])).count("2024-01-01") == 2


def test_several_outputs():
    X, y = load("iris")
    model = DecisionTreeClassifier(max_depth=1, random_state=0).fit(X, np.column_stack((y, y > 0)))
    assert "predicts 0 (0 100.0%); 0 (0 100.0%)" in str(explain_path(model, X[0]))
    assert "Node 2" in summary(model)
    numbers = DecisionTreeRegressor(max_depth=1).fit(X, np.column_stack((y, 2 * y)))
    assert explain_path(numbers, X[0]).answer == "predicts 0, 0"


def test_a_summary_has_what_rpart_has():
    X, y = load("breast_cancer")
    pruned = cv_prune(DecisionTreeClassifier(random_state=0), X, y, random_state=0)
    text = summary(pruned)
    assert str(pruned.cp_table_) in text
    assert "xerror" in text
    nodes = pruned.tree_
    for node in range(nodes.node_count):
        assert f"Node {node}: {nodes.n_node_samples[node]} rows" in text
    importances = pruned.feature_importances_
    best = importances.argmax()
    assert f"x[{best}] {100 * importances[best]:.0f}," in text
    weighted = DecisionTreeClassifier(max_depth=1).fit(X, y, np.full(len(y), 2.5))
    assert f"{len(y)} rows, weight {2.5 * len(y):.5g}" in summary(weighted)


@pytest.mark.parametrize("kept", ["competitors", "surrogates"])
def test_an_improvement_is_what_it_was_chosen_by(kept):
    """Rows without a value, which go with the majority, have no part in it; as in rpart."""
    X, y = load("breast_cancer")
    X = np.where(np.random.default_rng(0).random(X.shape) < 0.3, np.nan, X[:, ::-1])
    model = DecisionTreeClassifier(max_depth=2, missing="majority", random_state=0)
    model.set_params(**{kept: 1}).fit(X, y)
    primary = getattr(model.tree_, kept).primary
    shown = [line[14:] for line in summary(model).splitlines() if line.startswith("  improvement")]
    assert shown == [f"{primary[node]:.5g}" for node in np.flatnonzero(primary)]
    assert not np.isclose(primary[0], decreases(model.tree_, 0))


def test_a_long_summary_ends():
    X, y = load("diabetes")
    model = DecisionTreeRegressor(random_state=0, max_depth=6).fit(X, y)
    text = summary(model, max_nodes=4)
    assert "Node 3:" in text
    assert "Node 4:" not in text
    assert text.endswith(f"... and {model.tree_.node_count - 4} more nodes")
    assert "lone" not in summary(DecisionTreeRegressor().fit(X, np.zeros(len(y))))


def test_a_summary_of_targets_whose_squares_overflow():
    """Their risks and importances are no numbers."""
    X, y = load("diabetes")
    text = summary(DecisionTreeRegressor(max_depth=2, random_state=0).fit(X, 1e200 * y))
    assert "Node 0: 442 rows" in text
    assert "rel error" not in text
    assert "Importance" not in text


def test_what_is_no_tree_of_ours_is_named():
    """A fitted forest was said not to be fitted, a tree of scikit-learn to lack an attribute."""
    X, y = load("iris")
    theirs = sklearn.tree.DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, y)
    of_one_tree = {
        "summary": summary,
        "explain_path": lambda tree: explain_path(tree, X[0]),
        "cp_table": cp_table,
        "prune_at": lambda tree: prune_at(tree, 0.1),
    }
    for name, function in of_one_tree.items():
        for model in (RandomForestClassifier(3), BaggingClassifier(n_estimators=3)):
            with pytest.raises(
                TypeError, match=f"{name} needs a single tree, .* has 3; .*estimators_"
            ):
                function(model.fit(X, y))
        pipeline = make_pipeline(DecisionTreeClassifier()).fit(X, y)
        with pytest.raises(
            TypeError, match=f"{name} needs a fitted tree, but got Pipeline;.*pipeline.-1"
        ):
            function(pipeline)
        with pytest.raises(NotFittedError):
            function(DecisionTreeClassifier())
        if name != "explain_path":
            with pytest.raises(TypeError, match=f"{name} needs a tree of Cartwood.*from_sklearn"):
                function(theirs)
    assert len(explain_path(theirs, X[0]).steps) == 1


def test_a_single_row_is_one_row():
    tree = DecisionTreeRegressor().fit([[1.0], [3.0]], [5.0, 8.0])
    assert str(explain_path(tree, [2.5])).splitlines() == [
        "1. x[0] > 2   1 row", "-> predicts 8, from 1 row",
    ]  # fmt: skip
    assert "to node 1 (1 row), else to node 2 (1 row)" in summary(tree)
    assert "Node 2: 1 row\n" in summary(tree)
