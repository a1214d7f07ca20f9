"""Each importance against its slow twin, against scikit-learn, and what it promises."""

import matplotlib
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.ensemble import RandomForestClassifier as PeerClassifier
from sklearn.ensemble import RandomForestRegressor as PeerRegressor
from sklearn.exceptions import NotFittedError

import importance
from forest import RandomForestClassifier, RandomForestRegressor
from importance import drop_column, mdi, oob_permutation
from tests.oracles import forests as oracle

CASES = [
    (RandomForestClassifier, PeerClassifier, load_iris, "zero_one"),
    (RandomForestClassifier, PeerClassifier, load_iris, "brier"),
    (RandomForestRegressor, PeerRegressor, load_diabetes, "squared_error"),
]
EACH_CASE = pytest.mark.parametrize(
    ("ours", "peer", "load", "loss"), CASES, ids=["zero_one", "brier", "squared_error"]
)


def small(load, n=90):
    """Some rows of a data set, with equal values left in."""
    X, y = load(return_X_y=True)
    rows = np.random.RandomState(0).permutation(len(y))[:n]
    return np.round(X[rows], 2).astype(np.float32), y[rows]


def with_gaps(X, share):
    """X with so many of its values missing, most of them in the first column."""
    rng = np.random.RandomState(1)
    X = X.copy()
    X[rng.uniform(size=X.shape) < share * np.linspace(2, 0, X.shape[1])] = np.nan
    return X


def scale(loss, y):
    return np.var(y) if loss == "squared_error" else 1.0


def trees(forest):
    return [tree.tree_ for tree in forest.estimators_]


# ------------------------------------------------------------------------------------- MDI


@pytest.mark.parametrize("load", [load_iris, load_breast_cancer, load_diabetes])
def test_mdi_is_scikit_learns(load):
    X, y = load(return_X_y=True)
    ours, peer = (
        (RandomForestRegressor, PeerRegressor)
        if load is load_diabetes
        else (RandomForestClassifier, PeerClassifier)
    )
    expected = peer(30, random_state=0).fit(X, y).feature_importances_
    forest = ours(30, random_state=0).fit(X, y)
    result = mdi(forest)
    np.testing.assert_allclose(result.values, expected, atol=1e-12)
    np.testing.assert_allclose(
        result.per_tree, [oracle.impurity_decrease(tree) for tree in trees(forest)], atol=1e-12
    )
    np.testing.assert_allclose(result.standard_error, result.per_tree.std(axis=0) / np.sqrt(30))


def test_mdi_of_lone_roots():
    """Trees that do not split say nothing: 0 if none does, left out if some do."""
    X, y = load_iris(return_X_y=True)
    alone = RandomForestClassifier(3, min_samples_leaf=0.9, random_state=0).fit(X, y)
    result = mdi(alone)
    assert not result.values.any()
    assert np.isnan(result.per_tree).all()
    some = RandomForestClassifier(40, max_samples=2, random_state=0).fit(X, y)
    per_tree = mdi(some).per_tree
    assert 0 < np.isnan(per_tree).all(axis=1).sum() < 40
    np.testing.assert_allclose(mdi(some).values, some.feature_importances_, atol=1e-12)


@given(seed=st.integers(0, 500), n_classes=st.integers(1, 4), depth=st.integers(1, 8))
def test_mdi_sums_to_one_or_zero(seed, n_classes, depth):
    rng = np.random.RandomState(seed)
    X = rng.randint(0, 4, size=(30, 3))
    forest = RandomForestClassifier(4, max_depth=depth, random_state=seed)
    values = mdi(forest.fit(X, rng.randint(n_classes, size=30))).values
    assert values.min() >= 0.0
    assert values.sum() == pytest.approx(1.0) or not values.any()


# -------------------------------------------------------------------- out-of-bag permutation


@EACH_CASE
@pytest.mark.parametrize("params", [{}, {"max_leaf_nodes": 9}, {"max_depth": 3}], ids=str)
@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("adopted", [False, True], ids=["ours", "adopted"])
def test_exact_permutation_is_the_mean_over_all_donors(
    ours, peer, load, loss, params, missing, adopted
):
    X, y = small(load)
    X = with_gaps(X, missing)
    kind = peer if adopted else ours
    forest = kind(4, random_state=1, max_features=2, **params).fit(X, y)
    result = oob_permutation(forest, X, y, loss=loss)
    expected = []
    for tree, draws in zip(trees(forest), forest.estimators_samples_, strict=True):
        rows = oracle.out_of_bag(draws, len(X))
        expected.append(oracle.permutation_of_every_donor(tree, X[rows], y[rows], loss))
    np.testing.assert_allclose(
        result.per_tree / scale(loss, y), np.array(expected) / scale(loss, y), atol=1e-10
    )
    np.testing.assert_allclose(result.values, result.per_tree.mean(axis=0))
    d = result.per_tree
    np.testing.assert_allclose(
        result.errors["over trees"],
        np.sqrt(((d**2).mean(axis=0) - d.mean(axis=0) ** 2) / 4),
        rtol=1e-6,
    )


def test_exact_permutation_down_a_chain():
    """Trees nearly as deep as they have leaves: at every split another row strays."""
    X = np.repeat(np.arange(60.0)[:, np.newaxis], 3, axis=1)
    y = 1.5 ** np.arange(60)
    forest = RandomForestRegressor(4, max_features=1, random_state=0).fit(X, y)
    result = oob_permutation(forest, X, y)
    for tree, draws, values in zip(
        trees(forest), forest.estimators_samples_, result.per_tree, strict=True
    ):
        assert tree.max_depth > 15
        rows = oracle.out_of_bag(draws, len(X))
        expected = oracle.permutation_of_every_donor(tree, X[rows], y[rows], "squared_error")
        np.testing.assert_allclose(values, expected, rtol=1e-10)


@EACH_CASE
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_shuffles_agree_with_the_expectation(ours, peer, load, loss, missing):
    """Within three standard errors, of each feature, over 400 shuffles of each tree."""
    X, y = small(load)
    X = with_gaps(X, missing)
    forest = ours(6, random_state=1).fit(X, y)
    exact = oob_permutation(forest, X, y, loss=loss)
    shuffled = np.array(
        [
            oob_permutation(forest, X, y, loss=loss, n_repeats=20, random_state=seed).values
            for seed in range(20)
        ]
    )
    error = shuffled.std(axis=0, ddof=1) / np.sqrt(20)
    assert (np.abs(shuffled.mean(axis=0) - exact.values) <= 3 * error + 1e-12).all()
    assert error.max() > 0.0


@EACH_CASE
@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_adopted_forests_say_the_same(ours, peer, load, loss, missing):
    X, y = load(return_X_y=True)
    X = with_gaps(X, missing)
    a = ours(10, random_state=0).fit(X, y)
    b = peer(10, random_state=0).fit(X, y)
    for measure in (oob_permutation, drop_column):
        mine, theirs = measure(a, X, y, loss=loss), measure(b, X, y, loss=loss)
        for name in ("values", "standard_error", "per_tree"):
            unit = scale(loss, y)
            np.testing.assert_allclose(
                getattr(mine, name) / unit, getattr(theirs, name) / unit, atol=1e-12
            )
    np.testing.assert_allclose(mdi(a).values, mdi(b).values, atol=1e-12)


@given(seed=st.integers(0, 500))
def test_an_unused_feature_has_exactly_zero(seed):
    rng = np.random.RandomState(seed)
    X = rng.normal(size=(40, 4))
    X[:, 2] = 7.0
    y = X[:, 0] + rng.normal(size=40)
    forest = RandomForestRegressor(5, random_state=seed).fit(X, y)
    for n_repeats in (None, 2):
        result = oob_permutation(forest, X, y, n_repeats=n_repeats, random_state=0)
        assert result.values[2] == 0.0
        assert result.standard_error[2] == 0.0


def test_which_donors_are_missing_is_all_that_counts():
    """A feature of which trees know only whether it is missing: two kinds of donors."""
    rng = np.random.RandomState(0)
    y = rng.randint(2, size=80)
    X = np.column_stack((np.where(y == 1, np.nan, 5.0), np.full(80, 3.0)))
    forest = RandomForestClassifier(5, max_features=None, random_state=0).fit(X, y)
    result = oob_permutation(forest, X, y, loss="zero_one")
    for d, draws in zip(result.per_tree, forest.estimators_samples_, strict=True):
        share = y[oracle.out_of_bag(draws, len(X))].mean()
        assert d[0] == pytest.approx(2 * share * (1 - share))
        assert d[1] == 0.0


@EACH_CASE
def test_sparse_tables_say_what_dense_ones_say(ours, peer, load, loss):
    X, y = small(load)
    X = np.where(np.random.RandomState(0).uniform(size=X.shape) < 0.5, X, np.float32(0))
    for kind in (ours, peer):
        forests = [(kind(6, random_state=0).fit(table, y), table) for table in (X, csr_matrix(X))]
        for measure, params in (
            (oob_permutation, {}),
            (oob_permutation, {"n_repeats": 2, "random_state": 0}),
            (drop_column, {}),
        ):
            dense, sparse = (measure(*fitted, y, loss=loss, **params) for fitted in forests)
            np.testing.assert_allclose(dense.per_tree, sparse.per_tree, rtol=1e-9)
            np.testing.assert_allclose(dense.values, sparse.values, rtol=1e-9)


def test_permutation_does_not_depend_on_n_jobs():
    X, y = load_wine(return_X_y=True)
    forest = RandomForestClassifier(15, random_state=0).fit(X, y)
    for n_repeats in (None, 2):
        a, b = (
            oob_permutation(forest, X, y, n_repeats=n_repeats, random_state=0, n_jobs=n_jobs)
            for n_jobs in (1, 4)
        )
        np.testing.assert_array_equal(a.per_tree, b.per_tree)


def test_trees_without_out_of_bag_rows_are_left_out():
    X, y = small(load_iris, 12)
    forest = RandomForestClassifier(30, max_samples=36, random_state=0).fit(X, y)
    n_left = [len(oracle.out_of_bag(d, len(X))) for d in forest.estimators_samples_]
    per_tree = oob_permutation(forest, X, y).per_tree
    assert 0 in n_left
    np.testing.assert_array_equal(np.isnan(per_tree).all(axis=1), np.array(n_left) == 0)
    assert np.isfinite(oob_permutation(forest, X, y).values).all()
    soaked = RandomForestClassifier(2, max_samples=2000, random_state=0).fit(X, y)
    for measure in (oob_permutation, drop_column):
        with pytest.raises(ValueError, match="No row is out of bag"):
            measure(soaked, X, y)


# ------------------------------------------------------------------------------ drop-column


@EACH_CASE
@pytest.mark.parametrize("params", [{}, {"class_weight": "balanced_subsample"}], ids=str)
@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_drop_column_is_a_loop_of_scikit_learn_refits(ours, peer, load, loss, params, missing):
    X, y = load(return_X_y=True)
    X = np.random.RandomState(0).normal(scale=0.01, size=X.shape) + X  # no ties between cuts
    X = with_gaps(X, missing)
    if params and loss == "squared_error":
        params = {"max_samples": 0.7}
    refits = [
        peer(8, random_state=2, **params).fit(np.delete(X, j, axis=1), y) for j in range(X.shape[1])
    ]
    forest = ours(8, random_state=2, **params).fit(X, y)
    X = X.astype(np.float32)

    def losses(model, leave_out=None):
        values = oracle.out_of_bag_values(
            trees(model), model.estimators_samples_, X, leave_out=leave_out
        )
        known = ~np.isnan(values[:, 0])
        return oracle.row_losses(values[known], y[known], loss)

    base = losses(forest)
    difference = np.array([losses(refit, j) - base for j, refit in enumerate(refits)])
    result = drop_column(forest, X, y, loss=loss, n_jobs=2)
    unit = scale(loss, y)
    np.testing.assert_allclose(result.values / unit, difference.mean(axis=1) / unit, atol=1e-12)
    np.testing.assert_allclose(
        result.standard_error / unit,
        difference.std(axis=1) / np.sqrt(difference.shape[1]) / unit,
        atol=1e-12,
    )


def test_drop_column_finds_what_cannot_be_replaced():
    rng = np.random.RandomState(0)
    X = rng.normal(size=(400, 4))
    X[:, 1] = X[:, 0]  # a twin: neither is missed
    y = 2 * X[:, 0] + X[:, 2] + 0.1 * rng.normal(size=400)
    result = drop_column(RandomForestRegressor(30, random_state=0).fit(X, y), X, y)
    assert result.values.argmax() == 2
    assert result.z_score()[2] > 5
    assert np.abs(result.values[:2]).max() < 0.2 * result.values[2]


# ---------------------------------------------------------------------- results and refusals


def test_result_table_and_plot():
    pd = pytest.importorskip("pandas")
    matplotlib.use("Agg")
    frame, y = load_wine(return_X_y=True, as_frame=True)
    forest = RandomForestClassifier(10, random_state=0).fit(frame, y)
    result = oob_permutation(forest, frame, y)
    table = result.to_frame()
    assert isinstance(table, pd.DataFrame)
    assert set(table.index) == set(frame.columns)
    assert table["importance"].is_monotonic_decreasing
    assert table.loc["proline", "importance"] == result.values[list(frame.columns).index("proline")]
    ax = result.plot(max_features=5)
    assert [t.get_text() for t in ax.get_yticklabels()] == list(table.index[:5][::-1])
    np.testing.assert_allclose([bar.get_width() for bar in ax.patches], table.importance[:5][::-1])
    assert "the 5 most important of 13" in ax.get_title()
    assert table.index[0] in repr(result)
    unnamed = mdi(RandomForestClassifier(3).fit(frame.to_numpy(), y))
    assert list(unnamed.feature_names[:2]) == ["x0", "x1"]


def test_z_score_is_value_over_error():
    X, y = load_iris(return_X_y=True)
    X = np.column_stack((X, np.zeros(len(X))))
    result = oob_permutation(RandomForestClassifier(20, random_state=0).fit(X, y), X, y)
    z = result.z_score()
    np.testing.assert_allclose(z[:4], result.values[:4] / result.standard_error[:4])
    assert np.isnan(z[4])


def test_v_score_is_value_over_the_deviation_of_trees():
    X, y = load_iris(return_X_y=True)
    X = np.column_stack((X, np.zeros(len(X))))
    result = oob_permutation(RandomForestClassifier(20, random_state=0).fit(X, y), X, y)
    deviation = np.std(result.per_tree, axis=0, ddof=1)
    np.testing.assert_allclose(result.standard_deviation(), deviation)
    np.testing.assert_allclose(result.v_score()[:4], result.values[:4] / deviation[:4])
    assert np.isnan(result.v_score()[4])
    whole = oob_permutation(RandomForestClassifier(5).fit(X, y), X, y, level="forest")
    assert np.isnan(whole.v_score()).all()


def test_refusals():
    X, y = load_iris(return_X_y=True)
    forest = RandomForestClassifier(3, random_state=0).fit(X, y)
    for measure in (oob_permutation, drop_column):
        with pytest.raises(NotFittedError):
            measure(RandomForestClassifier(), X, y)
        with pytest.raises(TypeError, match="fitted random forest"):
            measure(X, X, y)
        with pytest.raises(TypeError, match="not a random forest"):
            measure(GradientBoostingClassifier(n_estimators=2).fit(X, y), X, y)
        with pytest.raises(TypeError, match=r"predicts 2 outputs|grown for several outputs"):
            measure(PeerRegressor(2).fit(X, np.column_stack((y, y))), X, y)
        with pytest.raises(ValueError, match="bootstrap=True"):
            measure(RandomForestClassifier(2, bootstrap=False).fit(X, y), X, y)
        with pytest.raises(ValueError, match="fitted on 150"):
            measure(forest, X[:100], y[:100])
        with pytest.raises(ValueError, match="3 features"):
            measure(forest, X[:, :3], y)
        with pytest.raises(ValueError, match="y has shape"):
            measure(forest, X, y[:10])
        with pytest.raises(ValueError, match="not among the classes"):
            measure(forest, X, y + 1)
        with pytest.raises(ValueError, match=r"use one of \['brier', 'zero_one'\]"):
            measure(forest, X, y, loss="squared_error")
        with pytest.raises(ValueError, match="squared_error"):
            measure(RandomForestRegressor(2).fit(X, y), X, y, loss="brier")
    with pytest.raises(ValueError, match="n_repeats=0"):
        oob_permutation(forest, X, y, n_repeats=0)
    with pytest.raises(ValueError, match="two"):
        drop_column(RandomForestClassifier(2).fit(X[:, :1], y), X[:, :1], y)


@pytest.mark.parametrize("name", importance.__all__)
def test_shared_parameters_are_in_the_docstrings(name):
    assert "%(" not in getattr(importance, name).__doc__
