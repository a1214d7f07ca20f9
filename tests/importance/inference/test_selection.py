"""Shadows and what is selected by them: against loops, by hand-made hits, as a transformer."""

from functools import partial

import matplotlib
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from scipy.stats import binomtest
from sklearn import config_context
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier as PeerClassifier
from sklearn.exceptions import NotFittedError, UnsetMetadataPassedError
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from forest import ExtraTreesRegressor, RandomForestClassifier, RandomForestRegressor
from importance import FeatureSelector, mdi, oob_permutation, select_features, shadow
from importance.inference.p_values import holm
from importance.inference.shadow import decide

MAX = np.iinfo(np.int32).max


def table(n=100, n_features=6, seed=0):
    """Two features with information."""
    rng = np.random.RandomState(seed)
    X = rng.normal(size=(n, n_features)).astype(np.float32)
    return X, 3 * X[:, 0] + 2 * X[:, 1] + rng.normal(size=n)


# ----------------------------------------------------------------------------------- shadows


def test_shadow_is_a_loop_of_refits_beside_permuted_rows():
    X, y = table()
    forest = RandomForestRegressor(6, random_state=0, monotonic_cst=[1, 0, 0, 0, 0, 0]).fit(X, y)
    found = shadow(forest, X, y, n_rounds=3, random_state=4, n_jobs=2)
    for i, seed in enumerate(np.random.RandomState(4).randint(MAX, size=3)):
        stream = np.random.RandomState(seed)
        both = np.hstack((X, X[stream.permutation(100)]))
        refit = RandomForestRegressor(
            6, random_state=stream.randint(MAX), monotonic_cst=[1, 0, 0, 0, 0, 0] * 2
        ).fit(both, y)
        values = oob_permutation(refit, both, y).values
        np.testing.assert_array_equal(found.rounds[i], values[:6])
        np.testing.assert_array_equal(found.shadow_rounds[i], values[6:])
    np.testing.assert_allclose(found.importances.values, found.rounds.mean(axis=0))
    np.testing.assert_allclose(
        found.shadows.standard_error, found.shadow_rounds.std(axis=0, ddof=1) / np.sqrt(3)
    )
    assert found.importances.values[0] > 10 * np.abs(found.shadows.values).max()
    ax = found.plot()
    ranges = next(lines for lines in ax.collections if lines.get_linewidth()[0] == 4)
    order = np.argsort(found.importances.values)
    low, high = np.array(ranges.get_segments())[:, :, 0].T
    np.testing.assert_allclose(low, found.shadow_rounds.min(axis=0)[order])
    np.testing.assert_allclose(high, found.shadow_rounds.max(axis=0)[order])
    matplotlib.pyplot.close(ax.figure)


def test_shadow_of_categories_weights_and_sparse_tables():
    pd = pytest.importorskip("pandas")
    X, y = table()
    frame = pd.DataFrame(X, columns=list("abcdef"))
    frame["a"] = pd.qcut(frame["a"], 8, labels=list("stuvwxyz"))
    forest = RandomForestRegressor(5, random_state=0, categorical_features=["a"])
    forest.fit(frame, y, sample_weight=np.arange(1, 101))
    found = shadow(forest, frame, y, n_rounds=3, random_state=0)
    assert list(found.importances.feature_names) == list("abcdef")
    assert found.shadows.feature_names[0] == "a (shadow)"
    assert found.importances.values.argmax() == 0
    X, y = np.where(np.abs(X) > 0.5, X, np.float32(0)), y > 0
    dense, sparse = (
        shadow(RandomForestClassifier(5, random_state=0).fit(t, y), t, y, random_state=0)
        for t in (X, csr_matrix(X))
    )
    np.testing.assert_allclose(dense.rounds, sparse.rounds, rtol=1e-9)


def test_shadow_shows_itself():
    pytest.importorskip("pandas")
    matplotlib.use("Agg")
    X, y = table()
    found = shadow(RandomForestRegressor(5, random_state=0).fit(X, y), X, y, random_state=0)
    frame = found.to_frame()
    assert list(frame.index[:2]) == ["x0", "x1"]
    assert frame.loc["x3", "shadow"] == found.shadows.values[3]
    assert frame.loc["x3", "largest_shadow"] == found.shadow_rounds[:, 3].max()
    ax = found.plot(max_features=4)
    order = np.argsort(-found.importances.values)[:4][::-1]
    assert [t.get_text() for t in ax.get_yticklabels()] == [f"x{j}" for j in order]
    marks = next(line for line in ax.lines if line.get_marker() == "D")
    np.testing.assert_allclose(marks.get_xdata(), found.shadows.values[order])
    assert "x0" in repr(found)
    with pytest.raises(ValueError, match="n_rounds=1"):
        shadow(RandomForestRegressor(5).fit(X, y), X, y, n_rounds=1)


# --------------------------------------------------------------------------------- decisions


@given(hits=st.lists(st.integers(0, 50), min_size=1, max_size=8), alpha=st.floats(0.01, 0.3))
def test_decisions_by_the_binomial_distribution(hits, alpha):
    """Against scipy's test of one half, corrected step by step."""
    hits = np.array(hits)
    p_values, decision = decide(hits, 50, alpha, "boruta")
    doubled = {
        side: [min(1.0, 2 * binomtest(int(h), 50, 0.5, alternative=side).pvalue) for h in hits]
        for side in ("greater", "less")
    }
    expected = brute_holm(doubled["greater"])
    np.testing.assert_allclose(p_values, expected, rtol=1e-9)
    is_low = np.array(brute_holm(doubled["less"])) <= alpha
    for j in range(len(hits)):
        if p_values[j] <= alpha:
            assert decision[j] == "confirmed"
        else:
            assert decision[j] == ("rejected" if is_low[j] else "tentative")
    p_values, decision = decide(hits, 50, alpha, "maximum")
    np.testing.assert_allclose(p_values, (1 + 50 - hits) / 51)
    np.testing.assert_array_equal(decision == "confirmed", p_values <= alpha)


def brute_holm(p):
    """The smallest is multiplied by n, the next by n - 1, ...; none falls below the one before."""
    adjusted, least = {}, 0.0
    for place, j in enumerate(np.argsort(p, kind="stable")):
        least = max(least, min(1.0, (len(p) - place) * p[j]))
        adjusted[j] = least
    return [adjusted[j] for j in range(len(p))]


def test_holm_by_hand():
    np.testing.assert_allclose(holm(np.array([0.04, 0.01, 0.03])), [0.06, 0.03, 0.06])
    p_values = np.array([0.01, 0.04, 0.03, 0.005])
    np.testing.assert_allclose(holm(p_values), [0.03, 0.06, 0.06, 0.02])  # as R's p.adjust
    assert holm(np.array([0.9, 0.8])).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("method", ["maximum", "boruta"])
def test_all_relevant_features_are_found(method):
    X, y = table()
    X[:, 2] = X[:, 0]  # redundant, and relevant
    forest = RandomForestRegressor(20, max_features=0.5, random_state=0).fit(X, y)
    found = select_features(forest, X, y, method=method, n_rounds=25, random_state=0)
    assert list(np.flatnonzero(found.confirmed)) == [0, 1, 2]
    assert found.decision[3:].tolist().count("rejected") >= 2
    expected = (found.rounds > found.best_shadow[:, np.newaxis]).sum(axis=0)
    np.testing.assert_array_equal(found.hits, expected)
    again = select_features(forest, X, y, method=method, n_rounds=25, random_state=0, n_jobs=2)
    np.testing.assert_array_equal(found.rounds, again.rounds)
    frame = found.to_frame()
    assert frame.loc["x0", "decision"] == "confirmed"
    assert frame["importance"].is_monotonic_decreasing
    assert "x0" in repr(found)


def test_any_measure_without_bootstrap():
    X, y = table()
    forest = ExtraTreesRegressor(10, random_state=0).fit(X, y)
    found = select_features(
        forest, X, y, measure=lambda forest, X, y: mdi(forest), n_rounds=19, random_state=0
    )
    assert found.confirmed[:2].all()


def test_refusals():
    X, y = table()
    forest = RandomForestRegressor(3, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="use at least 19"):
        select_features(forest, X, y, n_rounds=18)
    for n_features, least in ((6, 8), (3, 7)):
        with pytest.raises(ValueError, match=f"use at least {least}"):
            select_features(
                forest.fit(X[:, :n_features], y), X[:, :n_features], y, method="boruta",
                n_rounds=least - 1,
            )  # fmt: skip
        for n_rounds in (least - 1, least):  # one feature always hits, the others never
            decision = decide(n_rounds * np.eye(n_features)[0], n_rounds, 0.05, "boruta")[1]
            assert ("confirmed" in decision) == (n_rounds == least)
    in_groups = partial(oob_permutation, groups=[[0, 1]])
    with pytest.raises(ValueError, match="returned 11 importances for 12 columns"):
        select_features(forest.fit(X, y), X, y, measure=in_groups)
    with pytest.raises(ValueError, match="method='minimum'"):
        select_features(forest, X, y, method="minimum")
    with pytest.raises(ValueError, match="alpha=1"):
        select_features(forest, X, y, alpha=1.0)


# ------------------------------------------------------------------------------- transformer


@parametrize_with_checks(
    [FeatureSelector(RandomForestClassifier(5, random_state=0), n_rounds=19, random_state=0)],
    expected_failed_checks=lambda estimator: {
        "check_fit2d_1sample": "of one row none is out of bag, and the error says that instead"
    },
)
@pytest.mark.filterwarnings("ignore:No features were selected")
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_selector_in_a_pipeline():
    pd = pytest.importorskip("pandas")
    X, y = table()
    X, y = pd.DataFrame(X, columns=list("abcdef")), np.where(y > 0, "yes", "no")
    for kind in (RandomForestClassifier, PeerClassifier):
        selector = FeatureSelector(kind(15, random_state=0), n_rounds=19, random_state=0)
        model = make_pipeline(selector, RandomForestClassifier(5, random_state=0))
        model.set_output(transform="pandas")
        model.fit(X, y)
        assert list(model[0].get_feature_names_out()) == ["a", "b"]
        assert model[-1].n_features_in_ == 2
        assert model.score(X, y) > 0.8
        assert list(model[0].transform(X).columns) == ["a", "b"]
    loose = clone(selector).set_params(keep_tentative=True).fit(X, y)
    np.testing.assert_array_equal(loose.get_support(), loose.selection_.decision != "rejected")


def test_selector_selects_as_the_function():
    X, y = table()
    forest = RandomForestRegressor(5, max_depth=3, random_state=0)
    options = {"method": "boruta", "alpha": 0.3, "n_rounds": 7, "random_state": 3}
    options["measure"] = lambda forest, X, y: mdi(forest)
    found = FeatureSelector(forest, **options).fit(X, y).selection_
    direct = select_features(clone(forest).fit(X, y), X, y, **options)
    np.testing.assert_array_equal(found.rounds, direct.rounds)
    np.testing.assert_array_equal(found.p_values, direct.p_values)
    np.testing.assert_array_equal(found.decision, direct.decision)
    assert np.any((direct.p_values > 0.05) & direct.confirmed)  # alpha was passed on


@pytest.mark.parametrize("kind", [RandomForestClassifier, PeerClassifier])
@pytest.mark.parametrize("is_routed", [False, True])
def test_sample_weight_reaches_the_forest_and_its_refits(kind, is_routed):
    """Only rows of weight follow the first column; the others follow the third."""
    X, _ = table(400)
    weight = np.where(np.arange(len(X)) % 2 == 0, 1.0, 1e-9)
    y = np.where(weight == 1.0, X[:, 0], X[:, 2]) > 0
    forest = kind(15, random_state=0)
    with config_context(enable_metadata_routing=is_routed):
        if is_routed:
            forest.set_fit_request(sample_weight=True)
        selector = FeatureSelector(forest, n_rounds=19, random_state=0)
        selector.fit(X, y, sample_weight=weight)
        assert selector.get_support().tolist() == [True] + 5 * [False]
    fitted = kind(15, random_state=0).fit(X, y, sample_weight=weight)
    direct = select_features(fitted, X, y, n_rounds=19, random_state=0)
    np.testing.assert_array_equal(selector.selection_.rounds, direct.rounds)
    with pytest.raises(TypeError, match="strange"):
        selector.fit(X, y, strange=1)
    with config_context(enable_metadata_routing=True), pytest.raises(UnsetMetadataPassedError):
        FeatureSelector(kind(15)).fit(X, y, sample_weight=weight)


def test_frames_of_polars_keep_their_types():
    """scikit-learn would make them an array of objects, whose numbers count as categories."""
    pl = pytest.importorskip("polars")
    rng = np.random.default_rng(0)
    X = pl.DataFrame({"city": rng.choice([*"abc"], 80), "size": rng.random(80)})
    X = X.with_columns(noise=rng.random(80))
    y = (X["city"].to_numpy() == "a") + 2.0 * (X["size"].to_numpy() > 0.5)
    forest = RandomForestRegressor(8, categorical_features="from_dtype", random_state=0)
    selector = FeatureSelector(forest, n_rounds=19, random_state=0)
    of_polars = selector.set_output(transform="polars").fit(X, y).transform(X)
    assert of_polars.equals(X[["city", "size"]])
    with pytest.raises(ValueError, match="feature names should match"):
        selector.transform(X[["size", "city", "noise"]])
    of_pandas = selector.set_output(transform="pandas").transform(X)
    assert of_pandas["size"].dtype == np.float64
    assert of_pandas.to_dict("list") == of_polars.to_dict(as_series=False)
    nothing = selector.fit(X, rng.random(80))
    for output in ("pandas", "polars"):
        with pytest.warns(UserWarning, match="No features were selected"):
            assert nothing.set_output(transform=output).transform(X).shape[1] == 0
    with pytest.raises(NotFittedError):
        clone(selector).set_output(transform="polars").transform(X)


def test_frames_of_several_types_are_transformed():
    """As arrays, too: pandas has none of categories of text beside booleans, and of dates."""
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    city = pd.Categorical(rng.choice([*"abc"], 80))
    frame = pd.DataFrame({"flag": rng.random(80) > 0.5, "city": city, "size": rng.random(80)})
    frame["day"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 99, 80), "D")
    y = (city == "a") + 2.0 * frame["flag"]
    forest = RandomForestRegressor(8, categorical_features=["city"], random_state=0)
    selector = FeatureSelector(forest, n_rounds=19, random_state=0).fit(frame, y)
    kept = selector.get_feature_names_out().tolist()
    assert {"flag", "city"} <= set(kept)
    found = selector.transform(frame)
    assert found[:, kept.index("city")].tolist() == list(city)
    of_pandas = selector.set_output(transform="pandas").transform(frame)
    pd.testing.assert_frame_equal(of_pandas, frame[kept])
