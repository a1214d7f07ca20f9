"""Out-of-bag permutation over partitions is that of the whole table."""

import doctest

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

from forest import RandomForestClassifier, RandomForestRegressor
from importance import oob_permutation
from importance.permutation import partitions


def make_table(seed, n_rows, share_missing):
    random = np.random.RandomState(seed)
    X = random.randn(n_rows, 6)
    X[:, 1] = np.round(X[:, 1])
    X[:, 2] = 1.0
    X[random.rand(*X.shape) < share_missing] = np.nan
    X[: n_rows // 3] = random.randn(n_rows // 3, 6)  # the first partition lacks no value
    X[: n_rows // 3, 2] = 1.0
    return X, np.nan_to_num(X[:, 0]) + 0.5 * np.nan_to_num(X[:, 1]) + random.randn(n_rows), random


@pytest.mark.parametrize("share_missing", [0.0, 0.2])
@pytest.mark.parametrize("n_classes", [0, 2, 4])
@pytest.mark.parametrize("bootstrap_draw", ["sequence", "keyed"])
def test_it_is_that_of_the_whole_table(share_missing, n_classes, bootstrap_draw):
    """Values, what each tree says, and errors over data and trees."""
    X, y, _ = make_table(n_classes, 500, share_missing)
    params = {"n_estimators": 12, "random_state": 0, "bootstrap_draw": bootstrap_draw}
    forest = RandomForestRegressor(**params, max_features=2)
    if n_classes:
        y = np.digitize(y, np.quantile(y, np.arange(1, n_classes) / n_classes))
        forest = RandomForestClassifier(**params)
    forest.fit(X, y)
    whole = oob_permutation(forest, X, y)
    cuts = [166, 166, 170, 499]
    found = partitions.oob_permutation(forest, np.split(X, cuts), np.split(y, cuts), n_jobs=2)
    close = {"rtol": 1e-9, "atol": 1e-13}
    np.testing.assert_allclose(found.values, whole.values, **close)
    np.testing.assert_allclose(found.per_tree, whole.per_tree, **close)
    np.testing.assert_allclose(found.standard_error, whole.standard_error, **close)
    for name, error in whole.other_errors.items():
        np.testing.assert_allclose(found.other_errors[name], error, **close)
    assert (found.measure, found.loss, found.unit) == (whole.measure, whole.loss, whole.unit)
    assert list(found.feature_names) == list(whole.feature_names)
    if share_missing == 0.0:
        assert found.values[2] == 0.0  # a feature that no tree uses


def test_rows_that_are_followed(monkeypatch):
    """Of a long table the influence of some rows is added up, whichever partition has them."""
    monkeypatch.setattr("importance.permutation.influence.MOST_ROWS", 50)
    X, y, _ = make_table(7, 400, 0.1)
    forest = RandomForestRegressor(8, random_state=0).fit(X, y)
    whole = oob_permutation(forest, X, y, loss="absolute_error")
    found = partitions.oob_permutation(forest, X, y, loss="absolute_error", rows_at_once=90)
    np.testing.assert_allclose(found.standard_error, whole.standard_error, rtol=1e-9)


def test_files(tmp_path):
    X, y, _ = make_table(1, 300, 0.0)
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    forest = RandomForestRegressor(4, random_state=0).fit(X, y)
    paths = tmp_path / "X.npy", tmp_path / "y.npy"
    found = partitions.oob_permutation(forest, *paths, rows_at_once=100)
    np.testing.assert_allclose(found.values, oob_permutation(forest, X, y).values, rtol=1e-9)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_every_partition_is_reported_twice(n_jobs):
    X, y, _ = make_table(1, 90, 0.0)
    forest, told = RandomForestRegressor(3, random_state=0).fit(X, y), []
    parts = np.split(X, 3), np.split(y, 3)
    partitions.oob_permutation(forest, *parts, n_jobs=n_jobs, callback=told.append)
    assert [(each.n_done, each.n_total) for each in told] == [(n, 6) for n in range(1, 7)]


def test_refusals():
    X, y, random = make_table(2, 90, 0.0)
    parts = np.split(X, 3), np.split(y, 3)
    forest = RandomForestRegressor(3, random_state=0).fit(X, y)
    for strange, words in (
        ((parts[0][:2], parts[1][:2]), "have 60 rows, but the forest was fitted on 90"),
        (([part[:, :4] for part in parts[0]], parts[1]), "4 columns, but"),
        ((parts[0], parts[1][:2]), "3 partitions, but y has 2"),
    ):
        with pytest.raises(ValueError, match=words):
            partitions.oob_permutation(forest, *strange)
    with pytest.raises(ValueError, match="bootstrap=True"):
        partitions.oob_permutation(RandomForestRegressor(2, bootstrap=False).fit(X, y), *parts)
    weighted = RandomForestRegressor(2).fit(X, y, sample_weight=random.rand(90))
    with pytest.raises(ValueError, match="weights"):
        partitions.oob_permutation(weighted, *parts)
    X[:, 4] = random.randint(5, size=90)
    of_categories = RandomForestRegressor(5, categorical_features=[4]).fit(X, 9 * (X[:, 4] == 2))
    with pytest.raises(ValueError, match="categories"):
        partitions.oob_permutation(of_categories, *parts)


def test_it_refuses_what_the_whole_table_is_refused_for():
    """Labels that the fit did not have were looked up beyond an array; other columns, steps of a
    pipeline, and values that surrogates send, were judged as if they were the trees' own."""
    X, y, _ = make_table(3, 90, 0.1)
    y = (y > 0.0).astype(int)
    parts = np.split(X, 3), np.split(y, 3)
    forest = RandomForestClassifier(3, random_state=0)
    pipeline = make_pipeline(MaxAbsScaler(), forest).fit(X, y)
    with pytest.raises(TypeError, match="steps before the forest"):
        partitions.oob_permutation(pipeline, *parts)
    with pytest.raises(ValueError, match="not among the classes"):
        partitions.oob_permutation(forest.fit(X, y), parts[0], np.split(2 * y, 3))
    strange = {"missing": "surrogate", "surrogates": 2}, {"missing": "refuse"}
    for params, words in zip(strange, ("by surrogates", "missing values"), strict=True):
        other = RandomForestClassifier(3, **params).fit(np.nan_to_num(X), y)
        with pytest.raises(ValueError, match=words):
            partitions.oob_permutation(other, *parts)
    frame = pd.DataFrame(X, columns=list("abcdef"))
    swapped = [frame.iloc[k : k + 30][list("bacdef")] for k in (0, 30, 60)]
    with pytest.raises(ValueError, match="partition 0 are called 'b', 'a'"):
        partitions.oob_permutation(forest.fit(frame, y), swapped, parts[1])
    grown = RandomForestClassifier(2, warm_start=True).fit(X, y)
    grown.set_params(n_estimators=4).fit(X[::-1], y[::-1])
    with pytest.raises(ValueError, match="several tables"):
        partitions.oob_permutation(grown, *parts)


def test_the_example():
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    assert doctest.testmod(partitions, optionflags=flags) == (0, 7)
