"""Splits on subsets of categories: the best subset by enumeration, guards, rules, round trips."""

import pickle
import warnings
from itertools import combinations

import matplotlib as mpl
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

import cart
import forest
from benchmarks.oracles.splitter import decrease
from cart.estimators import grower
from forest.interop.bridge import to_sklearn
from importance import drop_column, mdi, oob_permutation
from tests.examples import fewer

pd = pytest.importorskip("pandas", reason="categorical columns of DataFrames")
mpl.use("Agg")

TASKS = {
    "gini": cart.DecisionTreeClassifier,
    "entropy": cart.DecisionTreeClassifier,
    "squared_error": cart.DecisionTreeRegressor,
    "poisson": cart.DecisionTreeRegressor,
}


def make_table(seed, n, n_levels, criterion, n_values=2, n_outputs=1):
    """Codes of a category, a target that depends on it, and whole weights."""
    rng = np.random.default_rng(seed)
    level = rng.integers(0, n_levels, n)
    y = rng.normal(size=(n_levels, n_outputs))[level] + rng.normal(size=(n, n_outputs))
    if criterion in ("gini", "entropy"):
        edges = np.quantile(y, np.arange(1, n_values) / n_values)
        y = np.digitize(y, edges)
    else:
        y = np.rint(3 * np.exp(y))
    return level, y[:, 0] if n_outputs == 1 else y, rng.integers(1, 4, n).astype(float)


def best_by_enumeration(level, y, weight, criterion):
    """The largest decrease of impurity over all subsets of the levels."""
    levels = np.unique(level)
    subsets = (subset for size in range(1, len(levels)) for subset in combinations(levels, size))
    return max(decrease(y, weight, np.isin(level, subset), criterion) for subset in subsets)


def decrease_of_root(model):
    tree = model.tree_
    share = tree.weighted_n_node_samples / tree.weighted_n_node_samples[0]
    return tree.impurity[0] - (share * tree.impurity)[1:3].sum()


def fit(criterion, level, y, weight=None, **params):
    params = {"max_depth": 1, "min_category_ratio": 0.0, "random_state": 0, **params}
    model = TASKS[criterion](criterion=criterion, categorical_features=[0], **params)
    return model.fit(level[:, np.newaxis], y, weight)


@pytest.mark.parametrize("criterion", TASKS)
@pytest.mark.parametrize("seed", range(5))
def test_the_best_of_all_subsets_of_ten_categories_for_one_response(criterion, seed):
    level, y, weight = make_table(seed, 80, 10, criterion)
    model = fit(criterion, level, y, weight)
    expected = best_by_enumeration(level, y, weight, criterion)
    np.testing.assert_allclose(decrease_of_root(model), expected, rtol=1e-9)


@pytest.mark.parametrize(("criterion", "n_values", "n_outputs"), [
    ("gini", 4, 1), ("entropy", 3, 1), ("gini", 2, 2), ("squared_error", 1, 2), ("poisson", 1, 2),
])  # fmt: skip
@pytest.mark.parametrize("seed", range(4))
def test_the_best_of_all_subsets_of_eight_categories_for_several(
    criterion, n_values, n_outputs, seed
):
    level, y, weight = make_table(seed, 60, 8, criterion, n_values, n_outputs)
    expected = best_by_enumeration(level, y, weight, criterion)
    model = fit(criterion, level, y, weight)
    np.testing.assert_allclose(decrease_of_root(model), expected, rtol=1e-9)


def test_many_categories_of_several_classes_are_ordered_by_the_principal_component():
    level, y, _ = make_table(0, 2000, 30, "gini", 4)
    shares = np.array([np.bincount(y[level == c], minlength=4) for c in range(30)], float)
    n = shares.sum(axis=1)
    shares /= n[:, np.newaxis]
    centred = (shares - np.bincount(y) / len(y)) * np.sqrt(n)[:, np.newaxis]
    component = np.linalg.svd(centred)[2][0]
    order = np.argsort(shares @ component)
    ones = np.ones(len(y))
    expected = max(decrease(y, ones, np.isin(level, order[:k]), "gini") for k in range(1, 30))
    np.testing.assert_allclose(decrease_of_root(fit("gini", level, y)), expected, rtol=1e-9)


@pytest.mark.parametrize("min_samples_leaf", [1, 25])
def test_limits_hold_among_all_subsets(min_samples_leaf):
    level, y, _ = make_table(1, 60, 6, "gini", 3)
    ones = np.ones(60)
    legal = [
        subset
        for size in range(1, 6)
        for subset in combinations(range(6), size)
        if min_samples_leaf <= np.isin(level, subset).sum() <= 60 - min_samples_leaf
    ]
    expected = max(decrease(y, ones, np.isin(level, subset), "gini") for subset in legal)
    model = fit("gini", level, y, min_samples_leaf=min_samples_leaf)
    np.testing.assert_allclose(decrease_of_root(model), expected, rtol=1e-9)


WAYS = [
    ("gini", "best", None),
    ("gini", "random", None),
    ("squared_error", "best", 7),
    ("squared_error", "random", None),
]


@given(
    seed=st.integers(0, 10_000),
    n_levels=st.integers(1, 40),
    way=st.sampled_from(WAYS),
    missing=st.sampled_from([0.0, 0.3]),
)
def test_rows_lie_in_their_leaves(seed, n_levels, way, missing):
    """What was grown is what is walked, node by node; parents have the rows of their children."""
    criterion, splitter, max_leaf_nodes = way
    level, y, _ = make_table(seed, 60, n_levels, criterion, 3)
    rng = np.random.default_rng(seed)
    X = np.column_stack([level, rng.normal(size=60), rng.integers(0, 5, 60)]).astype(float)
    X[rng.random(X.shape) < missing] = np.nan
    model = TASKS[criterion](
        criterion=criterion, splitter=splitter, max_leaf_nodes=max_leaf_nodes, random_state=0,
        categorical_features=[0, 2], min_category_ratio=seed % 3,
    ).fit(X, y)  # fmt: skip
    tree = model.tree_
    passed = np.asarray(model.decision_path(X).sum(axis=0)).ravel()
    np.testing.assert_array_equal(passed, tree.n_node_samples)
    same = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(same.predict(X), model.predict(X))


def test_names_of_categories_do_not_matter_beyond_their_order():
    level, y, _ = make_table(0, 300, 20, "squared_error")
    by_code = fit("squared_error", level, y, max_depth=None)
    names = np.array([f"level {c:02}" for c in range(20)])
    frame = pd.DataFrame({"level": names[level]})
    for features in (["level"], [True], [0], "from_dtype"):
        for column in (frame["level"], frame["level"].astype("category")):
            by_name = clone(by_code).set_params(categorical_features=features)
            by_name.fit(column.to_frame(), y)
            np.testing.assert_array_equal(by_name.predict(frame), by_code.predict(level[:, None]))
    assert by_name.is_categorical_.tolist() == [True]
    assert by_name.categories_[0].tolist() == names.tolist()
    assert by_name.feature_names_in_.tolist() == ["level"]


def test_shuffled_codes_give_the_same_predictions():
    level, y, _ = make_table(3, 400, 25, "squared_error")
    shuffled = np.random.default_rng(0).permutation(25)
    a = fit("squared_error", level, y, max_depth=None)
    b = fit("squared_error", shuffled[level], y, max_depth=None)
    np.testing.assert_allclose(
        a.predict(level[:, None]), b.predict(shuffled[level][:, None]), rtol=1e-12
    )


def test_unseen_categories_go_where_most_rows_go():
    level = np.repeat([0, 1, 2, 3], [50, 30, 15, 5])
    y = np.where(level == 3, 10.0, level == 2).astype(float)
    model = fit("squared_error", level, y)
    tree = model.tree_
    larger = 1 + np.argmax(tree.n_node_samples[1:3])
    assert model.apply([[99.0], [-7.0], [0.5]]).tolist() == [larger] * 3
    assert model.apply([[np.nan]]).tolist() == [larger]  # none was missing in training
    listed, listed_left = tree.categories.of(0)
    assert listed.tolist() == [3]
    assert tree.n_node_samples[tree.children_left[0] if listed_left else 2] == 5


def test_monotonic_constraints_of_other_columns_come_as_an_array():
    rng = np.random.default_rng(0)
    X, y = np.c_[rng.integers(0, 4, 80), rng.random(80)], rng.random(80)
    given, listed = (
        cart.DecisionTreeRegressor(categorical_features=[0], monotonic_cst=signs, random_state=0)
        for signs in (np.array([0, 1]), [0, 1])
    )
    np.testing.assert_array_equal(given.fit(X, y).predict(X), listed.fit(X, y).predict(X))


@pytest.mark.parametrize("Model", [cart.DecisionTreeClassifier, forest.ExtraTreesRegressor])
@pytest.mark.parametrize("missing", [None, np.nan])
def test_unseen_categories_are_counted(Model, missing):
    """By column; neither missing values, which training had or had not, nor numbers are."""
    frame = pd.DataFrame(
        {"size": [1.0, 2.0, 3.0], "city": ["a", "b", missing], "kind": list("xyx")}
    )
    model = Model(categorical_features="from_dtype", random_state=0).fit(frame, [0, 1, 0])
    new = pd.DataFrame(
        {"size": [-1.0, 9.0, 9.0], "city": ["c", missing, "c"], "kind": ["z", "x", None]}
    )
    assert cart.count_unseen(model, new).tolist() == [0, 2, 1]
    assert cart.count_unseen(model, frame).tolist() == [0, 0, 0]
    with pytest.raises(ValueError, match="feature names"):
        cart.count_unseen(model, new[["city", "size", "kind"]])
    numbers = Model().fit(frame[["size"]], [0, 1, 0])
    assert cart.count_unseen(numbers, new[["size"]]).tolist() == [0]
    assert cart.count_unseen(numbers, csr_matrix([[1.0]])).tolist() == [0]
    for counted in (model, numbers):
        with pytest.raises(ValueError, match="Expected 2D array, got 1D array"):
            cart.count_unseen(counted, [])
    with pytest.raises(TypeError, match="of Cartwood, but got Pipeline"):
        cart.count_unseen(make_pipeline(model), new)


@pytest.mark.parametrize("far", [-5.0, 5.0])
def test_missing_values_go_to_the_side_that_is_better(far):
    level = np.repeat([0.0, 1.0, np.nan], 20)
    y = np.repeat([-far, far, far], 20)
    model = fit("squared_error", level, y)
    assert model.predict([[np.nan], [1.0], [0.0]]).tolist() == [far, far, -far]


def test_the_guard_leaves_noise_alone():
    """By an F ratio of 3, twenty rows of each of 100 levels that say nothing are not sorted."""
    rng = np.random.default_rng(0)
    level, y = np.repeat(np.arange(100), 20), rng.normal(size=2000)
    assert fit("squared_error", level, y).tree_.node_count == 3
    assert fit("squared_error", level, y, min_category_ratio=3.0).tree_.node_count == 1
    y += np.random.default_rng(1).normal(size=100)[level]
    assert fit("squared_error", level, y, min_category_ratio=3.0).tree_.node_count == 3


@pytest.mark.parametrize(("n_rows", "n_nodes"), [(1, 1), (2, 3)])
def test_categories_of_one_row_each_are_not_sorted(n_rows, n_nodes):
    """Their means cannot be told from noise, however much they vary."""
    level = np.repeat(np.arange(30), n_rows)
    y = (level % 2).astype(float)
    assert fit("squared_error", level, y, min_category_ratio=3.0).tree_.node_count == n_nodes


@pytest.mark.parametrize("feature_draw", ["sequence", "keyed"])
@pytest.mark.parametrize("form", ["general", "fast"])
@pytest.mark.parametrize("Tree", [cart.DecisionTreeClassifier, cart.DecisionTreeRegressor])
def test_a_node_draws_on_past_what_the_guard_bars(Tree, form, feature_draw, monkeypatch):
    """Its children look at the feature again: level says nothing but where x is above 0."""
    if form == "general":
        monkeypatch.setattr(grower, "FAST_PATHS", ())
    rng = np.random.default_rng(0)
    level, x = rng.integers(0, 30, 900), rng.normal(size=900)
    y = np.where(x > 0, level % 2 * 1.0, rng.random(900) < 0.5)
    guarded = {
        "categorical_features": [0], "max_features": 1, "feature_draw": feature_draw,
        "min_samples_leaf": 30, "min_category_ratio": 20.0,
    }  # fmt: skip
    for seed in range(fewer(20)):
        tree = Tree(random_state=seed, **guarded).fit(np.column_stack([level, x]), y).tree_
        assert tree.feature[0] == 1  # whichever was drawn first
        assert 0 in tree.feature


@pytest.mark.parametrize("min_ratio", [0.98, 1.02])
def test_the_guard_is_the_f_ratio(min_ratio):
    level, y, _ = make_table(0, 500, 12, "squared_error")
    means = np.array([y[level == c].mean() for c in range(12)])
    between = (means[level] - y.mean()) @ (means[level] - y.mean()) / 11
    within = (y - means[level]) @ (y - means[level]) / (500 - 12)
    model = fit("squared_error", level, y, min_category_ratio=min_ratio * between / within)
    assert model.tree_.node_count == (3 if min_ratio < 1 else 1)


def test_a_signal_in_many_levels_is_found():
    rng = np.random.default_rng(0)
    level = np.repeat(np.arange(100), 40)
    y = rng.normal(size=100)[level] + rng.normal(size=4000)
    X = np.column_stack([level, rng.normal(size=4000)])  # codes say nothing of their neighbours
    X, X_test, y, y_test = train_test_split(X, y, stratify=level, random_state=0)
    model = forest.RandomForestRegressor(10, min_samples_leaf=60, random_state=0)
    scores = [
        clone(model).set_params(categorical_features=features).fit(X, y).score(X_test, y_test)
        for features in ([0], None)
    ]
    assert scores[0] > scores[1] + 0.05


@pytest.mark.parametrize("dtype", ["String", "Categorical", "Enum"])
def test_polars_is_read_as_pandas(dtype):
    """Its categorical and string columns are found, its nulls are missing: the same tree."""
    pl = pytest.importorskip("polars", reason="columns of another kind of DataFrame")
    level, y, _ = make_table(3, 300, 12, "gini")
    names = [None if code == 11 else f"level {code}" for code in level]
    numbers = np.random.default_rng(0).normal(size=300)
    dtype = pl.Enum(sorted({*names} - {None})) if dtype == "Enum" else getattr(pl, dtype)
    theirs = pl.DataFrame({"a": numbers, "b": pl.Series(names, dtype=dtype)})
    frame = pd.DataFrame({"a": numbers, "b": names})
    models = [
        cart.DecisionTreeClassifier(categorical_features="from_dtype", random_state=0).fit(X, y)
        for X in (theirs, frame)
    ]
    for model in models:
        np.testing.assert_array_equal(model.is_categorical_, [False, True])
        np.testing.assert_array_equal(model.categories_[1][:11], sorted({*names} - {None}))
    np.testing.assert_array_equal(models[0].predict_proba(theirs), models[1].predict_proba(frame))
    np.testing.assert_array_equal(models[0].tree_.feature, models[1].tree_.feature)
    assert np.isnan(models[0].tree_.threshold).any()


FOREST = {"n_estimators": 8, "random_state": 0, "categorical_features": "from_dtype"}


def make_frame(n=200):
    level, y, _ = make_table(0, n, 15, "squared_error")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"level": [f"L{c:02}" for c in level], "x": rng.normal(size=n)})
    frame["few"] = pd.Categorical(rng.choice(["a", "b", "c"], n))
    frame.loc[rng.random(n) < 0.1, "few"] = np.nan
    return frame, y + 3.0 * (frame["few"] == "b")


@pytest.mark.parametrize("loss", ["squared_error"])
def test_exact_permutation_is_the_mean_over_donors(loss):
    frame, y = make_frame(80)
    grown = forest.RandomForestRegressor(**FOREST, min_category_ratio=0.0).fit(frame, y)
    found = oob_permutation(grown, frame, y, loss=loss)
    X = grown.estimators_[0]._category_encoder.transform(frame).astype(np.float32)
    for t, rows in enumerate(grown.estimators_samples_):
        tree = grown.estimators_[t].tree_
        oob = np.setdiff1d(np.arange(len(y)), rows)
        for j in range(3):
            losses = []
            for donor in [None, *oob]:
                moved = X[oob].copy()
                if donor is not None:
                    moved[:, j] = X[donor, j]
                losses.append(((tree.predict(moved)[:, 0] - y.to_numpy()[oob]) ** 2).mean())
            increase = np.mean(losses[1:]) - losses[0]
            np.testing.assert_allclose(found.per_tree[t, j], increase, rtol=1e-9, atol=1e-10)


def test_importances_know_about_categories():
    frame, y = make_frame(400)
    grown = forest.RandomForestRegressor(**FOREST).fit(frame, y)
    assert mdi(grown).values.min() > 0
    for values in (
        oob_permutation(grown, frame, y).values,
        oob_permutation(grown, frame, y, n_repeats=2, random_state=0).values,
        drop_column(grown, frame, y).values,
    ):
        assert values[[0, 2]].min() > values[1]


def test_forests_are_the_same_for_every_n_jobs():
    frame, y = make_frame()
    a, b = (
        forest.RandomForestRegressor(**FOREST, n_jobs=k, oob_score=True, verbose=0)
        .set_params(n_estimators=30).fit(frame, y) for k in (1, 2)
    )  # fmt: skip
    np.testing.assert_array_equal(a.predict(frame), b.predict(frame))
    np.testing.assert_array_equal(a.oob_prediction_, b.oob_prediction_)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # trees are fitted without names, as in scikit-learn
        of_trees = [tree.predict(frame) for tree in a.estimators_]
    np.testing.assert_allclose(a.predict(frame), np.mean(of_trees, axis=0), rtol=1e-12)


def test_warm_start_keeps_the_categories():
    frame, y = make_frame()
    grown = forest.RandomForestRegressor(**FOREST, warm_start=True).fit(frame, y)
    more = frame.assign(level=frame["level"].replace("L03", "never seen"))
    grown.set_params(n_estimators=10).fit(more, y)
    assert "never seen" not in grown.categories_[0]
    assert np.isfinite(grown.predict(more)).all()


def test_a_fit_without_categories_forgets_those_of_the_fit_before():
    """They would be taken for categories that there is no room for."""
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 5, (200, 2)).astype(float), rng.integers(0, 2, 200)
    model = forest.RandomForestClassifier(2, categorical_features=[0], random_state=0).fit(X, y)
    more = X * 1000.0  # beyond the categories known
    model.set_params(warm_start=True, n_estimators=4, categorical_features=None)
    with pytest.raises(ValueError, match=r"categories in columns \[0\], but now .* columns \[\]"):
        model.fit(more, y)
    with pytest.raises(ValueError, match=r"but now they are in columns \[0, 1\]"):
        model.set_params(categorical_features=[0, 1]).fit(X, y)
    model.set_params(categorical_features=None)
    model.set_params(warm_start=False).fit(more, y)
    assert not hasattr(model, "categories_")
    fresh = clone(model).fit(more, y)
    np.testing.assert_array_equal(model.predict_proba(more), fresh.predict_proba(more))
    with pytest.raises(ValueError, match=r"categories in columns \[\], but now .* columns \[1\]"):
        fresh.set_params(warm_start=True, categorical_features=[1], n_estimators=6).fit(more, y)
    tree = cart.DecisionTreeRegressor(categorical_features=[0]).fit(X, y)
    assert tree.set_params(categorical_features=None).fit(more, y).tree_.categories is None


def test_pruning_keeps_the_subsets():
    frame, y = make_frame()
    X = frame[["level"]]
    whole = cart.DecisionTreeRegressor(
        categorical_features="from_dtype", min_category_ratio=0.0, random_state=0
    ).fit(X, y)
    path = whole.cost_complexity_pruning_path(X, y)
    alpha = path.ccp_alphas[len(path.ccp_alphas) // 2] * (1 + 1e-9)
    pruned = clone(whole).set_params(ccp_alpha=alpha).fit(X, y)
    assert 1 < pruned.tree_.node_count < whole.tree_.node_count
    passed = np.asarray(pruned.decision_path(X).sum(axis=0)).ravel()
    np.testing.assert_array_equal(passed, pruned.tree_.n_node_samples)


def test_all_exports_say_the_same():
    frame, y = make_frame()
    model = cart.DecisionTreeRegressor(
        max_depth=2, categorical_features="from_dtype", min_category_ratio=0.0
    ).fit(frame, y)
    tree, names = model.tree_, list(frame.columns)
    listed, listed_left = tree.categories.of(0)
    members = ", ".join(model.categories_[tree.feature[0]][listed][:8])
    condition = f"{names[tree.feature[0]]} {'in' if listed_left else 'not in'} {{{members}"
    text = cart.export_text(model, feature_names=names)
    assert text.startswith(f"|--- {condition}")
    assert "0.00" not in text.splitlines()[0]
    assert condition in cart.export_graphviz(model, feature_names=names)
    assert cart.plot_tree(model, feature_names=names)[0].get_text().startswith(condition)
    first, second = (line for line in text.splitlines() if line.startswith("|---"))
    swapped = (
        second.replace("not in", "in") if "not in" in second else second.replace("in", "not in", 1)
    )
    assert first == swapped


def test_the_bridge_refuses():
    frame, y = make_frame()
    model = forest.RandomForestRegressor(**FOREST).fit(frame, y)
    for fitted in (model, model.estimators_[0]):
        with pytest.raises(ValueError, match="subsets of categories"):
            to_sklearn(fitted)


FRAME, Y = make_frame(60)
REFUSALS = {
    "unknown name": ({"categorical_features": ["lvl"]}, "lvl"),
    "short mask": ({"categorical_features": [True]}, "mask of 1 columns, but X has 3"),
    "number too large": ({"categorical_features": [3]}, r"\[0, 3\)"),
    "float": ({"categorical_features": [0.5]}, "mask, column numbers"),
    "absolute_error": ({"criterion": "absolute_error"}, "absolute_error"),
    "monotonic": ({"monotonic_cst": [1, 0, 0]}, "monotonic_cst must be 0"),
    "misspelt": ({"categorical_features": "from_dtypes"}, "from_dtype"),
    "negative ratio": ({"min_category_ratio": -1.0}, "min_category_ratio"),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_refusals(case):
    params, says = REFUSALS[case]
    model = cart.DecisionTreeRegressor(**{"categorical_features": "from_dtype", **params})
    with pytest.raises(ValueError, match=says):
        model.fit(FRAME, Y)


def test_refusals_of_tables():
    from scipy.sparse import csr_matrix

    model = cart.DecisionTreeRegressor(categorical_features=[0])
    with pytest.raises(ValueError, match="dense table"):
        model.fit(csr_matrix(np.eye(3)), [1, 2, 3])
    with pytest.raises(ValueError, match="needs a DataFrame"):
        model.set_params(categorical_features="from_dtype").fit(np.eye(3), [1, 2, 3])
    with pytest.raises(ValueError, match="could not convert string"):
        model.set_params(categorical_features=["few"]).fit(FRAME, Y)


@pytest.mark.parametrize(
    ("values", "kinds"),
    [([1, "a"] * 3, "int and str"), ([(1, 2), (1, 3)] * 3, "tuple"), ([[1], [2]] * 3, "list")],
)
def test_values_that_do_not_sort_are_named(values, kinds):
    frame = pd.DataFrame({"x": range(6), "c": pd.Series(values, dtype=object)})
    model = cart.DecisionTreeRegressor(categorical_features=["c"])
    with pytest.raises(TypeError, match=f"Column 'c' holds {kinds}, which cannot be sorted"):
        model.fit(frame, range(6))
    model.set_params(categorical_features=[1])
    with pytest.raises(TypeError, match=f"Column 1 holds {kinds}, which cannot be sorted"):
        model.fit([[x, value] for x, value in enumerate(values)], range(6))
    model.fit(frame.assign(c=frame["c"].map(str)), range(6))


def test_no_categorical_column_is_no_different():
    X = FRAME[["x"]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        a = cart.DecisionTreeRegressor(random_state=0, categorical_features="from_dtype").fit(X, Y)
        b = cart.DecisionTreeRegressor(random_state=0).fit(X, Y)
    np.testing.assert_array_equal(a.tree_.threshold, b.tree_.threshold)
    assert cart.export_text(a) == cart.export_text(b)


def test_all_drawn_subsets_are_equally_likely():
    """Of three categories six have two sides; those that one side is mended to count as well."""
    X, y = np.repeat([0, 1, 2], 4)[:, np.newaxis], np.tile([0, 1], 6)
    params = {"max_depth": 1, "random_state": 0, "categorical_features": [0]}
    model = forest.ExtraTreesClassifier(3000, **params)
    leaves = [tree.apply([[0], [1], [2]]) for tree in model.fit(X, y).estimators_]
    counts = np.bincount((np.array(leaves) == 1) @ [1, 2, 4], minlength=8)
    assert counts[0] == counts[7] == 0
    assert np.abs(counts[1:7] - 500).max() < 4 * np.sqrt(3000 * 1 / 6 * 5 / 6)


def test_a_side_may_weigh_exactly_the_least_that_is_asked_for():
    X, y = np.repeat(np.arange(4), 2)[:, np.newaxis], [0, 0, 1, 2, 1, 2, 2, 1]
    params = {"max_depth": 1, "categorical_features": [0]}
    for share, sizes in ((0.25, [2, 6]), (0.26, [4, 4])):
        tree = cart.DecisionTreeClassifier(min_weight_fraction_leaf=share, **params).fit(X, y).tree_
        assert sorted(tree.n_node_samples[1:]) == sizes
