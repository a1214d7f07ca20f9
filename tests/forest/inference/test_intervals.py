"""Quantiles, intervals and standard errors of forests, against their definitions."""

import pickle
import warnings
from copy import copy

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from sklearn.datasets import load_diabetes, load_iris, make_friedman1
from sklearn.ensemble import RandomForestRegressor as PeerForest
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import train_test_split

from benchmarks.studies.forest import JACKKNIFE_BAR, study_jackknife
from benchmarks.studies.intervals import coverage_of
from forest import (
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from forest.inference.quantiles import out_of_bag_quantiles
from forest.inference.training_rows import training_rows
from forest.interop.bridge import from_sklearn, to_sklearn
from tests.data import load
from tests.examples import examples
from tests.oracles import leaves as oracle

LEVELS = st.one_of(
    st.floats(0, 1),
    st.sampled_from([0.0, 0.1, 0.2, 0.25, 1 / 3, 0.5, 0.6, 2 / 3, 0.7, 0.9, 1.0]),
)


@st.composite
def cases(draw):
    """A small forest, its table, its row weights, and rows that it has not seen."""
    rng = np.random.RandomState(draw(st.integers(0, 10_000)))
    n, n_values = draw(st.integers(2, 25)), draw(st.integers(2, 40))
    X = rng.randint(0, n_values, (n, 2)) / 8.0
    X[rng.uniform(size=X.shape) < draw(st.sampled_from([0.0, 0.2]))] = np.nan
    new = rng.randint(0, n_values, (4, 2)) / 8.0
    y = rng.randint(0, draw(st.integers(1, 30)), n).astype(float)
    weight = rng.randint(0, 4, n) if draw(st.booleans()) else None
    if weight is not None:
        weight[0] = 1
    kind = draw(st.sampled_from([RandomForestRegressor, ExtraTreesRegressor]))
    bootstrap = draw(st.booleans())
    forest = kind(
        draw(st.integers(1, 6)),
        bootstrap=bootstrap,
        max_depth=draw(st.sampled_from([None, 1, 3])),
        min_samples_leaf=draw(st.integers(1, 3)),
        max_samples=draw(st.sampled_from([None, 0.7])) if bootstrap else None,
        precision=draw(st.sampled_from(["float32", "float64"])),
        random_state=rng.randint(100),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few draws
        return forest.fit(X, y, weight), X, y, weight, new


def masses(forest, weight, n, in_bag):
    """What every training row counts in every tree, (n, n_trees)."""
    if in_bag and forest.bootstrap:
        return oracle.counts(forest, n)
    weight = np.ones(n, int) if weight is None else weight
    return np.repeat(weight[:, np.newaxis], len(forest.estimators_), axis=1)


@examples(150)
@given(case=cases(), q=st.lists(LEVELS, min_size=1, max_size=4), in_bag=st.booleans())
def test_quantiles_are_those_of_the_definition(case, q, in_bag):
    forest, X, y, weight, new = case
    at = oracle.leaves(forest, X)
    mass = masses(forest, weight, len(X), in_bag)
    trees = range(len(forest.estimators_))
    rows = np.vstack([X, new])
    found = forest.predict_quantiles(rows, q, in_bag=in_bag)
    assert found.shape == (len(rows), len(q))
    for i, leaves in enumerate(oracle.leaves(forest, rows)):
        weights = oracle.weights(leaves, at, mass, trees)
        assert found[i].tolist() == [oracle.quantile(y, weights, level) for level in q]
    np.testing.assert_array_equal(forest.predict_quantiles(rows, q[0], in_bag), found[:, 0])


@examples(75)
@given(case=cases(), q=st.lists(LEVELS, min_size=1, max_size=3))
def test_out_of_bag_quantiles_are_those_of_trees_and_rows_without_the_row(case, q):
    forest, X, y, weight, _ = case
    at, drawn = oracle.leaves(forest, X), oracle.counts(forest, len(X))
    rows = training_rows(forest)
    found = out_of_bag_quantiles(forest, rows, np.sort(q))
    for i, of_row in zip(rows.order, found, strict=True):
        trees = [t for t in range(len(forest.estimators_)) if drawn[i, t] == 0]
        if not trees:
            assert np.isnan(of_row).all()
            continue
        mass = masses(forest, weight, len(X), False)
        mass[i] = 0
        weights = oracle.weights(at[i], at, mass, trees)
        assert of_row.tolist() == [oracle.quantile(y, weights, level) for level in np.sort(q)]


@pytest.mark.parametrize("params", [{}, {"min_samples_leaf": 60}, {"max_depth": 1}], ids=str)
def test_quantiles_of_many_rows(params):
    """Kernels sum weights in groups of ranks; small tables have a single one."""
    rng = np.random.RandomState(0)
    X, y = rng.uniform(size=(900, 3)), rng.randint(0, 600, 900).astype(float)
    new, q = rng.uniform(size=(60, 3)), [0.0, 0.03, 0.5, 0.9, 1.0]
    forest = RandomForestRegressor(15, random_state=0, **params).fit(X, y)
    order, at = np.argsort(y), forest.apply(X)
    found = forest.predict_quantiles(new, q)
    for of_row, leaves in zip(found, forest.apply(new), strict=True):
        same = at == leaves
        weight = (same / same.sum(axis=0)).mean(axis=1)[order]
        reached = np.cumsum(weight) + 1e-10
        expected = [y[order][np.argmax((reached >= level) & (weight > 0))] for level in q]
        np.testing.assert_array_equal(of_row, expected)


@pytest.fixture(scope="module")
def diabetes():
    """A forest, and the table that it was fitted on."""
    X, y = load_diabetes(return_X_y=True)
    return RandomForestRegressor(40, random_state=0).fit(X, y), X, y


def test_a_cumulative_weight_that_rounds_below_q_has_reached_it():
    """Ten rows of weight 1/10 in one leaf: 0.1 + 0.1 + 0.1 is not 0.3, but counts as that."""
    y = np.arange(10.0)
    forest = RandomForestRegressor(7, max_depth=1, random_state=0).fit(np.zeros((10, 1)), y)
    q = np.arange(1, 11) / 10
    np.testing.assert_array_equal(forest.predict_quantiles([[0.0]], q)[0], y)
    above = forest.predict_quantiles([[0.0]], q[:-1] + 1e-9)[0]
    np.testing.assert_array_equal(above, y[1:])


def test_the_mean_under_the_in_bag_weights_is_the_prediction(diabetes):
    """The integral of the quantiles over q is the mean."""
    forest, X, _ = diabetes
    q = (np.arange(20_000) + 0.5) / 20_000
    mean = forest.predict_quantiles(X[:5], q, in_bag=True).mean(axis=1)
    np.testing.assert_allclose(mean, forest.predict(X[:5]), atol=0.02)


def test_nothing_depends_on_n_jobs_or_blocks(monkeypatch):
    rng = np.random.RandomState(0)
    X, y = rng.uniform(size=(700, 3)), rng.uniform(size=700)

    def outputs(n_jobs):
        forest = RandomForestRegressor(11, random_state=0, n_jobs=n_jobs).fit(X, y)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # negative variances
            error = forest.predict(X, return_std=True)[1]
        return (
            error,
            forest.predict_quantiles(X, [0.2, 0.8]),
            forest.predict_quantiles(X, 0.5, in_bag=True),
            forest.predict_interval(X),
        )

    once = outputs(1)
    for one, two in zip(once, outputs(2), strict=True):
        np.testing.assert_array_equal(one, two)
    monkeypatch.setattr("forest.inference.quantiles._BLOCK_STARTS", 1000)
    for n_jobs in (1, 4):
        for whole, parts in zip(once, outputs(n_jobs), strict=True):
            np.testing.assert_array_equal(whole, parts)


def test_sparse_tables_and_categories():
    rng = np.random.RandomState(0)
    X = rng.randint(0, 4, (80, 3)).astype(float)
    y = X @ [1.0, 2.0, 0.5] + rng.normal(size=80)
    dense = RandomForestRegressor(8, random_state=0).fit(X, y)
    sparse = RandomForestRegressor(8, random_state=0).fit(csr_matrix(X), y)
    for predict in ("predict_quantiles", "predict_interval"):
        args = ([0.1, 0.7],) if predict == "predict_quantiles" else ()
        of_dense = getattr(dense, predict)(X, *args)
        of_sparse = getattr(sparse, predict)(csr_matrix(X), *args)
        np.testing.assert_allclose(of_sparse, of_dense, rtol=1e-12)
    named = np.array(list("abcd"), dtype=object)[X.astype(int)]
    forest = RandomForestRegressor(8, random_state=0, categorical_features=[0, 1, 2])
    forest.fit(named, y)
    assert forest.predict_interval(named).shape == (80, 2)
    lowest, highest = forest.predict_quantiles(named, [0, 1]).T
    assert np.all((lowest <= y) & (y <= highest))


def test_pickles_keep_the_leaves_and_not_the_table():
    X, y = load_diabetes(return_X_y=True)
    forest = RandomForestRegressor(10, random_state=0).fit(X, y)
    before = pickle.dumps(forest)
    lost = pickle.loads(before)
    with pytest.raises(ValueError, match=r"keep_leaves\(X, y\)"):
        lost.predict_quantiles(X, 0.5)
    expected = forest.predict_quantiles(X, 0.5)
    np.testing.assert_array_equal(lost.keep_leaves(X, y).predict_quantiles(X, 0.5), expected)
    after = pickle.dumps(forest)
    # One 32-bit integer per row and tree; three numbers per row.
    assert len(after) - len(before) < 4 * len(y) * 10 + 24 * len(y) + 2000
    np.testing.assert_array_equal(pickle.loads(after).predict_quantiles(X, 0.5), expected)
    intervals = forest.predict_interval(X)
    again = pickle.loads(pickle.dumps(forest))
    np.testing.assert_array_equal(again.predict_interval(X), intervals)
    np.testing.assert_array_equal(lost.predict_interval(X), intervals)


def test_intervals_asked_for_while_a_forest_is_copied_do_not_damage_the_copy():
    X, y = load("diabetes")
    forest = RandomForestRegressor(5, random_state=0).fit(X, y)
    expected = forest.predict_interval(X, 0.8)
    state = forest.__getstate__()
    forest.predict_interval(X, 0.9)  # as another thread may
    again = RandomForestRegressor()
    again.__setstate__(state)
    np.testing.assert_array_equal(again.predict_interval(X, 0.8), expected)


def test_a_fit_forgets_what_was_known_of_the_last():
    X, y = load_diabetes(return_X_y=True)
    forest = RandomForestRegressor(5, random_state=0).fit(X, y)
    forest.predict_interval(X), forest.predict_quantiles(X, 0.5)
    forest.fit(X[:200], -y[:200])
    fresh = RandomForestRegressor(5, random_state=0).fit(X[:200], -y[:200])
    assert len(pickle.dumps(forest)) == len(pickle.dumps(fresh))
    np.testing.assert_array_equal(forest.predict_quantiles(X, 0.3), fresh.predict_quantiles(X, 0.3))
    np.testing.assert_array_equal(forest.predict_interval(X), fresh.predict_interval(X))


def test_a_warm_start_and_trees_taken_away():
    X, y = load_diabetes(return_X_y=True)
    forest = RandomForestRegressor(4, random_state=0, warm_start=True).fit(X, y)
    few, interval = forest.predict_quantiles(X, 0.3), forest.predict_interval(X)
    forest.set_params(n_estimators=9).fit(X, y)
    whole = RandomForestRegressor(9, random_state=0).fit(X, y)
    np.testing.assert_array_equal(forest.predict_quantiles(X, 0.3), whole.predict_quantiles(X, 0.3))
    np.testing.assert_array_equal(forest.predict_interval(X), whole.predict_interval(X))
    forest.estimators_ = forest.estimators_[:4]
    np.testing.assert_array_equal(forest.predict_quantiles(X, 0.3), few)
    np.testing.assert_array_equal(forest.predict_interval(X), interval)


def test_errors_need_one_way_to_draw():
    """Counts are those of the last fit; the trees before have others."""
    X, y = load_diabetes(return_X_y=True)
    forest = RandomForestRegressor(30, max_samples=0.3, random_state=0, warm_start=True).fit(X, y)
    forest.set_params(n_estimators=60, max_samples=None).fit(X, y)
    with pytest.raises(ValueError, match="several tables, or in several ways"):
        forest.predict(X, return_std=True)
    for ask in (forest.keep_leaves, lambda: forest.keep_leaves(X, y)):
        with pytest.raises(ValueError, match="no single training table"):
            ask()


def test_another_table_is_refused():
    X, y = load_diabetes(return_X_y=True)
    X = X.astype(np.float32)
    forest = RandomForestRegressor(5, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="not grown on this table"):
        forest.keep_leaves(X[::-1], y)
    with pytest.raises(ValueError, match="not grown on this table"):
        forest.keep_leaves(X, y[::-1])
    with pytest.raises(ValueError, match="441 rows, but the forest was fitted on 442"):
        forest.keep_leaves(X[1:], y[1:])
    with pytest.raises(ValueError, match="inconsistent numbers"):
        forest.keep_leaves(X, y[1:])
    with pytest.raises(ValueError, match="both X and y"):
        forest.keep_leaves(X)
    X[:, 2] = np.roll(X[:, 2], 1)  # the table that the forest refers to
    with pytest.raises(ValueError, match="changed after the fit"):
        forest.predict_quantiles(X, 0.5)
    with pytest.raises(ValueError, match="changed after the fit"):
        forest.predict_interval(X)


def test_a_changed_table_is_found_out_where_every_row_is_drawn():
    """Leaves hold as many rows as they should, but others."""
    X, y = load_diabetes(return_X_y=True)
    X = X.astype(np.float32)
    forest = ExtraTreesRegressor(3, random_state=0).fit(X, y)
    X[:] = X[::-1]
    with pytest.raises(ValueError, match="changed after the fit"):
        forest.predict_quantiles(X, 0.5)


def test_targets_that_are_changed_after_the_fit_stay_what_they_were():
    X, y = load_diabetes(return_X_y=True)
    expected = RandomForestRegressor(5, random_state=0).fit(X, y).predict_quantiles(X, 0.5)
    forest = RandomForestRegressor(5, random_state=0).fit(X, y)
    y -= y.mean()
    np.testing.assert_array_equal(forest.predict_quantiles(X, 0.5), expected)


def test_forests_from_elsewhere_are_told_their_table(diabetes):
    forest, X, y = diabetes
    expected = forest.predict_quantiles(X, 0.9)
    for other in (from_sklearn(to_sklearn(forest)), copy(pickle.loads(pickle.dumps(forest)))):
        vars(other).pop("_training_rows", None)
        with pytest.raises(ValueError, match=r"keep_leaves\(X, y\)"):
            other.predict_quantiles(X, 0.9)
        found = other.keep_leaves(X, y).predict_quantiles(X, 0.9)
        np.testing.assert_array_equal(found, expected)


# ------------------------------------------------------------------------- standard errors


@examples(25)
@given(seed=st.integers(0, 1000), n=st.integers(2, 40), n_trees=st.integers(2, 60))
@example(seed=0, n=30, n_trees=8)  # fewer trees than rows to predict
@example(seed=0, n=30, n_trees=60)  # more of them
@pytest.mark.parametrize("draw", ["sequence", "keyed"])
def test_standard_errors_are_the_papers(draw, seed, n, n_trees):
    rng = np.random.RandomState(seed)
    X, y = rng.normal(size=(n, 3)), rng.normal(size=n)
    new = rng.normal(size=(20, 3))
    forest = RandomForestRegressor(n_trees, random_state=seed, bootstrap_draw=draw).fit(X, y)
    values = np.array([tree.predict(new) for tree in forest.estimators_]).T
    variance = oracle.jackknife_variance(oracle.counts(forest, n), values)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        mean, error = forest.predict(new, return_std=True)
    np.testing.assert_array_equal(mean, forest.predict(new))
    assert error.shape == mean.shape
    np.testing.assert_allclose(error**2, np.maximum(variance, 0), rtol=1e-8, atol=1e-10)
    said = [str(warning.message) for warning in caught]
    if variance.min() < -1e-10:
        n_negative = np.count_nonzero(variance < 0)
        assert any(text.startswith(f"{n_negative} of 20 estimated") for text in said)
        assert any(f"n_estimators={max(n, 2 * n_trees)}" in text for text in said)
    elif variance.min() > 1e-10:
        assert not said


def test_trees_that_agree_have_no_standard_error():
    """Means of equal targets may differ in their last bits, of which nobody need be warned."""
    X = np.arange(40.0)[:, np.newaxis]
    forest = RandomForestRegressor(100, random_state=0).fit(X, np.full(40, 0.1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mean, error = forest.predict(X, return_std=True)
    np.testing.assert_allclose(mean, 0.1)
    assert not error.any()


def test_standard_errors_are_those_over_fresh_training_tables():
    """Five trees per row; the variance is over 200 tables."""
    found = study_jackknife(n_sets=200, n_rows=50, n_points=50)
    assert abs(found["ratio"] - 1) <= JACKKNIFE_BAR


@pytest.mark.filterwarnings("ignore:.*estimated variances are negative")
@pytest.mark.parametrize(
    ("n_trees", "leaf", "low", "high"),
    [(300, 1, 0.7, 0.86), (300, 10, 0.82, 0.96), (60, 1, 0.45, 0.68)],
)
def test_standard_errors_cover_as_often_as_is_said(n_trees, leaf, low, high):
    """60 rows, half of y noise: how often two errors hold the mean over 60 tables."""
    new, found = np.random.default_rng(0).normal(size=(50, 4)), []
    for seed in range(60):
        rng = np.random.default_rng(1 + seed)
        X = rng.normal(size=(60, 4))
        y = X[:, 0] + rng.normal(size=60)
        forest = RandomForestRegressor(n_trees, min_samples_leaf=leaf, random_state=seed)
        found.append(forest.fit(X, y).predict(new, return_std=True))
    mean, error = np.moveaxis(np.array(found), 1, 0)
    assert low <= (np.abs(mean - mean.mean(axis=0)) < 2.0 * error).mean() <= high


def test_standard_errors_of_class_shares():
    X, y = load_iris(return_X_y=True)
    X, y = X[50:, :2], y[50:]
    forest = RandomForestClassifier(300, random_state=0, max_depth=3).fit(X, y)
    counts = oracle.counts(forest, len(X))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # negative variances
        found = forest.predict_proba_std(X)
        both = RandomForestClassifier(300, random_state=0, max_depth=3)
        of_outputs = both.fit(X, np.column_stack([y, y > 1])).predict_proba_std(X)
    assert found.shape == (len(X), 2)
    for k in range(2):
        values = np.array([tree.predict_proba(X)[:, k] for tree in forest.estimators_]).T
        variance = oracle.jackknife_variance(counts, values)
        np.testing.assert_allclose(found[:, k] ** 2, np.maximum(variance, 0), rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(of_outputs[1][:, k], of_outputs[0][:, k], rtol=1e-12)
    assert found.max() > 0.01


def test_blocks_of_rows_give_the_same_errors(monkeypatch):
    X, y = load_diabetes(return_X_y=True)
    forest = RandomForestRegressor(60, random_state=0).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # negative variances
        once = forest.predict(X, return_std=True)[1]
        for values in (100, 1000, 60 * 100):
            monkeypatch.setattr("forest.inference.jackknife._BLOCK_VALUES", values)
            again = forest.predict(X, return_std=True)[1]
            np.testing.assert_allclose(again**2, once**2, rtol=1e-9, atol=1e-7)


def test_standard_errors_of_several_outputs_and_sparse_rows():
    X, y = load_diabetes(return_X_y=True)
    X, y = np.where(X > 0, X, 0)[:80], y[:80]
    alone = RandomForestRegressor(200, random_state=0, max_features=3).fit(X, y)
    both = RandomForestRegressor(200, random_state=0, max_features=3).fit(
        X, np.column_stack([y, y])
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # negative variances
        error = alone.predict(X, return_std=True)[1]
        of_both = both.predict(X, return_std=True)[1]
        of_sparse = alone.predict(csr_matrix(X), return_std=True)[1]
    assert of_both.shape == (80, 2)
    np.testing.assert_allclose(of_both[:, 0], of_both[:, 1], rtol=1e-9)
    np.testing.assert_array_equal(of_sparse, error)


# ------------------------------------------------------------------------------- intervals


@pytest.mark.parametrize("coverage", [0.5, 0.9])
@pytest.mark.parametrize("design", ["friedman1", "with_the_mean", "beside_the_mean"])
def test_intervals_cover_new_rows(design, coverage):
    """In all, and where the noise is low or high."""
    seen = [coverage_of(design, seed, n_train=1000, coverage=coverage) for seed in range(3)]
    mean = {name: np.mean([each[name] for each in seen]) for name in seen[0]}
    assert mean["all"] == pytest.approx(coverage, abs=0.03)
    if design != "friedman1":
        assert mean["lowest fifth"] == pytest.approx(coverage, abs=0.05)
        assert mean["highest fifth"] == pytest.approx(coverage, abs=0.05)


def test_intervals_cover_rows_of_new_groups():
    """Ten groups of twelve rows, which share an effect of their own: rows alone know too little."""
    covered = []
    for seed in range(40):
        rng = np.random.default_rng(seed)

        def draw(n_groups, rng=rng):
            x, effect = rng.normal(size=(n_groups, 3)), rng.normal(size=n_groups)
            group = np.repeat(np.arange(n_groups), 12)
            X = x[group] + 0.05 * rng.normal(size=(len(group), 3))
            return X, X[:, 0] + effect[group] + 0.2 * rng.normal(size=len(group)), group

        X, y, group = draw(10)
        forest = RandomForestRegressor(40, random_state=seed).fit(X, y, groups=group)
        new, truth, _ = draw(60)
        low, high = forest.predict_interval(new, 0.9).T
        covered.append(((low <= truth) & (truth <= high)).mean())
    assert np.mean(covered) >= 0.88  # it was 0.78
    with pytest.raises(ValueError, match=r"at least 19 groups of rows .* there are only 10"):
        forest.predict_interval(new, 0.95)


def test_groups_of_one_row_are_rows():
    X, y = make_friedman1(100, random_state=0)
    alone, grouped = (
        RandomForestRegressor(20, random_state=0).fit(X, y, groups=groups).predict_interval(X)
        for groups in (None, np.arange(100))
    )
    np.testing.assert_allclose(grouped, alone)


def test_intervals_follow_their_steps():
    """Those of the docstring, from the outputs of public methods and plain NumPy."""
    X, y = load_diabetes(return_X_y=True)
    forest = RandomForestRegressor(50, random_state=0, oob_score=True).fit(X, y)
    residuals = y - forest.oob_prediction_
    seed = forest.estimators_[0].random_state
    spread = RandomForestRegressor(50, min_samples_leaf=20, random_state=seed)
    spread.fit(X, np.abs(residuals))
    at, drawn = oracle.leaves(spread, X), oracle.counts(spread, len(X))
    order = np.argsort(residuals)

    def band(i, trees, others):
        shares = [(at[:, t] == at[i, t]) & others for t in trees]
        weight = np.mean([share / share.sum() for share in shares], axis=0)
        reached = np.cumsum(weight[order]) + 1e-10
        return [residuals[order][np.argmax(reached >= level)] for level in (0.1, 0.9)]

    scores = []
    for i in range(len(X)):
        low, high = band(i, np.flatnonzero(drawn[i] == 0), np.arange(len(X)) != i)
        scores.append(max(low - residuals[i], residuals[i] - high) / (high - low))
    margin = np.sort(scores)[int(np.ceil((len(X) + 1) * 0.8)) - 1]
    found = forest.predict_interval(X[:9], coverage=0.8)
    for i, mean in enumerate(forest.predict(X[:9])):
        low, high = band(i, range(50), True)
        more = margin * (high - low)
        np.testing.assert_allclose(found[i], [mean + low - more, mean + high + more], rtol=1e-9)


def test_intervals_of_noiseless_and_constant_targets():
    X = np.repeat([[0.0], [1.0]], 60, axis=0)
    for y in (X[:, 0], np.ones(120)):
        forest = RandomForestRegressor(20, random_state=0).fit(X, y)
        np.testing.assert_array_equal(forest.predict_interval(X), np.column_stack([y, y]))


def test_intervals_of_bands_without_width():
    """Where every leaf of the spread holds one residual: as far to either side as residuals go."""
    X, y = np.array([[0.0], [1.0]]), np.array([-1.0, 2.0])
    forest = RandomForestRegressor(8, max_samples=1, random_state=0).fit(X, y)
    low, high = forest.predict_interval(X, 0.5).T
    assert np.isfinite([low, high]).all()
    assert ((low <= y) & (y <= high)).all()


# -------------------------------------------------------------------- impossible combinations


def test_impossible_quantiles(diabetes):
    forest, X, y = diabetes
    with pytest.raises(NotFittedError):
        RandomForestRegressor().predict_quantiles(X, 0.5)
    for q in (-0.1, 1.1, np.nan, [0.5, 2]):
        with pytest.raises(ValueError, match=r"must lie in \[0, 1\]"):
            forest.predict_quantiles(X, q)
    for q in ([], [[0.5]], "0.5", None, [0.1, "a"]):
        with pytest.raises(ValueError, match="a number or a list"):
            forest.predict_quantiles(X, q)
    several = RandomForestRegressor(2, random_state=0).fit(X, np.column_stack([y, y]))
    for predict in (lambda: several.predict_quantiles(X, 0.5), lambda: several.predict_interval(X)):
        with pytest.raises(ValueError, match="2 outputs"):
            predict()
    assert not hasattr(RandomForestClassifier(), "predict_quantiles")


def test_impossible_intervals(diabetes):
    forest, X, y = diabetes
    with pytest.raises(NotFittedError):
        RandomForestRegressor().predict_interval(X)
    for coverage in (0, 1, -0.5, 90, np.nan, "0.9", None, [0.9]):
        with pytest.raises(ValueError, match="between 0 and 1"):
            forest.predict_interval(X, coverage)
    with pytest.raises(ValueError, match="bootstrap=True"):
        ExtraTreesRegressor(2, random_state=0).fit(X, y).predict_interval(X)
    with pytest.raises(ValueError, match=r"at least 999 rows.*there are only 442"):
        forest.predict_interval(X, 0.999)
    weight = np.arange(len(y)) == 0  # the one row that is ever drawn is never out of bag
    model = RandomForestRegressor(3, random_state=0).fit(X, y, weight)
    with pytest.raises(ValueError, match=r"ever out of bag has weight 0.* fit more trees"):
        model.predict_interval(X)


@pytest.mark.parametrize(("coverage", "needed"), [(0.8, 4), (0.9, 9), (0.95, 19)])
def test_the_error_says_how_many_rows_a_coverage_needs(coverage, needed):
    """As many that the rank (n + 1) coverage of a new row is at most n."""
    X = np.random.default_rng(0).normal(size=(needed, 2))
    RandomForestRegressor(50, random_state=0).fit(X, X[:, 0]).predict_interval(X, coverage)
    few = RandomForestRegressor(50, random_state=0).fit(X[1:], X[1:, 0])
    with pytest.raises(ValueError, match=f"needs at least {needed} rows"):
        few.predict_interval(X, coverage)


@pytest.mark.parametrize(
    ("params", "weighted", "says"),
    [
        ({"bootstrap": False}, False, "needs a bootstrap"),
        ({"max_samples": 50}, False, "no max_samples"),
        ({"stratify": True}, False, "no max_samples"),
        ({"replace": False}, False, "no max_samples"),
        ({"voting": "majority"}, False, "means over trees"),
        ({}, True, "sample_weight, class_weight or"),
        ({"class_weight": "balanced"}, False, "sample_weight, class_weight or"),
        ({"class_weight": "balanced_subsample"}, False, "sample_weight, class_weight or"),
        ({"priors": [0.9, 0.1]}, False, "class_weight or priors"),
        ({"n_estimators": 1}, False, "at least two trees"),
    ],
    ids=str,
)
def test_impossible_standard_errors(params, weighted, says):
    X, y = load_iris(return_X_y=True)
    X, y, weight = X[:100], y[:100], np.arange(1, 101) if weighted else None
    params = {"n_estimators": 3, "random_state": 0, **params}
    with pytest.raises(ValueError, match=says):
        RandomForestClassifier(**params).fit(X, y, weight).predict_proba_std(X)
    if not {"class_weight", "priors", "stratify", "voting"} & params.keys():  # of classifiers only
        with pytest.raises(ValueError, match=says):
            RandomForestRegressor(**params).fit(X, y, weight).predict(X, return_std=True)


@pytest.mark.california
@pytest.mark.parametrize("params", [{}, {"min_samples_leaf": 10}], ids=str)
def test_quantiles_of_california_are_those_of_quantile_forest(params):
    """On the same trees, in bag, leaves weighed as by Meinshausen. Its quantile q of a total weight
    w is the first value whose cumulative weight is above (w - 1) q + 1 ("higher")."""
    peer = pytest.importorskip("quantile_forest", reason="quantile-forest is not installed")
    X, X_test, y, _ = train_test_split(*load("california"), test_size=200, random_state=0)
    params = {"n_estimators": 30, "random_state": 0, **params}
    theirs = peer.RandomForestQuantileRegressor(max_samples_leaf=None, **params).fit(X, y)
    grown = PeerForest(**params).fit(X, y)  # the same trees
    ours = from_sklearn(grown)
    ours.keep_leaves(X, y)
    leaves = grown.apply(X_test)
    weight = sum(
        tree.tree_.weighted_n_node_samples[leaves[:, t]] for t, tree in enumerate(grown.estimators_)
    )
    q = np.array([0.05, 0.5, 0.95])
    expected = theirs.predict(X_test, list(q), weighted_leaves=True, interpolation="higher")
    for i, row in enumerate(X_test):
        place = ((weight[i] - 1) * q + 1) / weight[i]
        # A cumulative weight that is the place itself may fall on either side of it.
        low, high = (
            ours.predict_quantiles(row[np.newaxis], place + slack, in_bag=True)[0]
            for slack in (-1e-9, 1e-9)
        )
        is_same = (np.abs(expected[i] - low) <= 1e-6) | (np.abs(expected[i] - high) <= 1e-6)
        assert is_same.all()
