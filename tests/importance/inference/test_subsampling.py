"""Standard errors over data: against a loop of refits, and against what fresh tables do."""

from functools import partial

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier as PeerClassifier

from forest import RandomForestClassifier, RandomForestRegressor
from importance import drop_column, oob_permutation, over_data
from importance.inference.refit import Refits

MAX = np.iinfo(np.int32).max


def table(n, seed):
    rng = np.random.RandomState(seed)
    X = rng.normal(size=(n, 3)).astype(np.float32)
    return X, 2 * X[:, 0] + X[:, 1] + rng.normal(size=n)


@pytest.mark.parametrize("subsample", [0.5, 0.3])
def test_over_data_is_a_loop_of_refits(subsample):
    X, y = table(60, 0)
    forest = RandomForestRegressor(6, max_samples=40, random_state=0).fit(X, y)
    found = over_data(forest, X, y, n_subsamples=7, subsample=subsample, random_state=5, n_jobs=2)
    whole = oob_permutation(forest, X, y)
    np.testing.assert_array_equal(found.values, whole.values)
    np.testing.assert_array_equal(found.standard_error, whole.standard_error)
    b = int(60 * subsample)
    values, squares = [], []
    for seed in np.random.RandomState(5).randint(MAX, size=7):
        stream = np.random.RandomState(seed)
        rows = sorted(stream.permutation(60)[:b])
        refit = RandomForestRegressor(
            6, max_samples=round(40 * subsample), random_state=stream.randint(MAX)
        ).fit(X[rows], y[rows])
        part = oob_permutation(refit, X[rows], y[rows])
        values.append(part.values)
        squares.append(part.errors["over trees"] ** 2)
    deviation = np.mean((np.array(values) - whole.values) ** 2, axis=0)
    of_rows = deviation - np.mean(squares, axis=0) - whole.errors["over trees"] ** 2
    assert of_rows.max() > 0
    expected = np.sqrt(b / (60 - b) * np.maximum(of_rows, 0) + whole.errors["over trees"] ** 2)
    np.testing.assert_allclose(found.errors["over data"], expected)
    reach = found.interval(0.9, over="over data")[:, 1] - found.values
    np.testing.assert_allclose(reach, 1.6448536 * expected, rtol=1e-6)


@pytest.mark.parametrize("kind", [RandomForestRegressor, RandomForestClassifier])
def test_refits_are_measured_without_the_error_over_data(kind):
    """It would add to the time of each; the values are those of the forest."""
    X, y = table(60, 0)
    y = y > 0 if kind is RandomForestClassifier else y
    forest = kind(8, random_state=0).fit(X, y)
    refits, whole = Refits.of(forest, X, y), oob_permutation(forest, X, y)
    found = refits.measure_again(forest, X, y)
    np.testing.assert_array_equal(found.per_tree, whole.per_tree)
    np.testing.assert_array_equal(found.standard_error, whole.errors["over trees"])
    assert found.errors.keys() == whole.errors.keys() - {whole.uncertainty}
    of_user = Refits.of(forest, X, y, drop_column)
    assert of_user.measure is of_user.measure_again
    assert of_user.measure(forest, X, y).measure == "drop_column"


def test_error_over_data_is_the_spread_over_fresh_tables():
    """In sum over features, at 25 tables of 80 rows."""
    values, squares = [], []
    for seed in range(25):
        X, y = table(80, seed)
        forest = RandomForestRegressor(8, random_state=seed).fit(X, y)
        found = over_data(forest, X, y, n_subsamples=8, random_state=seed)
        values.append(found.values)
        squares.append(found.errors["over data"] ** 2)
    spread, estimated = np.var(values, axis=0, ddof=1).sum(), np.mean(squares, axis=0).sum()
    assert 0.6 < estimated / spread < 2.2
    assert estimated > 3 * (found.errors["over trees"] ** 2).sum()


def test_any_forest_and_measure():
    pd = pytest.importorskip("pandas")
    X, y = load_iris(return_X_y=True, as_frame=True)
    y = np.array(["a", "b", "c"])[y]
    options = {"n_subsamples": 3, "random_state": 0}
    ours = RandomForestClassifier(5, random_state=0).fit(X, y)
    peer = PeerClassifier(5, random_state=0).fit(X, y)
    a, b = (over_data(forest, X, y, **options) for forest in (ours, peer))
    np.testing.assert_allclose(a.errors["over data"], b.errors["over data"], atol=1e-12)
    assert list(a.feature_names) == list(X.columns)
    dropped = over_data(ours, X, y, measure=drop_column, **options)
    assert set(dropped.errors) == {dropped.uncertainty, "over data"}
    assert dropped.errors["over data"].min() > 0.0
    X["color"] = pd.Categorical(np.where(X.iloc[:, 2] > 3, "red", "blue"))
    ours = RandomForestClassifier(5, random_state=0, categorical_features="from_dtype").fit(X, y)
    found = over_data(ours, X, y, measure=partial(oob_permutation, loss="zero_one"), **options)
    assert np.isfinite(found.errors["over data"]).all()
    assert "over data" not in oob_permutation(ours, X, y).errors


def test_refusals():
    X, y = table(30, 0)
    forest = RandomForestRegressor(3, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="n_subsamples=0"):
        over_data(forest, X, y, n_subsamples=0)
    for subsample in (0.0, 1.0, 0.99, 2.0):
        with pytest.raises(ValueError, match="of 30 rows"):
            over_data(forest, X, y, subsample=subsample)
    with pytest.raises(ValueError, match="subsample=inf must be a share"):
        over_data(forest, X, y, subsample=np.inf)
