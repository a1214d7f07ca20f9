"""Importance and masking by surrogates: rpart's values, plain NumPy, twins, refusals."""

import numpy as np
import pandas as pd
import pytest

from benchmarks.oracles.rpart import Case
from cart import DecisionTreeClassifier, DecisionTreeRegressor, prune_at
from cartwood import (
    BaggingClassifier,
    BaggingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    masking,
    surrogate_importance,
    unbiased_mdi,
)
from importance.impurity.stand_ins import adj_on_rows

# Fits whose splits, surrogates and improvements are all ours, or by the seed with which exact ties
# fall alike; the others are listed, with reasons, in test_rpart_alternatives and test_golden_rpart.
SEEDS = {
    "cu_summary": 0, "cu_summary_mileage": 0, "cu_summary_numbers": 0, "cu_summary_price": 0,
    "kyphosis": 0, "kyphosis_deep": 95, "kyphosis_entropy": 2, "kyphosis_limits": 0,
    "kyphosis_style_1": 0, "kyphosis_weights": 0, "solder_balance": 0, "solder_opening": 0,
    "stagec_time_weights": 0, "stagec_use_2": 0,
}  # fmt: skip


@pytest.mark.parametrize("name", SEEDS)
def test_importance_is_rparts(name):
    case = Case(name)
    control = case.golden["control"]
    tree = case.estimator(
        surrogates=control["maxsurrogate"], missing="surrogate", random_state=SEEDS[name],
        surrogate_style=["all", "known"][control["surrogatestyle"]],
    ).fit(case.X, case.y, case.weight)  # fmt: skip
    found = surrogate_importance(prune_at(tree, control["cp"]))
    factor = np.log(2.0) if tree.criterion == "entropy" else 1.0
    values = dict(zip(found.feature_names, found.values * factor, strict=True))
    values = {feature: value for feature, value in values.items() if value > 0.0}
    assert values == pytest.approx(case.golden["importance"], rel=1e-9)


def table(n=150, seed=0, missing=0.0, labels=False):
    """Five columns, the second the first with noise, the last a category."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    X[:, 1] = X[:, 0] + 0.3 * X[:, 1]
    X[:, 4] = np.where(X[:, 0] > 0.2, rng.integers(0, 3, n), rng.integers(2, 6, n))
    y = X[:, 0] + X[:, 2] ** 2 + 2.0 * (X[:, 4] % 3 == 1) + 0.3 * rng.normal(size=n)
    X[rng.random(X.shape) < missing] = np.nan
    return X, (y > 1.0).astype(int) if labels else y


def adj_by_hand(tree, node, surrogate, X, weight, style):
    """`adj` of a surrogate, row by row; every row of X is one of the node."""
    left, right = tree.children_left[node], tree.children_right[node]
    heavy = tree.weighted_n_node_samples
    agree = majority = total = 0.0
    for x, w in zip(X, weight, strict=True):
        value = x[tree.feature[node]]
        if np.isnan(value):
            continue
        if np.isnan(tree.threshold[node]):
            listed, listed_left = tree.categories.of(node)
            goes_left = (value in listed) == listed_left
        else:
            goes_left = value <= tree.threshold[node]
        other = x[surrogate.feature]
        if np.isnan(surrogate.threshold):
            said = True if other in surrogate.left else False if other in surrogate.right else None
        elif np.isnan(other):
            said = None
        else:
            said = (other <= surrogate.threshold) == surrogate.low_left
        if said is None and style == "known":
            continue
        agree += w * (said == goes_left)
        more_left = heavy[left] - heavy[right]
        majority += w * (0.5 if more_left == 0 else goes_left == (more_left > 0))
        total += w
    return 0.0 if total == majority else (agree - majority) / (total - majority)


@pytest.mark.parametrize("style", ["all", "known"])
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_on_training_rows_and_on_others_by_hand(style, missing):
    """adj on the rows of the fit is that of the fit (but for rpart's ties), and on others too."""
    X, y = table(missing=missing)
    options = {"surrogates": 4, "surrogate_style": style, "missing": "surrogate"}
    model = DecisionTreeRegressor(
        max_depth=5, min_samples_leaf=4, categorical_features=[4], precision="float64",
        random_state=0, min_category_ratio=0.0, **options,
    ).fit(X, y)  # fmt: skip
    tree = model.tree_
    assert tree.is_subset.any()
    fresh = table(400, seed=1, missing=missing)[0]
    weight = np.random.default_rng(0).random(len(fresh))
    passed = model.decision_path(fresh).toarray().astype(bool)
    found, at = adj_on_rows(tree, fresh, weight, style), 0
    expected = np.zeros(5)
    for node in range(tree.node_count):
        if tree.children_left[node] >= 0:
            expected[tree.feature[node]] += tree.surrogates.primary[node]
        for surrogate in tree.surrogates.of(node):
            here = passed[:, node]
            by_hand = adj_by_hand(tree, node, surrogate, fresh[here], weight[here], style)
            assert found[at] == pytest.approx(by_hand)
            expected[surrogate.feature] += tree.surrogates.primary[node] * surrogate.adj
            at += 1
    assert at > 2
    result = surrogate_importance(model)
    np.testing.assert_allclose(result.values, expected)
    assert np.isnan(result.standard_error).all()
    if missing == 0.0:
        same = adj_on_rows(tree, X, np.ones(len(X)), style)
        np.testing.assert_allclose(same, tree.surrogates.adj)


def forest(kind=RandomForestRegressor, n_estimators=20, **options):
    return kind(n_estimators, random_state=0, **{"surrogates": "auto", "max_depth": 5, **options})


def test_a_forest_is_the_mean_of_its_trees():
    X, y = table(labels=True)
    model = forest(RandomForestClassifier).fit(X, y)
    result = surrogate_importance(model)
    trees = [surrogate_importance(tree).values for tree in model.estimators_]
    np.testing.assert_allclose(result.per_tree, trees)
    np.testing.assert_allclose(result.values, np.mean(trees, axis=0))
    np.testing.assert_allclose(result.standard_error, np.std(trees, axis=0) / np.sqrt(20))


def test_out_of_bag_without_a_stand_in_is_unbiased_mdi():
    """Each tree's own splits count what UFI says, times the rows of its root."""
    X, y = table()
    model = forest().fit(X[:, [0]], y)
    found = surrogate_importance(model, X[:, [0]], y, on="oob")
    ufi = unbiased_mdi(model, X[:, [0]], y)
    np.testing.assert_allclose(found.per_tree, ufi.per_tree * len(y))


def test_out_of_bag_adds_what_stands_in():
    """Judged by hand in every tree, from each split's improvement and adj on the rows left out."""
    X, y = table()
    model = forest(n_jobs=1).fit(X, y)
    found = surrogate_importance(model, X, y, on="oob", n_jobs=2)
    single = unbiased_mdi(model, X, y).per_tree * len(y)
    t = 3
    tree = model.estimators_[t].tree_
    rows = np.setdiff1d(np.arange(len(y)), model.estimators_samples_[t])
    adj = adj_on_rows(tree, X[rows].astype(np.float32).astype(float), np.ones(len(rows)), "all")
    improved = split_by_split(tree, X, y, model.estimators_samples_[t], rows)
    lent = np.zeros(5)
    node = np.repeat(np.arange(tree.node_count), np.diff(tree.surrogates.start))
    np.add.at(lent, tree.surrogates.feature, improved[node] * adj)
    own = np.bincount(tree.feature[tree.feature >= 0], improved[tree.feature >= 0], 5)
    np.testing.assert_allclose(own, single[t], atol=1e-9)
    np.testing.assert_allclose(found.per_tree[t], own + lent, atol=1e-9)


def split_by_split(tree, X, y, drawn, left_out):
    """UFI of every node, by the rows that reach it."""
    paths = tree.decision_path(X.astype(np.float32)).toarray().astype(bool)

    def burden(node):
        inside, outside = y[drawn][paths[drawn, node]], y[left_out][paths[left_out, node]]
        if len(outside) == 0:
            return np.nan
        return len(inside) * (inside.var() + ((outside - inside.mean()) ** 2).mean()) / 2.0

    improved = np.zeros(tree.node_count)
    for node in np.flatnonzero(tree.feature >= 0):
        sides = burden(tree.children_left[node]) + burden(tree.children_right[node])
        improved[node] = np.nan_to_num(burden(node) - sides)
    return improved


def test_two_features_that_say_the_same_both_show():
    """A twin counts as much as the other, wherever the trees split on either, in and out of bag."""
    X, y = table()
    X[:, 1] = 2.0 * X[:, 0]
    model = forest(max_features=2, min_samples_leaf=4).fit(X, y)
    for options in ({}, {"X": X, "y": y, "on": "oob"}):
        values = surrogate_importance(model, **options).values
        assert values[1] == pytest.approx(values[0], rel=1e-9)
        assert values[0] > 2.0 * max(values[3:])
    found = masking(model)
    assert found.values[0, 1] == found.values[1, 0] == 1.0
    assert found.standard_error[0, 1] == pytest.approx(0.0, abs=1e-7)
    assert set(found.to_frame().head(2)["stand_in"]) == {"x0", "x1"}
    assert repr(found).startswith("<Masking x1 for x0 1.00, x0 for x1 1.00, ")


def test_noise_gets_nothing_out_of_bag():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 4)), rng.normal(size=300)
    model = forest().fit(X, y)
    assert surrogate_importance(model).values.min() > 0.0
    result = surrogate_importance(model, X, y, on="oob")
    assert (result.values < 3.0 * result.standard_error).all()


def test_masking_by_hand():
    X, y = table()
    model = forest(n_estimators=5).fit(X, y)
    lent, own = np.zeros((5, 5, 5)), np.zeros((5, 5))
    for t, estimator in enumerate(model.estimators_):
        tree = estimator.tree_
        for node in np.flatnonzero(tree.feature >= 0):
            gain = tree.surrogates.primary[node]
            own[t, tree.feature[node]] += gain
            for split in tree.surrogates.of(node):
                lent[t, tree.feature[node], split.feature] += gain * split.adj
    values = lent.sum(axis=0) / own.sum(axis=0)[:, np.newaxis]
    residual = lent - values * own[:, :, np.newaxis]
    error = np.sqrt((residual**2).sum(axis=0)) / own.sum(axis=0)[:, np.newaxis]
    np.fill_diagonal(values, np.nan)
    error[np.isnan(values)] = np.nan
    found = masking(model)
    np.testing.assert_allclose(found.values, values)
    np.testing.assert_allclose(found.standard_error, error, atol=1e-9)
    np.testing.assert_allclose(found.improvement, own.mean(axis=0))


def test_masking_of_a_tree_and_of_features_that_no_tree_splits_on():
    X, y = table()
    frame = pd.DataFrame(X[:, :3], columns=["a", "b", "c"]).assign(constant=1.0)
    found = masking(DecisionTreeRegressor(max_depth=1, surrogates=2, random_state=0).fit(frame, y))
    split_on = found.improvement > 0.0
    assert split_on.sum() == 1
    assert np.isnan(found.values[~split_on]).all()
    assert np.isnan(found.standard_error).all()
    assert found.feature_names.tolist() == ["a", "b", "c", "constant"]


def test_masking_reports_every_tree():
    X, y = table()
    model, told = forest().fit(X, y), []
    masking(model, callback=told.append)
    n_trees = len(model.estimators_)
    assert [(each.n_done, each.n_total) for each in told] == [
        (n, n_trees) for n in range(1, n_trees + 1)
    ]


def test_the_picture_shows_the_features_that_improve_most():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    X, y = table()
    found = masking(forest().fit(X, y))
    with pytest.raises(ValueError, match="max_features=-1"):
        found.plot(max_features=-1)
    ax = found.plot(max_features=3)
    order = np.argsort(-found.improvement)[:3]
    assert [label.get_text() for label in ax.get_yticklabels()] == [f"x{j}" for j in order]
    drawn = ax.images[0].get_array()
    np.testing.assert_array_equal(drawn.filled(np.nan), found.values[np.ix_(order, order)])
    assert "3 of 5" in ax.get_title()
    matplotlib.pyplot.close("all")


def test_refusals():
    X, y = table()
    plain = RandomForestRegressor(3, random_state=0).fit(X, y)
    for function in (surrogate_importance, masking):
        with pytest.raises(ValueError, match=r'without surrogates.*surrogates="auto"'):
            function(plain)
        with pytest.raises(ValueError, match="DecisionTreeClassifier was fitted without"):
            function(DecisionTreeClassifier().fit(X, y > 0))
        with pytest.raises(ValueError, match="without surrogates"):
            function(BaggingRegressor(n_estimators=2, random_state=0).fit(X, y))
        with pytest.raises(TypeError, match="fitted random forest"):
            function("forest")
        with pytest.raises(ValueError, match="not fitted yet"):
            function(DecisionTreeRegressor(surrogates=2))
    model = forest().fit(X, y)
    with pytest.raises(ValueError, match="on='test' is not known"):
        surrogate_importance(model, X, y, on="test")
    for given in ({"X": X}, {"y": y}, {"sample_weight": y}):
        with pytest.raises(ValueError, match="leave out X, y and sample_weight"):
            surrogate_importance(model, **given)
    with pytest.raises(ValueError, match="give X and y"):
        surrogate_importance(model, on="oob")
    with pytest.raises(ValueError, match="fit a random forest"):
        surrogate_importance(model.estimators_[0], X, y, on="oob")
    with pytest.raises(ValueError, match="bootstrap=False"):
        surrogate_importance(forest(bootstrap=False).fit(X, y), X, y, on="oob")


@pytest.mark.parametrize("kind", [BaggingClassifier, BaggingRegressor])
@pytest.mark.parametrize("repeats", [False, True])
def test_bagging_of_trees_with_surrogates(kind, repeats):
    """Each estimator's surrogates, by the columns that it drew; a column drawn twice does not stand
    in for itself."""
    X, y = table(labels=kind is BaggingClassifier)
    tree = (DecisionTreeClassifier if kind is BaggingClassifier else DecisionTreeRegressor)(
        max_depth=4, surrogates=3, competitors=2
    )
    model = kind(tree, 6, max_features=4, bootstrap_features=repeats, random_state=0, n_jobs=1).fit(
        X, y
    )
    expected, lent, improved = np.zeros((6, 5)), np.zeros((5, 5)), np.zeros(5)
    for t, (estimator, columns) in enumerate(
        zip(model.estimators_, model.estimators_features_, strict=True)
    ):
        grown = estimator.tree_
        for node in np.flatnonzero(grown.feature >= 0):
            own, gain = columns[grown.feature[node]], grown.surrogates.primary[node]
            expected[t, own] += gain
            improved[own] += gain
            met = {own}
            for split in grown.surrogates.of(node):
                if columns[split.feature] not in met:
                    met.add(columns[split.feature])
                    expected[t, columns[split.feature]] += gain * split.adj
                    lent[own, columns[split.feature]] += gain * split.adj
    np.testing.assert_allclose(surrogate_importance(model).per_tree, expected)
    off = ~np.eye(5, dtype=bool)
    shares = lent / improved[:, np.newaxis]
    np.testing.assert_allclose(masking(model).values[off], shares[off])
    judged = surrogate_importance(model, X, y, on="oob")
    assert judged.values[:3].min() > judged.values[3]


def test_bagging_of_trees_that_send_rows_by_surrogates_is_refused_missing_values():
    """Its trees are walked by their splits alone, as those of forests."""
    X, y = table(missing=0.2)
    tree = DecisionTreeRegressor(max_depth=3, surrogates=2, missing="surrogate")
    model = BaggingRegressor(tree, 3, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="sends by surrogates"):
        unbiased_mdi(model, X, y)


def test_groups_are_summed():
    X, y = table()
    model = forest().fit(X, y)
    whole = surrogate_importance(model)
    both = surrogate_importance(model, groups={"pair": [0, 1]})
    at = both.feature_names.tolist().index("pair")
    assert both.values[at] == pytest.approx(whole.values[:2].sum())
