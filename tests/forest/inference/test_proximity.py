"""Proximities, nearest rows and outlier scores, against plain loops."""

import sys
import tracemalloc
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import issparse
from sklearn.datasets import load_iris
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.ensemble import RandomForestClassifier as PeerClassifier
from sklearn.exceptions import NotFittedError

from cart import DecisionTreeClassifier
from forest import (
    BaggingClassifier,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    nearest_rows,
    outlier_scores,
    proximity,
)
from forest.inference.proximity import PAIRS
from tests.examples import examples
from tests.oracles import leaves as oracle

EACH_KIND = pytest.mark.parametrize("pairs", PAIRS)


@st.composite
def forests(draw):
    """A small forest, its table, and rows that it has not seen."""
    rng = np.random.RandomState(draw(st.integers(0, 10_000)))
    n = draw(st.integers(4, 18))
    X, new = rng.randint(0, 6, (n, 2)) / 4.0, rng.randint(0, 6, (5, 2)) / 4.0
    X[rng.uniform(size=X.shape) < draw(st.sampled_from([0.0, 0.2]))] = np.nan
    y = rng.randint(0, 3, n)
    forest = draw(st.sampled_from([RandomForestClassifier, RandomForestRegressor]))(
        draw(st.integers(1, 5)),
        max_depth=draw(st.sampled_from([None, 2])),
        max_samples=draw(st.sampled_from([None, 0.6])),
        random_state=rng.randint(100),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few draws
        return forest.fit(X, y), X, y, new


@examples(25)
@given(case=forests(), pairs=st.sampled_from(PAIRS))
def test_proximities_are_those_of_the_plain_loop(case, pairs):
    forest, X, _, new = case
    at, drawn = oracle.leaves(forest, X), oracle.counts(forest, len(X))
    found = proximity(forest, X, pairs=pairs)
    assert issparse(found)
    assert found.format == "csr"
    assert np.all(found.data > 0)
    expected = oracle.proximities(at, drawn, pairs)
    np.testing.assert_allclose(found.toarray(), expected, rtol=1e-13)
    others = oracle.proximities(oracle.leaves(forest, new), drawn, "all", at)
    np.testing.assert_array_equal(proximity(forest, new, X).toarray(), others)


@examples(25)
@given(case=forests(), pairs=st.sampled_from(PAIRS), data=st.data())
def test_nearest_rows_are_the_highest_of_the_dense_proximities(case, pairs, data):
    forest, X, _, new = case
    k = data.draw(st.integers(1, len(X) - 1))
    dense = proximity(forest, X, pairs=pairs).toarray()
    near, rows = nearest_rows(forest, X, k, pairs=pairs)
    for i, expected in enumerate(dense):
        others = [j for j in range(len(X)) if j != i]
        order = sorted(others, key=lambda j: (-expected[j], j))[:k]
        assert rows[i].tolist() == order
        np.testing.assert_array_equal(near[i], expected[order])
    near, rows = nearest_rows(forest, new, k, X)
    expected = np.argsort(-proximity(forest, new, X).toarray(), axis=1, kind="stable")[:, :k]
    np.testing.assert_array_equal(rows, expected)


@examples(25)
@given(case=forests(), pairs=st.sampled_from(PAIRS), with_classes=st.booleans())
def test_outlier_scores_are_breimans(case, pairs, with_classes):
    forest, X, y, _ = case
    y = y if with_classes else None
    dense = proximity(forest, X, pairs=pairs).toarray()
    classes = np.zeros(len(X)) if y is None else y
    raw = np.empty(len(X))
    for i in range(len(X)):
        squares = sum(dense[i, j] ** 2 for j in range(len(X)) if classes[j] == classes[i])
        raw[i] = len(X) / (squares or 1.0)
    for label, score, mine in zip(classes, outlier_scores(forest, X, y, pairs), raw, strict=True):
        of_class = raw[classes == label]
        deviation = np.median(np.abs(of_class - np.median(of_class)))
        # A deviation that only rounding keeps from 0 is 0.
        if deviation > 1e-9:
            assert score == pytest.approx((mine - np.median(of_class)) / deviation, abs=1e-6)
        elif mine == np.median(of_class):
            assert not np.isnan(score)


@pytest.mark.parametrize("seed", range(10))
def test_a_row_at_the_median_has_no_score_however_sums_are_rounded(seed):
    X = np.random.RandomState(seed).normal(size=(31, 2)).round()
    forest = ExtraTreesRegressor(10, min_samples_leaf=9, random_state=0).fit(X, X[:, 0])
    in_one_leaf = np.rint(10 * proximity(forest, X).toarray())
    squares = (in_one_leaf**2).sum(axis=1)  # whole numbers: nothing is rounded
    assert not outlier_scores(forest, X)[squares == np.median(squares)].any()


def test_a_row_apart_has_the_highest_score():
    rng = np.random.RandomState(0)
    X = np.vstack([rng.normal(0, 1, (60, 2)), rng.normal(8, 1, (60, 2)), [[7.5, 7.5]]])
    y = np.repeat([0, 1, 0], [60, 60, 1])
    forest = RandomForestClassifier(60, min_samples_leaf=5, random_state=0).fit(X, y)
    scores = outlier_scores(forest, X, y)
    assert scores.argmax() == 120
    assert scores[120] > 10


def test_outlier_scores_of_many_classes_need_no_room_for_each():
    X = np.arange(3_000.0)[:, np.newaxis]
    forest = ExtraTreesRegressor(2, random_state=0).fit(X, X[:, 0])
    tracemalloc.start()
    try:
        assert not outlier_scores(forest, X, X[:, 0]).any()
        assert tracemalloc.get_traced_memory()[1] < 8 * 3_000**2
    finally:
        tracemalloc.stop()


def test_gap_proximities_predict_what_the_forest_predicts_out_of_bag():
    """What Rhodes, Cutler and Moon (2023) prove of them; and rows sum to 1."""
    X = load_iris().data
    X, y = X[:, :3], X[:, 3]
    forest = RandomForestRegressor(60, random_state=0, oob_score=True).fit(X, y)
    gap = proximity(forest, X, pairs="gap")
    np.testing.assert_allclose(gap.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(gap @ y, forest.oob_prediction_, rtol=1e-12)
    assert not gap.diagonal().any()


@EACH_KIND
def test_blocks_change_nothing(pairs, monkeypatch):
    X, y = load_iris(return_X_y=True)
    forest = RandomForestClassifier(12, random_state=0).fit(X, y)

    def all_of_them():
        whole = proximity(forest, X, pairs=pairs).toarray()
        return whole, *nearest_rows(forest, X, 5, pairs=pairs), outlier_scores(forest, X, y, pairs)

    whole = all_of_them()
    module = sys.modules[
        "forest.inference.proximity"
    ]  # the package exports a function of that name
    monkeypatch.setattr(module, "_BLOCK_ROWS", 7)
    monkeypatch.setattr(module, "_BLOCK_PAIRS", 11)
    for once, again in zip(whole, all_of_them(), strict=True):
        np.testing.assert_array_equal(once, again)


@pytest.mark.parametrize("work", [
    proximity, outlier_scores, lambda forest, X, **how: nearest_rows(forest, X, 5, **how)
])  # fmt: skip
def test_every_block_is_reported(work, monkeypatch):
    X, y = load_iris(return_X_y=True)
    forest = RandomForestClassifier(3, random_state=0).fit(X, y)
    monkeypatch.setattr(sys.modules["forest.inference.proximity"], "_BLOCK_ROWS", 60)
    told = []
    work(forest, X, callback=told.append)
    assert [(each.n_done, each.n_total) for each in told] == [(1, 3), (2, 3), (3, 3)]


@EACH_KIND
def test_scikit_learns_forests_have_the_same(pairs):
    X, y = load_iris(return_X_y=True)
    ours, peer = (
        kind(9, random_state=0).fit(X, y) for kind in (RandomForestClassifier, PeerClassifier)
    )
    np.testing.assert_array_equal(
        proximity(ours, X, pairs=pairs).toarray(), proximity(peer, X, pairs=pairs).toarray()
    )


def test_rows_that_are_never_out_of_bag_have_no_proximity():
    X, y = load_iris(return_X_y=True)
    forest = RandomForestClassifier(3).fit(X, y, in_bag=np.ones((3, len(y)), int))
    assert proximity(forest, X, pairs="out_of_bag").nnz == 0


def test_impossible_combinations():
    X, y = load_iris(return_X_y=True)
    forest = RandomForestClassifier(5, random_state=0).fit(X, y)
    with pytest.raises(TypeError, match="a forest, but got DecisionTreeClassifier"):
        proximity(DecisionTreeClassifier().fit(X, y), X)
    for stranger in (BaggingClassifier(n_estimators=2), GradientBoostingClassifier(n_estimators=2)):
        with pytest.raises(TypeError, match=f"a forest, but got {type(stranger).__name__}"):
            proximity(stranger.fit(X, y), X)
    with pytest.raises(NotFittedError):
        proximity(RandomForestClassifier(), X)
    with pytest.raises(ValueError, match="pairs must be one of"):
        proximity(forest, X, pairs="some")
    for pairs in ("out_of_bag", "gap"):
        with pytest.raises(ValueError, match="only rows of the training table"):
            proximity(forest, X, X, pairs=pairs)
        with pytest.raises(ValueError, match="149 rows, but the forest was fitted on 150"):
            proximity(forest, X[1:], pairs=pairs)
        with pytest.raises(ValueError, match=r"X is not the table .* or use pairs='all'"):
            outlier_scores(forest, X[::-1], pairs=pairs)
        with pytest.raises(ValueError, match="bootstrap=False"):
            proximity(ExtraTreesClassifier(2).fit(X, y), X, pairs=pairs)
    for k in (0, 150, 2.5, "2", None, True):
        with pytest.raises(ValueError, match="between 1 and 149"):
            nearest_rows(forest, X, k)
    with pytest.raises(ValueError, match="X is one row, which is not its own neighbour"):
        nearest_rows(forest, X[:1], 1)
    assert nearest_rows(forest, X[:1], 1, X[:1])[1].tolist() == [[0]]
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        outlier_scores(forest, X, y[1:])
    with pytest.raises(ValueError, match="y must hold classes, but holds numbers with fractions"):
        outlier_scores(forest, X, X[:, 0])
    outlier_scores(forest, X, y.astype(float))
    named = np.array(["a", "b", "c"], object)[y]
    for missing in (None, np.nan):
        with pytest.raises(ValueError, match=r"y has missing values in 50 row|contains NaN"):
            outlier_scores(forest, X, np.where(y == 1, missing, named))
    with pytest.raises(ValueError, match=r"y has missing values in 50 row"):
        outlier_scores(forest, X, np.ma.masked_equal(y, 1))
