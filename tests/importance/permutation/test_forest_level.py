"""`forest_permutation`, for all trees at once, against its slow twin."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.metrics import log_loss, r2_score, roc_auc_score

from benchmarks.oracles import permutation as oracle
from forest import RandomForestClassifier, RandomForestRegressor
from importance import (
    forest_permutation,
    oob_permutation,
)
from tests.importance.permutation.tables import (
    ALONE,
    EACH_LOSS,
    GROUPS,
    fit,
    table,
)


def forest_scores(forest, X, evaluate, columns_of, orders, is_hard=False):
    """What `evaluate(values, known)` says of the forest, and with given permutations."""
    trees = [tree.tree_ for tree in forest.estimators_]

    def judge(X):
        total, times = oracle.vote(
            trees, forest.estimators_samples_, lambda t, rows: X[rows], len(X), is_hard
        )
        known = times > 0
        return evaluate((total / np.maximum(times, 1)[:, np.newaxis])[known], known)

    permuted = [
        [
            judge(oracle.exchanged(X, columns, order))
            for columns, order in zip(columns_of, o, strict=True)
        ]
        for o in orders
    ]
    return judge(X), np.array(permuted)


@EACH_LOSS
@pytest.mark.parametrize("adopted", [False, True], ids=["ours", "adopted"])
@pytest.mark.parametrize("grouped", [False, True], ids=["columns", "groups"])
def test_forest_level_permutes_for_all_trees_at_once(loss, adopted, grouped):
    """With the permutations that its seed draws; weights count in the loss."""
    X, y = table(loss)
    forest = fit(loss, X, y, adopted, n=6)
    weight = np.random.RandomState(1).uniform(size=len(y))
    columns = list(GROUPS.values()) if grouped else ALONE
    seeds = np.random.RandomState(7).randint(np.iinfo(np.int32).max, size=len(columns))
    streams = [np.random.RandomState(seed) for seed in seeds]
    orders = [[stream.permutation(len(y)) for stream in streams] for _ in range(3)]

    def evaluate(values, known):
        return np.average(oracle.row_losses(values, y[known], loss), weights=weight[known])

    base, permuted = forest_scores(forest, X, evaluate, columns, orders)
    result = oob_permutation(
        forest, X, y, level="forest", loss=loss, groups=GROUPS if grouped else None,
        sample_weight=weight, n_repeats=3, random_state=7,
    )  # fmt: skip
    difference = permuted - base
    np.testing.assert_allclose(result.values, difference.mean(axis=0), atol=1e-10)
    np.testing.assert_allclose(
        result.standard_error, difference.std(axis=0, ddof=1) / np.sqrt(3), atol=1e-10
    )
    assert result.measure == "forest_permutation"
    assert result.per_tree is None
    assert result.uncertainty == "over permutations"


def test_forest_level_takes_any_metric():
    X, y = load_breast_cancer(return_X_y=True)
    X, y = X[:150].astype(np.float32), y[:150]
    forest = RandomForestClassifier(8, random_state=0).fit(X, y)
    weight = np.random.RandomState(0).uniform(size=len(y))
    columns = [[j] for j in range(30)]
    seeds = np.random.RandomState(0).randint(np.iinfo(np.int32).max, size=30)
    orders = [[np.random.RandomState(seed).permutation(len(y)) for seed in seeds]]
    for metric, sign in ((roc_auc_score, 1), (log_loss, -1)):
        base, permuted = forest_scores(
            forest, X,
            lambda v, known, f=metric: f(y[known], v[:, 1], sample_weight=weight[known]),
            columns, orders,
        )  # fmt: skip
        result = forest_permutation(
            forest, X, y, metric=metric, response="probabilities", n_repeats=1, random_state=0,
            greater_is_better=sign > 0, sample_weight=weight,
        )  # fmt: skip
        np.testing.assert_allclose(result.values, sign * (base - permuted[0]), atol=1e-10)
        assert metric.__name__ in result.unit
        assert np.isnan(result.standard_error).all()
    default = oob_permutation(
        forest, X, y, level="forest", n_repeats=2, random_state=0, loss="zero_one"
    )
    accuracy = oob_permutation(
        forest, X, y, level="forest", n_repeats=2, random_state=0,
        metric=lambda truth, said: np.mean(truth == said),
    )  # fmt: skip
    np.testing.assert_allclose(default.values, accuracy.values, atol=1e-12)
    X, y = load_diabetes(return_X_y=True)
    numbers = RandomForestRegressor(5, random_state=0).fit(X, y)
    r2 = oob_permutation(numbers, X, y, level="forest", metric=r2_score, random_state=0)
    assert r2.values[[2, 8]].min() > 0.0
    with pytest.raises(TypeError, match="metric must return a number, but returned ndarray"):
        forest_permutation(numbers, X, y, metric=np.subtract)


def test_forest_level_follows_the_vote():
    """voting="majority" counts preferred classes."""
    X, y = table("zero_one")
    forest = fit("zero_one", X, y, n=7, max_depth=3, voting="majority")
    seeds = np.random.RandomState(0).randint(np.iinfo(np.int32).max, size=5)
    orders = [[np.random.RandomState(seed).permutation(len(y)) for seed in seeds]]

    def evaluate(values, known):
        return oracle.row_losses(values, y[known], "zero_one").mean()

    base, permuted = forest_scores(forest, X, evaluate, ALONE, orders, is_hard=True)
    soft = forest_scores(forest, X, evaluate, ALONE, orders)
    assert soft[0] != base or (soft[1] != permuted).any()
    result = forest_permutation(forest, X, y, loss="zero_one", n_repeats=1, random_state=0)
    np.testing.assert_allclose(result.values, permuted[0] - base, atol=1e-12)


@given(seed=st.integers(0, 200))
def test_what_no_tree_uses_has_exactly_zero_at_either_level(seed):
    X, y = table("brier", n=40, seed=seed)
    X[:, 3] = 7.0
    forest = fit("brier", X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for options in ({"per_row": True}, {"n_repeats": 2}, {"level": "forest"}):
            result = oob_permutation(forest, X, y, loss="brier", random_state=0, **options)
            assert result.values[3] == result.standard_error[3] == 0.0
            if result.per_row is not None:
                assert not np.nan_to_num(result.per_row[:, 3]).any()


def test_redundant_features_are_worth_more_to_trees_than_to_the_forest():
    """Why the two levels have two names."""
    rng = np.random.RandomState(0)
    X = rng.normal(size=(300, 1)) + 0.1 * rng.normal(size=(300, 4))
    y = X.mean(axis=1)
    forest = RandomForestRegressor(30, random_state=0, max_features=1).fit(X, y)
    per_tree = oob_permutation(forest, X, y)
    whole = oob_permutation(forest, X, y, level="forest", random_state=0)
    assert (whole.values < 0.6 * per_tree.values).all()
    assert (whole.values > 0.0).all()
