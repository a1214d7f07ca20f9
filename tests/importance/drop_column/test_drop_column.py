"""Drop-column importance against refits made one by one, in all of its forms."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris
from sklearn.ensemble import RandomForestClassifier as PeerClassifier
from sklearn.ensemble import RandomForestRegressor as PeerRegressor
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    ShuffleSplit,
    StratifiedKFold,
    TimeSeriesSplit,
)
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from forest import (
    ExtraTreesClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from importance import drop_column
from tests.oracles import forests as oracle

GROUPS = {"pair": [0, 2]}
SETS = ([0, 2], [1], [3])  # what is left out of four columns
CASES = [
    (RandomForestClassifier, DecisionTreeClassifier(max_features="sqrt"), load_iris, "zero_one"),
    (RandomForestClassifier, DecisionTreeClassifier(max_features="sqrt"), load_iris, "brier"),
    (RandomForestRegressor, DecisionTreeRegressor(), load_diabetes, "squared_error"),
]
EACH_CASE = pytest.mark.parametrize(
    ("kind", "tree", "load", "loss"), CASES, ids=["zero_one", "brier", "squared_error"]
)


def table(load, n=120):
    """Four columns in which no two cuts tie, and targets of the order of 1."""
    X, y = load(return_X_y=True)
    rng = np.random.RandomState(0)
    rows = rng.permutation(len(y))[:n]
    X = (X[rows][:, [2, 8, 3, 6]] if load is load_diabetes else X[rows]).copy()
    X += rng.normal(scale=0.2 * X.std(axis=0), size=X.shape)
    return X.astype(np.float32), y[rows] / 100 if load is load_diabetes else y[rows]


def vote(tree, X, y, seeds, others=None, is_hard=False):
    """Mean output of trees grown one by one: out of bag, or on other rows; nan where none votes."""
    n = len(X)
    rows_judged = X if others is None else others
    total, n_trees = 0.0, np.zeros((len(rows_judged), 1))
    for seed in seeds:
        counts = np.bincount(np.random.RandomState(seed).randint(0, n, n), minlength=n)
        model = clone(tree).set_params(random_state=seed).fit(X, y, sample_weight=counts)
        is_judge = counts == 0 if others is None else np.ones(len(others), bool)
        if hasattr(model, "predict_proba"):
            said = model.predict_proba(rows_judged)
            said = np.eye(said.shape[1])[said.argmax(axis=1)] if is_hard else said
        else:
            said = model.predict(rows_judged)[:, np.newaxis]
        total = total + np.where(is_judge[:, np.newaxis], said, 0.0)
        n_trees += is_judge[:, np.newaxis]
    with np.errstate(invalid="ignore"):
        return total / n_trees


def row_losses(values, y, loss):
    known = ~np.isnan(values[:, 0])
    out = np.full(len(y), np.nan)
    out[known] = oracle.row_losses(values[known], y[known], loss)
    return out


def differences(tree, X, y, seeds, loss, others=None, is_hard=False):
    """Row by row, the loss without each of SETS less that with all columns."""
    targets = y
    if others is not None:
        others, targets = others

    def losses(columns):
        left = None if others is None else np.delete(others, columns, axis=1)
        values = vote(tree, np.delete(X, columns, axis=1), y, seeds, left, is_hard)
        return row_losses(values, targets, loss)

    return np.column_stack([losses(columns) - losses([]) for columns in SETS])


def seeds_of(forest):
    return np.array([tree.random_state for tree in forest.estimators_])


# ------------------------------------------------------------------------------- out of bag


@EACH_CASE
def test_a_group_is_left_out_as_one(kind, tree, load, loss):
    X, y = table(load)
    forest = kind(20, random_state=3).fit(X, y)
    result = drop_column(forest, X, y, loss=loss, groups=GROUPS, n_jobs=2)
    expected = differences(tree, X, y, seeds_of(forest), loss)
    known = ~np.isnan(expected[:, 0])
    assert list(result.feature_names) == ["pair", "x1", "x3"]
    np.testing.assert_allclose(result.per_row, expected, atol=1e-12)
    np.testing.assert_allclose(result.values, expected[known].mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(
        result.standard_error, expected[known].std(axis=0) / np.sqrt(known.sum()), atol=1e-12
    )
    assert result.uncertainty == "over rows, for this pair of forests"
    assert result.other_errors == {}


@EACH_CASE
def test_further_pairs_of_forests(kind, tree, load, loss):
    X, y = table(load)
    forest = kind(5, random_state=3).fit(X, y)
    result = drop_column(forest, X, y, loss=loss, groups=GROUPS, n_refits=3)
    seeds = seeds_of(forest)
    further = np.random.RandomState(seeds).randint(2**31 - 1, size=(2, 5))
    pairs = [differences(tree, X, y, pair, loss) for pair in (seeds, *further)]
    values = np.array([np.nanmean(pair, axis=0) for pair in pairs])
    per_row = np.nanmean(pairs, axis=0)
    known = ~np.isnan(per_row[:, 0])
    assert any(np.isnan(pair[known]).any() for pair in pairs)  # rows may be known in some pairs
    np.testing.assert_allclose(result.values, values.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(
        result.other_errors["over refits"], values.std(axis=0, ddof=1) / np.sqrt(3), atol=1e-12
    )
    np.testing.assert_allclose(result.per_row, per_row, atol=1e-12)
    np.testing.assert_allclose(
        result.standard_error, per_row[known].std(axis=0) / np.sqrt(known.sum()), atol=1e-12
    )
    assert "3 pairs" in result.uncertainty
    assert result.per_tree.shape == (15, 3)
    first = drop_column(forest, X, y, loss=loss, groups=GROUPS)
    np.testing.assert_array_equal(result.per_tree[:5], first.per_tree)


def test_weights_count_in_the_loss_only():
    X, y = table(load_iris)
    weight = np.random.RandomState(0).randint(0, 4, len(y)).astype(float)
    forest = RandomForestClassifier(10, random_state=0).fit(X, y)
    plain = drop_column(forest, X, y, loss="brier")
    result = drop_column(forest, X, y, loss="brier", sample_weight=weight)
    np.testing.assert_array_equal(result.per_row, plain.per_row)
    known = ~np.isnan(plain.per_row[:, 0])
    d, w = plain.per_row[known], weight[known]
    np.testing.assert_allclose(result.values, np.average(d, axis=0, weights=w))
    np.testing.assert_allclose(
        result.standard_error,
        np.sqrt((w[:, np.newaxis] ** 2 * (d - result.values) ** 2).sum(axis=0)) / w.sum(),
    )
    for k in range(3):
        mine = known & (y == k)
        expected = np.average(plain.per_row[mine], axis=0, weights=weight[mine])
        np.testing.assert_allclose(result.per_class[k], expected)
    tree = forest.estimators_[0].tree_
    rows = oracle.out_of_bag(forest.estimators_samples_[0], len(y))
    ours = oracle.row_losses(tree.value[tree.apply(X[rows]), 0], y[rows], "brier")
    seed = forest.estimators_[0].random_state
    counts = np.bincount(forest.estimators_samples_[0], minlength=len(y))
    refit = DecisionTreeClassifier(max_features="sqrt", random_state=seed)
    refit.fit(X[:, 1:], y, sample_weight=counts)
    without = oracle.row_losses(refit.predict_proba(X[rows, 1:]), y[rows], "brier")
    assert result.per_tree[0, 0] == pytest.approx(np.average(without - ours, weights=weight[rows]))
    scaled = drop_column(forest, X, y, loss="brier", sample_weight=weight / 1024)
    for name in ("values", "standard_error", "per_tree", "per_class"):
        np.testing.assert_allclose(getattr(scaled, name), getattr(result, name), rtol=1e-12)


def test_the_majority_votes_where_the_forest_says_so():
    X, y = table(load_iris)
    forest = RandomForestClassifier(9, random_state=0, voting="majority", max_depth=2).fit(X, y)
    tree = DecisionTreeClassifier(max_features="sqrt", max_depth=2)
    expected = differences(tree, X, y, seeds_of(forest), "brier", is_hard=True)
    result = drop_column(forest, X, y, loss="brier", groups=GROUPS)
    np.testing.assert_allclose(result.per_row, expected, atol=1e-12)
    soft = drop_column(forest.set_params(voting="soft"), X, y, loss="brier", groups=GROUPS)
    assert not np.allclose(soft.values, result.values)


@pytest.mark.parametrize("missing", [0.0, 0.1])
@EACH_CASE
def test_adopted_forests_say_the_same(kind, tree, load, loss, missing):
    X, y = table(load)
    X[np.random.RandomState(1).uniform(size=X.shape) < missing] = np.nan
    peer = PeerClassifier if kind is RandomForestClassifier else PeerRegressor
    ours, theirs = (k(8, random_state=0, max_samples=0.7).fit(X, y) for k in (kind, peer))
    for params in ({"n_refits": 2}, {"on": 3}, {"on": (X[:50] + 0.01, y[:50]), "n_refits": 2}):
        a, b = (
            drop_column(forest, X, y, loss=loss, groups=GROUPS, **params)
            for forest in (ours, theirs)
        )
        for name in ("values", "standard_error", "per_tree", "per_row"):
            np.testing.assert_allclose(getattr(a, name), getattr(b, name), atol=1e-12)


def test_groups_of_every_kind_of_table():
    """Sparse, with categories, of random splitters, with draws by name, constrained."""
    rng = np.random.RandomState(0)
    X = np.where(rng.uniform(size=(150, 5)) < 0.4, rng.normal(size=(150, 5)), 0.0)
    y = X[:, 0] + 2 * X[:, 1] - X[:, 4] + rng.normal(size=150) / 4
    frame = pd.DataFrame(X, columns=list("abcde"))
    mixed = frame + rng.normal(scale=0.01, size=frame.shape)
    mixed["c"] = pd.Categorical(rng.choice(list("uvwxyz"), 150))
    for columns, kind, params in (
        (frame, RandomForestRegressor, {}),
        (frame, RandomForestRegressor, {"feature_draw": "keyed", "max_features": 2}),
        (frame, RandomForestRegressor, {"monotonic_cst": [1, 1, 0, 0, -1]}),
        (frame, RandomForestRegressor, {"precision": "float64", "min_samples_leaf": 0.02}),
        # One feature at a time: without its only categories a table adds up sums in another order,
        # and rounding chooses between features that cut alike.
        (mixed, RandomForestRegressor, {"categorical_features": "from_dtype", "max_features": 1}),
    ):
        params = {"n_estimators": 40, "random_state": 0, "oob_score": True, **params}
        forest = kind(**params).fit(columns, y)
        result = drop_column(forest, columns, y, groups=[["c", "a"]])
        assert list(result.feature_names) == ["a + c", "b", "d", "e"]
        for value, left_out in zip(result.values, (["a", "c"], ["b"], ["d"], ["e"]), strict=True):
            if params.get("monotonic_cst") is not None:
                is_kept = ~frame.columns.isin(left_out)
                params["monotonic_cst"] = np.array([1, 1, 0, 0, -1])[is_kept]
            without = kind(**params).fit(columns.drop(columns=left_out), y)
            known = ~np.isnan(without.oob_prediction_)
            more = (without.oob_prediction_ - y) ** 2 - (forest.oob_prediction_ - y) ** 2
            assert value == pytest.approx(more[known].mean(), abs=1e-12)
    params = {"max_features": 2, "random_state": 0}
    dense, sparse = (
        drop_column(
            RandomForestClassifier(20, **params).fit(T, y > 0), T, y > 0,
            loss="brier", groups=[[0, 2]],
        )
        for T in (X, csr_matrix(X))
    )  # fmt: skip
    np.testing.assert_allclose(dense.per_row, sparse.per_row, atol=1e-12)


# ----------------------------------------------------------------------------- on other rows


@EACH_CASE
def test_on_rows_held_out(kind, tree, load, loss):
    X, y = table(load, 150)
    others = X[100:], y[100:]
    X, y = X[:100], y[:100]
    forest = kind(6, random_state=1).fit(X, y)
    weight = np.arange(50.0)
    result = drop_column(
        forest, X, y, loss=loss, groups=GROUPS, on=others, n_refits=2, sample_weight=weight
    )
    seeds = seeds_of(forest)
    further = np.random.RandomState(seeds).randint(2**31 - 1, size=6)
    pairs = [differences(tree, X, y, pair, loss, others) for pair in (seeds, further)]
    np.testing.assert_allclose(result.per_row, np.mean(pairs, axis=0), atol=1e-12)
    np.testing.assert_allclose(
        result.values, np.average(np.mean(pairs, axis=0), axis=0, weights=weight), atol=1e-12
    )
    assert "held-out" in result.unit
    listed = drop_column(
        forest, X, y, loss=loss, groups=GROUPS, on=[*others], n_refits=2, sample_weight=weight
    )
    np.testing.assert_array_equal(listed.values, result.values)


@EACH_CASE
def test_on_folds(kind, tree, load, loss):
    X, y = table(load)
    forest = kind(6, random_state=1).fit(X, y)
    is_classifier = kind is RandomForestClassifier
    three = StratifiedKFold(3) if is_classifier else KFold(3)
    shuffled = ShuffleSplit(4, random_state=0)
    for on, folds in (
        (3, three.split(X, y)),
        (shuffled, shuffled.split(X)),
        (list(KFold(2).split(X)), KFold(2).split(X)),
    ):
        total, n_times = np.zeros((len(y), 3)), np.zeros((len(y), 1))
        for train, test in folds:
            total[test] += differences(
                tree, X[train], y[train], seeds_of(forest), loss, (X[test], y[test])
            )
            n_times[test] += 1
        with np.errstate(invalid="ignore"):
            expected = total / n_times
        known = n_times[:, 0] > 0
        result = drop_column(forest, X, y, loss=loss, groups=GROUPS, on=on)
        np.testing.assert_allclose(result.per_row, expected, atol=1e-12)
        np.testing.assert_allclose(result.values, expected[known].mean(axis=0), atol=1e-12)
        assert "cross-validated" in result.unit


@pytest.mark.parametrize(
    "params",
    [
        {"max_samples": 0.5},
        {"replace": False, "min_samples_leaf": 0.05},
        {"stratify": True, "max_samples": 40},
        {"class_weight": "balanced_subsample"},
        {"class_weight": {0: 1, 1: 5, 2: 2}},
        {"bootstrap": False, "class_weight": {0: 1, 1: 5, 2: 2}},
        {"groups": True},
        {"in_bag": True},
        {"weight": True},
    ],
    ids=str,
)
def test_folds_are_drawn_from_as_a_fit_draws_from_them(params):
    """Any other draw or weight: against fits of the estimator on the rows of each fold."""
    X, y = table(load_iris)
    rng = np.random.RandomState(0)
    params, fit = dict(params), {}
    if params.pop("groups", False):
        fit["groups"] = np.repeat(np.arange(30), 4)
    if params.pop("in_bag", False):
        fit["in_bag"] = rng.randint(0, 3, size=(7, len(y)))
    if params.pop("weight", False):
        fit["sample_weight"] = rng.uniform(size=len(y))
    forest = RandomForestClassifier(7, random_state=0, **params).fit(X, y, **fit)
    splits = list(KFold(3, shuffle=True, random_state=0).split(X))
    if "groups" in fit:  # which folds must not part
        splits = list(GroupKFold(3).split(X, y, fit["groups"]))
    result = drop_column(forest, X, y, loss="brier", on=splits)

    def losses(train, test, columns):
        given = {name: np.asarray(v)[..., train] for name, v in fit.items()}
        left = np.delete(X, columns, axis=1)
        model = clone(forest).fit(left[train], y[train], **given)
        return oracle.row_losses(model.predict_proba(left[test]), y[test], "brier")

    expected = np.empty((len(y), 4))
    for train, test in splits:
        base = losses(train, test, [])
        expected[test] = np.column_stack([losses(train, test, [j]) - base for j in range(4)])
    np.testing.assert_allclose(result.per_row, expected, atol=1e-12)


def test_errors_are_over_groups_of_rows():
    """Rows of a group are no more independent of each other than the forest's draws take them."""
    rng = np.random.default_rng(0)
    groups = rng.permutation(np.repeat(np.arange(30), 4))
    X, y = rng.normal(size=(30, 2))[groups], rng.normal(size=30)[groups]
    forest = RandomForestRegressor(5, random_state=0).fit(X, y, groups=groups)
    found = drop_column(forest, X, y)
    known = ~np.isnan(found.per_row[:, 0])
    apart = (found.per_row - found.values)[known] / known.sum()
    together = np.array([apart[groups[known] == g].sum(axis=0) for g in range(30)])
    np.testing.assert_allclose(found.standard_error, np.sqrt((together**2).sum(axis=0)))


def test_forests_without_a_bootstrap_are_judged_by_other_rows():
    X, y = table(load_iris)
    forest = ExtraTreesClassifier(10, random_state=0).fit(X[:80], y[:80])
    result = drop_column(forest, X[:80], y[:80], loss="brier", on=(X[80:], y[80:]))
    base = oracle.row_losses(forest.predict_proba(X[80:]), y[80:], "brier")
    for j in range(4):
        left = np.delete(X, j, axis=1)
        refit = clone(forest).fit(left[:80], y[:80])
        more = oracle.row_losses(refit.predict_proba(left[80:]), y[80:], "brier") - base
        assert result.values[j] == pytest.approx(more.mean(), abs=1e-12)
    with pytest.raises(ValueError, match="bootstrap=True"):
        drop_column(forest, X[:80], y[:80])


def test_rows_that_no_fold_judges_say_nothing():
    X, y = table(load_diabetes)
    forest = RandomForestRegressor(5, random_state=0).fit(X, y)
    result = drop_column(forest, X, y, on=TimeSeriesSplit(3))
    np.testing.assert_array_equal(np.isnan(result.per_row[:, 0]), np.arange(120) < 30)
    assert np.isfinite(result.values).all()
    assert result.per_class is None


@pytest.mark.parametrize(("n_rows", "weight"), [(1, None), (2, [0.0, 3.0])])
def test_one_row_has_no_error(n_rows, weight):
    X, y = table(load_diabetes)
    forest = RandomForestRegressor(5, random_state=0).fit(X[n_rows:], y[n_rows:])
    on = X[:n_rows], y[:n_rows]
    result = drop_column(forest, X[n_rows:], y[n_rows:], on=on, sample_weight=weight)
    assert np.isfinite(result.values).all()
    assert np.isnan(result.standard_error).all()


# --------------------------------------------------------------------------- work and refusals


@pytest.mark.parametrize("on", ["oob", 2, "held out"])
def test_the_result_does_not_depend_on_n_jobs(on):
    X, y = table(load_diabetes)
    forest = RandomForestRegressor(40, random_state=0).fit(X, y)
    on = (X[:50] + 0.01, y[:50]) if on == "held out" else on
    a, b = (drop_column(forest, X, y, on=on, n_refits=2, n_jobs=n_jobs) for n_jobs in (1, 3))
    for name in ("values", "standard_error", "per_tree", "per_row"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))


def test_every_tree_that_is_grown_is_told():
    X, y = table(load_iris)
    forest = RandomForestClassifier(5, random_state=0).fit(X, y)
    for params, n_forests in (
        ({}, 4),
        ({"n_refits": 2, "groups": GROUPS}, 3 + 4),
        ({"on": 3}, 3 * 5),
        ({"on": (X + 0.01, y), "n_refits": 2}, 4 + 5),
    ):
        seen = []
        drop_column(forest, X, y, callback=seen.append, n_jobs=2, **params)
        assert [progress.n_done for progress in seen] == list(range(1, 5 * n_forests + 1))
        assert seen[0].n_total == 5 * n_forests


def test_an_error_in_a_thread_is_the_callers():
    X, y = table(load_iris)
    forest = RandomForestClassifier(40, random_state=0).fit(X, y)

    def fail(progress):
        if progress.n_done == 30:
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        drop_column(forest, X, y, callback=fail, n_jobs=2)


def test_refusals():
    X, y = table(load_iris)
    forest = RandomForestClassifier(5, random_state=0).fit(X, y)
    for params, message in (
        ({"groups": {"all": [0, 1, 2, 3]}}, "'all' no column is left"),
        ({"groups": {"a": [0, 1], "b": [1]}}, "overlap"),
        ({"on": "cv"}, "cross-validation splitter"),
        ({"on": [([0, 1], [len(y)])]}, f"to {len(y) - 1}, but one is wrong: index"),
        ({"on": np.arange(3)}, "pairs of training rows and held-out rows"),
        ({"on": [([0, 1], [])]}, "without training rows or held-out rows"),
        ({"on": (X[:, :3], y)}, "3 features"),
        ({"on": (X, y[:5])}, "y has shape"),
        ({"on": (X[:9], y[:9]), "sample_weight": np.ones(len(y))}, "sample_weight"),
        ({"n_refits": 0}, "n_refits=0"),
        ({"sample_weight": np.zeros(len(y))}, "non-zero"),
        ({"sample_weight": -np.ones(len(y))}, "[Nn]egative"),
    ):
        with pytest.raises(ValueError, match=message):
            drop_column(forest, X, y, **params)
    in_bag = np.ones((5, len(y)), int)
    in_bag[:, :2] = 0
    given = RandomForestClassifier(5, random_state=0).fit(X, y, in_bag=in_bag)
    with pytest.raises(ValueError, match="0 in every judged row"):
        drop_column(given, X, y, sample_weight=np.arange(len(y)) > 5)
    few = RandomForestClassifier(5, random_state=0).fit(X, y, sample_weight=np.arange(len(y)) < 5)
    with pytest.raises(ValueError, match="Every row has weight 0"):
        drop_column(few, X, y, on=KFold(2))


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("to_table", [np.asarray, csr_matrix])
def test_lone_roots_lose_nothing_without_a_column(to_table):
    """Of a sparse table they use no column; the interpreter ended there."""
    X, y = load_iris(return_X_y=True)
    forest = RandomForestRegressor(5, min_samples_leaf=100, random_state=0).fit(to_table(X), y)
    np.testing.assert_array_equal(drop_column(forest, to_table(X), y).values, 0.0)


def test_a_tree_whose_rows_have_no_weight_has_no_loss():
    X, y = table(load_iris)
    forest = RandomForestClassifier(4, random_state=0).fit(X, y)
    weight = np.bincount(forest.estimators_samples_[0], minlength=len(y)).astype(float)
    result = drop_column(forest, X, y, sample_weight=weight)
    assert np.isnan(result.per_tree[0]).all()
    assert not np.isnan(result.per_tree[1:]).any()
