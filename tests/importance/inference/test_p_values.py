"""P-values against their definitions in plain loops, and what they refuse."""

import pickle
import tracemalloc
import warnings
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from scipy.stats import false_discovery_control
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier as PeerClassifier

from forest import RandomForestClassifier, RandomForestRegressor
from importance import (
    held_out_permutation,
    janitza,
    mdi,
    oob_permutation,
    permutation_test,
)
from importance.core.held_out_rows import compare_rows
from importance.inference.janitza import mirrored_null
from importance.inference.p_values import family_wise_p_values, share_as_large
from importance.inference.refit import Refits
from tests.oracles import forests as oracle


def regression(n=60, n_features=4, seed=0, dtype=np.float32):
    """A table whose first feature matters."""
    rng = np.random.RandomState(seed)
    X = rng.normal(size=(n, n_features)).astype(dtype)
    return X, 2 * X[:, 0] + rng.normal(size=n)


def classification(n=60, n_features=4, seed=0):
    X, y = regression(n, n_features, seed)
    return X, np.array(["no", "yes"])[(y > 0).astype(int)]


# -------------------------------------------------------------------------- permuting y


def brute_p_values(null, values):
    """Counted one by one."""
    p = []
    for j, value in enumerate(values):
        p.append((1 + sum(row[j] >= value for row in null)) / (1 + len(null)))
    return np.array(p)


def brute_family_wise(null, values):
    """The largest standardised importance of each repeat, counted one by one."""
    pooled = np.vstack((values, null))
    mean, deviation = pooled.mean(axis=0), pooled.std(axis=0)
    largest = [max((row - mean) / deviation) for row in null]
    observed = (values - mean) / deviation
    return np.array([(1 + sum(m >= z for m in largest)) / (1 + len(null)) for z in observed])


@given(seed=st.integers(0, 1000), n_features=st.integers(1, 6), n_repeats=st.integers(2, 40))
def test_p_values_are_counted(seed, n_features, n_repeats):
    rng = np.random.RandomState(seed)
    null = rng.normal(size=(n_repeats, n_features)) * rng.uniform(0.1, 9, n_features)
    values = rng.normal(size=n_features) * 3
    np.testing.assert_allclose(share_as_large(null, values), brute_p_values(null, values))
    family_wise = family_wise_p_values(null, values)
    np.testing.assert_allclose(family_wise, brute_family_wise(null, values))
    assert (family_wise >= share_as_large(null, values)).all()


def test_ties_count_as_large():
    """A feature that is never used is as important in every repeat."""
    null = np.zeros((9, 2))
    null[:, 1] = np.arange(9)
    values = np.array([0.0, 8.0])
    np.testing.assert_allclose(share_as_large(null, values), [1.0, 0.2])
    assert family_wise_p_values(np.zeros((9, 1)), np.zeros(1))[0] == 1.0
    # 0.1 + 0.2 is as large as 0.3
    np.testing.assert_allclose(share_as_large(np.array([[0.3]]), np.array([0.1 + 0.2])), [1.0])


def test_a_null_that_all_features_share_is_not_compared_pair_by_pair():
    rng = np.random.RandomState(0)
    null, values = rng.normal(size=(20_000, 1)).round(2), rng.normal(size=20_000).round(2)
    null[3], values[5] = np.nan, np.nan  # as large as nothing
    tracemalloc.start()
    found = share_as_large(null, values)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10e6  # the pairs would take 400 MB
    some = values[:20]
    expected = brute_p_values(np.repeat(null, len(some), axis=1), some - 1e-10 * np.abs(some))
    np.testing.assert_allclose(found[: len(some)], expected)


def test_permutation_test_is_a_loop_of_refits():
    X, y = regression()
    forest = RandomForestRegressor(5, max_depth=4, random_state=3).fit(X, y)
    found = permutation_test(forest, X, y, n_repeats=19, random_state=7)
    exact = oob_permutation(forest, X, y, loss="squared_error")
    np.testing.assert_array_equal(found.importances.values, exact.values)
    null = []
    for seed in np.random.RandomState(7).randint(np.iinfo(np.int32).max, size=19):
        stream = np.random.RandomState(seed)
        permuted = y[stream.permutation(60)]
        again = RandomForestRegressor(
            5, max_depth=4, random_state=stream.randint(np.iinfo(np.int32).max)
        ).fit(X, permuted)
        null.append(oob_permutation(again, X, permuted).values)
    np.testing.assert_array_equal(found.null, null)
    np.testing.assert_allclose(found.p_values, brute_p_values(null, exact.values))
    np.testing.assert_allclose(found.family_wise, brute_family_wise(np.array(null), exact.values))
    np.testing.assert_allclose(found.false_discovery, false_discovery_control(found.p_values))
    assert found.p_values[0] == found.family_wise[0] == 1 / 20
    assert found.p_values[1:].min() > 1 / 20


def test_permutation_test_takes_any_measure_and_shows_itself():
    pd = pytest.importorskip("pandas")
    X, y = classification()
    X = pd.DataFrame(X, columns=list("abcd"))
    X["a"] = pd.qcut(X["a"], 4, labels=list("wxyz"))
    forest = RandomForestClassifier(
        5, random_state=0, categorical_features="from_dtype", class_weight="balanced"
    ).fit(X, y)
    steps = []
    found = permutation_test(
        forest, X, y, measure=lambda forest, X, y: mdi(forest), n_repeats=19, random_state=0,
        callback=steps.append,
    )  # fmt: skip
    np.testing.assert_allclose(found.importances.values, forest.feature_importances_)
    np.testing.assert_allclose(found.null.sum(axis=1), 1.0)
    assert [step.n_done for step in steps] == list(range(1, 20))
    frame = found.to_frame()
    assert frame.index[0] == "a"
    assert set(frame.index) == set("abcd")
    for name, values in (
        ("p_value", found.p_values), ("family_wise", found.family_wise),
        ("false_discovery", found.false_discovery),
    ):  # fmt: skip
        np.testing.assert_array_equal(frame.loc[list("abcd"), name], values)
    assert "a 0." in repr(found)
    assert "permuting y, 19 refits" in repr(found)


def test_default_measures():
    X, y = classification()
    found = permutation_test(RandomForestClassifier(5, random_state=0).fit(X, y), X, y, n_repeats=1)
    assert "brier" in found.importances.unit
    X, y = regression()
    found = permutation_test(RandomForestRegressor(5, random_state=0).fit(X, y), X, y, n_repeats=1)
    assert "squared" in found.importances.unit


@pytest.mark.parametrize("test", [permutation_test, janitza], ids=["permutation", "janitza"])
def test_significance_is_reproducible(test):
    """For every n_jobs, for the peer's forest as for ours, for sparse tables as for dense ones."""
    X, y = classification(60, 260 if test is janitza else 4)
    X = np.where(np.abs(X) > 0.3, X, np.float32(0))
    options = {} if test is janitza else {"n_repeats": 8}
    ours = RandomForestClassifier(6, random_state=0, max_features=0.5).fit(X, y)
    peer = PeerClassifier(6, random_state=0, max_features=0.5).fit(X, y)
    sparse = RandomForestClassifier(6, random_state=0, max_features=0.5).fit(csr_matrix(X), y)
    expected = test(ours, X, y, random_state=1, **options)
    for forest, table, n_jobs in ((ours, X, 2), (peer, X, 1), (sparse, csr_matrix(X), 1)):
        found = test(forest, table, y, random_state=1, n_jobs=n_jobs, **options)
        np.testing.assert_allclose(found.null, expected.null, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(found.p_values, expected.p_values)
        if forest is ours:
            np.testing.assert_array_equal(found.null, expected.null)
    other = test(ours, X, y, random_state=2, **options)
    assert not np.array_equal(other.null, expected.null)


def test_refits_have_the_weights_of_the_fit():
    """Rows of weight 0 are never drawn, wherever their target goes."""
    X, y = classification(80)
    weight = np.ones(80)
    weight[:40] = 0.0
    marked = np.where(weight > 0.0, y, "?")
    seen = []

    def measure(forest, X, y):
        seen.append((forest, y))
        return oob_permutation(forest, X, y, loss="brier")

    for kind in (RandomForestClassifier, PeerClassifier):
        forest = kind(3, random_state=0).fit(X, marked, sample_weight=weight)
        permutation_test(forest, X, marked, measure=measure, n_repeats=2, random_state=0)
        for refit, permuted in seen[1:]:
            assert not any("?" in permuted[draws] for draws in refit.estimators_samples_)
        seen.clear()
    if_drawn = RandomForestClassifier(3, random_state=0, class_weight="balanced_subsample")
    permutation_test(if_drawn.fit(X, marked, weight), X, marked, measure=measure, n_repeats=2)
    for refit, permuted in seen[1:]:
        assert not any("?" in permuted[draws] for draws in refit.estimators_samples_)
    balanced = PeerClassifier(3, random_state=0, class_weight="balanced").fit(X, y)
    permutation_test(balanced, X, y, n_repeats=1)
    tiny, alike = dict.fromkeys(np.unique(y), 1e-9), 1.0 + 1e-7 * weight
    for kind in (RandomForestClassifier, PeerClassifier):
        for of_classes, own in (("balanced", weight), (tiny, weight + 1.0), ("balanced", alike)):
            both = kind(3, random_state=0, class_weight=of_classes).fit(X, y, own)
            with pytest.raises(ValueError, match="both class_weight and sample_weight"):
                permutation_test(both, X, y, n_repeats=1)


def test_weights_go_with_the_target_that_is_permuted():
    """Left behind, those of classes would fall on any row, and null forests be of other kinds."""
    X, y = classification()
    weight_of = {"no": 1.0, "yes": 5.0}
    forest = RandomForestClassifier(3, random_state=0)
    forest.fit(X, y, sample_weight=[weight_of[label] for label in y])
    seen = []

    def measure(refit, X, y):
        seen.append(y)
        np.testing.assert_array_equal(refit._row_weight, [weight_of[label] for label in y])
        return mdi(refit)

    permutation_test(forest, X, y, measure=measure, n_repeats=3, random_state=0)
    assert not any(np.array_equal(y, permuted) for permuted in seen[1:])


def test_refits_have_as_many_trees_as_were_grown():
    """However the number was found."""
    X, y = classification()
    forest = RandomForestClassifier("auto", max_time=60.0, max_memory=10**9, random_state=0)
    refits = Refits.of(forest.fit(X, y), X, y)
    assert len(refits.fit(0)[0].estimators_) == len(forest.estimators_)


@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("costs", [{"priors": [0.2, 0.8]}, {"loss": [[0, 1], [9, 0]]}])
def test_refits_count_priors_and_losses_once(costs, is_weighted):
    """A refit of the same table is the forest; of another target, the forest of that target."""
    X, y = classification()
    weight = np.random.RandomState(0).randint(0, 3, len(y)) if is_weighted else None
    unfitted = RandomForestClassifier(5, **costs, random_state=0)
    forest = clone(unfitted).fit(X, y, weight)
    refits = Refits.of(pickle.loads(pickle.dumps(forest)), X, y)
    for target in (y, y[::-1]):
        expected = unfitted.fit(X, target, weight).predict_proba(X)
        np.testing.assert_array_equal(refits.fit(0, y=target)[0].predict_proba(X), expected)


def test_refits_without_a_class_of_a_loss_say_so():
    X, y = classification()
    forest = RandomForestClassifier(2, loss=[[0, 1], [9, 0]], random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="none of class yes, which the forest's priors or loss"):
        Refits.of(forest, X, y).fit(0, rows=np.flatnonzero(y == "no"))


def test_p_values_are_uniform_without_information():
    """A small version of `python -m benchmarks calibration`: the mean of p over 30 tables."""
    p, family_wise = [], []
    for seed in range(30):
        rng = np.random.RandomState(seed)
        X, y = rng.normal(size=(24, 3)).astype(np.float32), rng.normal(size=24)
        forest = RandomForestRegressor(4, random_state=seed).fit(X, y)
        found = permutation_test(forest, X, y, n_repeats=9, random_state=seed)
        p.append(found.p_values[seed % 3])
        family_wise.append(found.family_wise.min())
    error = np.sqrt(1 / 12 / 30)
    assert abs(np.mean(p) - 0.55) < 3 * error  # of 0.1, 0.2, ..., 1
    assert np.mean(np.array(family_wise) <= 0.1) <= 0.1 + 3 * np.sqrt(0.09 / 30)


# --------------------------------------------------------------------- held out, and janitza


@pytest.mark.parametrize("loss", ["zero_one", "brier", "squared_error"])
@pytest.mark.parametrize("bootstrap", [True, False])
def test_held_out_permutation_is_the_mean_over_all_donors(loss, bootstrap):
    X, y = regression() if loss == "squared_error" else classification()
    kind = RandomForestRegressor if loss == "squared_error" else RandomForestClassifier
    forest = kind(3, random_state=0, max_depth=3, bootstrap=bootstrap).fit(X[:40], y[:40])
    found = held_out_permutation(forest, X[40:], y[40:], loss=loss, n_jobs=2)
    codes = y[40:] if loss == "squared_error" else np.searchsorted(forest.classes_, y[40:])
    expected = [
        oracle.permutation_of_every_donor(tree.tree_, X[40:], codes, loss)
        for tree in forest.estimators_
    ]
    np.testing.assert_allclose(found.per_tree, expected, atol=1e-10)
    np.testing.assert_allclose(found.values, np.mean(expected, axis=0), atol=1e-10)
    of_column = held_out_permutation(forest, X[40:], y[40:, np.newaxis], loss=loss)
    np.testing.assert_array_equal(of_column.per_tree, found.per_tree)


def test_held_out_rows_are_not_training_rows():
    X, y = regression()
    forest = RandomForestRegressor(3, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="not held out"):
        held_out_permutation(forest, X, y)
    with pytest.raises(ValueError, match="y has shape"):
        held_out_permutation(forest, X, y[:5])
    X, y = classification()
    forest = RandomForestClassifier(3, random_state=0).fit(X[:40], y[:40])
    with pytest.raises(ValueError, match="not among the classes"):
        held_out_permutation(forest, X[40:], np.full(20, "maybe"))


@pytest.mark.parametrize(("n_distinct", "n_fresh"), [(1000, 3000), (300, 600)])
def test_rows_that_are_equal_by_chance_seldom_count(n_distinct, n_fresh):
    """In tables of a few distinct rows, however many rows are judged: at most 2 % of them."""
    n_refused = 0
    for seed in range(400):
        rng = np.random.RandomState(seed)
        known, fresh = rng.randint(n_distinct, size=300), rng.randint(n_distinct, size=n_fresh)
        try:
            with warnings.catch_warnings(action="error"):
                compare_rows(known.astype(np.uint64), fresh.astype(np.uint64))
        except (ValueError, UserWarning):
            n_refused += 1
    assert n_refused <= 8


def test_janitza_finds_a_needle():
    X, y = regression(120, 300)
    forest = RandomForestRegressor(40, max_features=0.5, random_state=0).fit(X, y)
    found = janitza(forest, X, y, random_state=0)
    values = found.importances.values
    assert found.importances.per_tree.shape == (80, 300)
    np.testing.assert_allclose(values, found.importances.per_tree.mean(axis=0))
    known = values[values <= 0]
    mirrored = np.concatenate((known, -known[known < 0]))
    np.testing.assert_array_equal(np.sort(found.null), np.sort(mirrored))
    expected = [(1 + np.sum(mirrored >= v)) / (1 + len(mirrored)) for v in values]
    np.testing.assert_allclose(found.p_values, expected)
    assert found.p_values[0] == 1 / (1 + len(mirrored)) == found.p_values.min()
    np.testing.assert_allclose(found.false_discovery, false_discovery_control(found.p_values))
    assert np.median(found.p_values[values < 0]) > 0.5
    assert found.family_wise is None
    assert "family_wise" not in found.to_frame()
    assert f"mirrored null of {len(mirrored)}" in repr(found)


def test_janitza_fits_each_half_and_asks_the_other():
    X, y = classification(40, 200)
    forest = RandomForestClassifier(4, max_depth=2, random_state=0).fit(X, y)
    found = janitza(forest, X, y, random_state=3)
    seeds = np.random.RandomState(3).randint(np.iinfo(np.int32).max, size=3)
    order = np.random.RandomState(seeds[0]).permutation(40)
    order = np.concatenate([order[y[order] == label] for label in ("no", "yes")])
    halves = np.sort(order[::2]), np.sort(order[1::2])
    for i, (one, other) in enumerate((halves, halves[::-1])):
        refit = RandomForestClassifier(4, max_depth=2, random_state=seeds[1 + i])
        refit.fit(X[one], y[one])
        expected = held_out_permutation(refit, X[other], y[other], loss="brier").per_tree
        np.testing.assert_array_equal(found.importances.per_tree[4 * i : 4 * i + 4], expected)


def test_janitza_refuses_a_null_that_is_none():
    X, y = classification()
    forest = RandomForestClassifier(3, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match=r"at least 100 importances .* X has only 4 features"):
        janitza(forest, X, y, callback=pytest.fail)  # before any refit
    with pytest.raises(ValueError, match="100 are not positive and 0 are negative"):
        mirrored_null(np.append(np.zeros(100), 1.0))
    with pytest.raises(ValueError, match="99 are not positive"):
        mirrored_null(-np.arange(1, 100))
    assert len(mirrored_null(np.append(np.zeros(99), -1.0))) == 101
    X, y = np.tile(X, 34), y.astype(object)
    y[0] = "maybe"
    forest = RandomForestClassifier(3, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="Class 'maybe' has a single row"):
        janitza(forest, X, y)


def test_halves_have_every_class():
    X, y = load_iris(return_X_y=True)
    y[:98], y[98:100] = 0, 1
    X = np.hstack((X, np.random.RandomState(0).normal(size=(150, 300)))).astype(np.float32)
    forest = RandomForestClassifier(20, random_state=0).fit(X, y)
    found = janitza(forest, X, y, random_state=0)
    assert found.p_values[2:4].max() < 0.05


# ---------------------------------------------------------------------------------- refusals


def test_refusals():
    X, y = regression()
    forest = RandomForestRegressor(3, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="n_repeats=0"):
        permutation_test(forest, X, y, n_repeats=0)
    for test in (permutation_test, janitza):
        with pytest.raises(TypeError, match="fitted random forest"):
            test(X, X, y)
        with pytest.raises(ValueError, match="fitted on 60"):
            test(forest, X[:50], y[:50])
        with pytest.raises(ValueError, match="y has shape"):
            test(forest, X, y[:50])
        grouped = RandomForestRegressor(3).fit(X, y, groups=np.arange(60) // 2)
        with pytest.raises(ValueError, match="without groups"):
            test(grouped, X, y)
        given = RandomForestRegressor(2).fit(X, y, in_bag=np.arange(120).reshape(2, 60) % 2)
        with pytest.raises(ValueError, match="without in_bag"):
            test(given, X, y)
    with pytest.raises(ValueError, match="not the table"):
        permutation_test(forest, X, y[::-1].copy())
    with pytest.raises(ValueError, match="loss"):
        permutation_test(forest, X, y, measure=partial(oob_permutation, loss="brier"))
