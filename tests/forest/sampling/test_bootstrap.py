"""Who is in bag: every way to draw, and the draws that are refused."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris

from forest import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from forest.interop.bridge import from_sklearn, to_sklearn
from forest.sampling.bootstrap import Bootstrap

X, Y = load_iris(return_X_y=True)
UNEVEN = np.repeat([0, 1, 2], [7, 30, 63])  # classes of 100 rows


def counts_of(forest, n):
    return np.array([np.bincount(drawn, minlength=n) for drawn in forest.estimators_samples_])


@pytest.mark.parametrize(("max_samples", "n"), [(None, 94), (0.5, 75), (20, 20), (150, 150)])
def test_without_replacement_no_row_is_drawn_twice(max_samples, n):
    forest = RandomForestClassifier(6, replace=False, max_samples=max_samples, random_state=0)
    counts = counts_of(forest.fit(X, Y), len(Y))
    assert counts.max() == 1
    assert (counts.sum(axis=1) == n).all()
    assert n == 150 or len({row.tobytes() for row in counts}) == 6  # another sample per tree


def test_only_scikit_learns_plain_draws_are_uniform():
    one = np.ones(3)
    assert Bootstrap.plain(3, 3).is_uniform
    assert Bootstrap.plain(3, 3).is_plain
    assert Bootstrap.plain(3, 2).is_uniform
    for other in (
        Bootstrap.plain(3, None),
        Bootstrap.plain(3, 2, replace=False),
        Bootstrap.plain(3, 3, one),
        Bootstrap.plain(3, 3, strata=one),
        Bootstrap.plain(3, 3, groups=one),
        Bootstrap.plain(3, 3, given=one[np.newaxis]),
    ):
        assert not other.is_uniform
        assert not other.is_plain
    assert not Bootstrap.plain(3, 2).is_plain


@pytest.mark.parametrize("replace", [True, False])
@given(n_draws=st.integers(3, 100))
def test_strata_keep_their_shares(replace, n_draws):
    forest = RandomForestClassifier(
        2, stratify=True, replace=replace, max_samples=n_draws, max_depth=1, random_state=0
    ).fit(np.arange(100.0)[:, np.newaxis], UNEVEN)
    for counts in counts_of(forest, 100):
        per_class = np.bincount(UNEVEN, weights=counts)
        assert per_class.sum() == n_draws
        assert (abs(per_class - n_draws * np.array([0.07, 0.3, 0.63])) < 1).all()


def test_strata_are_drawn_as_likely_as_the_weights_say():
    weight = np.where(np.arange(100) % 2, 1.0, 0.0)
    forest = RandomForestClassifier(20, stratify=True, random_state=0, max_depth=1)
    counts = counts_of(forest.fit(np.ones((100, 1)), UNEVEN, weight), 100)
    assert not counts[:, ::2].any()
    np.testing.assert_array_equal(np.unique(counts[:, UNEVEN == 0].sum(axis=1)), 7)


def test_class_weights_without_effect_on_strata_are_named():
    """Each class is drawn by its rows, so that weights of classes change no draw."""
    X, y = np.arange(40.0)[:, np.newaxis], np.arange(40) % 4 == 0
    with pytest.warns(UserWarning, match="differ only between classes have no effect"):
        RandomForestClassifier(2, stratify=True, class_weight="balanced").fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        RandomForestClassifier(2, stratify=True, class_weight="balanced_subsample").fit(X, y)
        RandomForestClassifier(2, stratify=True).fit(X, y, sample_weight=1.0 + X[:, 0])


@pytest.mark.parametrize("replace", [True, False])
def test_groups_are_in_bag_together_or_out(replace):
    data, y = load_diabetes(return_X_y=True)
    groups = np.array([f"patient {i % 60}" for i in range(len(y))])
    forest = RandomForestRegressor(8, random_state=0, replace=replace, oob_score=True)
    forest.fit(data, y, groups=groups)
    for counts in counts_of(forest, len(y)):
        per_group = [np.unique(counts[groups == name]) for name in np.unique(groups)]
        assert all(len(each) == 1 for each in per_group)
        drawn = sum(int(each[0]) for each in per_group)
        assert drawn == (60 if replace else int(0.632 * 60))


@pytest.mark.parametrize(
    "groups",
    [
        [1.0, np.nan, 2.0],
        np.array([1, np.nan, 2], object),
        ["a", None, "b"],
        pd.array([1, None, 2], dtype="Int64"),
        pd.Categorical(["a", None, "b"]),
        pd.to_datetime(["2026-01-01", None, "2026-01-02"]),
    ],
    ids=["float", "object", "None", "NA", "category", "NaT"],
)
def test_rows_without_a_group_are_refused(groups):
    """Among objects nan would part the rows of a group."""
    groups = np.asarray(groups)[[0, 1, 2] * 50]
    with pytest.raises(ValueError, match=r"groups has 50 missing value\(s\), first in row 1"):
        RandomForestClassifier(2).fit(X, Y, groups=groups)


def test_groups_that_do_not_sort_are_named():
    groups = np.array([7, "7b", 8] * 50, dtype=object)
    with pytest.raises(ValueError, match=r"cannot be sorted together \(int, str\)"):
        RandomForestClassifier(2).fit(X, Y, groups=groups)


def test_out_of_bag_is_honest_only_by_group():
    """Copies of a row give its noise away unless they stay together."""
    rng = np.random.default_rng(0)
    data = np.repeat(rng.normal(size=(80, 3)), 5, axis=0)
    y = np.repeat(rng.normal(size=80), 5)
    groups = np.repeat(np.arange(80), 5)
    forest = RandomForestRegressor(60, random_state=0, oob_score=True)
    assert forest.fit(data, y).oob_score_ > 0.8
    assert forest.fit(data, y, groups=groups).oob_score_ < 0.1


def test_counts_may_be_given():
    rng = np.random.default_rng(0)
    in_bag = rng.integers(0, 3, (4, len(Y)))
    forest = RandomForestClassifier(4, random_state=0, oob_score=True)
    with pytest.warns(UserWarning, match="never out of bag"):
        forest.fit(X, Y, in_bag=in_bag)
    np.testing.assert_array_equal(counts_of(forest, len(Y)), in_bag)
    for tree, counts in zip(forest.estimators_, in_bag, strict=True):
        assert tree.tree_.weighted_n_node_samples[0] == counts.sum()
        assert tree.tree_.n_node_samples[0] == np.count_nonzero(counts)
    never = in_bag.all(axis=0)
    np.testing.assert_array_equal(np.isnan(forest.oob_decision_function_[:, 0]), never)


def test_given_counts_of_the_plain_draws_give_the_plain_forest():
    plain = RandomForestClassifier(5, random_state=3).fit(X, Y)
    given_counts = RandomForestClassifier(5, random_state=3).fit(
        X, Y, in_bag=counts_of(plain, len(Y))
    )
    np.testing.assert_array_equal(plain.apply(X), given_counts.apply(X))


@pytest.mark.parametrize("fit", [{}, {"groups": np.arange(150) // 3}], ids=["rows", "groups"])
@pytest.mark.parametrize("params", [{}, {"replace": False}], ids=str)
def test_a_warm_start_draws_as_one_fit_does(fit, params):
    once = RandomForestClassifier(9, random_state=2, oob_score=True, **params).fit(X, Y, **fit)
    grown = RandomForestClassifier(4, random_state=2, oob_score=True, warm_start=True, **params)
    with np.testing.suppress_warnings() as quiet:
        quiet.filter(UserWarning)
        grown.fit(X, Y, **fit).set_params(n_estimators=9).fit(X, Y, **fit)
    np.testing.assert_array_equal(counts_of(once, 150), counts_of(grown, 150))
    np.testing.assert_array_equal(once.oob_decision_function_, grown.oob_decision_function_)


def test_a_warm_start_with_given_counts():
    in_bag = np.random.default_rng(0).integers(0, 3, (7, len(Y)))
    once = RandomForestClassifier(7, random_state=2).fit(X, Y, in_bag=in_bag)
    grown = RandomForestClassifier(3, random_state=2, warm_start=True).fit(X, Y, in_bag=in_bag[:3])
    grown.set_params(n_estimators=7).fit(X, Y, in_bag=in_bag)
    np.testing.assert_array_equal(once.apply(X), grown.apply(X))
    np.testing.assert_array_equal(counts_of(grown, len(Y)), in_bag)


REFUSED = {
    "more than can be made": ({"max_samples": 2**40}, {}, "1,099,511,627,776 draws"),
    "more than there are": ({"replace": False, "max_samples": 151}, {}, "replace=True"),
    "weights too few": (
        {"replace": False}, {"sample_weight": np.arange(150) < 50}, "without replacement",
    ),
    "groups too short": ({}, {"groups": np.arange(10)}, "one entry per row"),
    "groups and weights": (
        {}, {"groups": np.arange(150), "sample_weight": np.ones(150)}, "groups are drawn whole",
    ),
    "groups and strata": ({"stratify": True}, {"groups": np.arange(150)}, "groups are drawn whole"),
    "stratum without weight": (
        {"stratify": True}, {"sample_weight": (Y > 0) * 1.0}, "give its rows a weight",
    ),
    "counts of another shape": ({}, {"in_bag": np.ones((3, 150), int)}, "row per tree"),
    "negative counts": ({}, {"in_bag": -np.ones((5, 150), int)}, "whole numbers"),
    "broken counts": ({}, {"in_bag": np.full((5, 150), 0.5)}, "whole numbers"),
    "an empty bag": ({}, {"in_bag": np.zeros((5, 150), int)}, "some row in bag"),
    "counts and draws": (
        {"max_samples": 0.5}, {"in_bag": np.ones((5, 150), int)}, "already sets which rows",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("params", "fit", "message"), REFUSED.values(), ids=REFUSED)
def test_refusals(params, fit, message):
    forest = RandomForestClassifier(5, random_state=0, **params)
    with pytest.raises(ValueError, match=message):
        forest.fit(X, Y, **fit)
    assert not hasattr(forest, "estimators_")


@pytest.mark.parametrize(
    ("params", "fit"),
    [({"replace": False}, {}), ({"stratify": True}, {}), ({}, {"groups": np.arange(150)})],
    ids=["replace", "stratify", "groups"],
)
def test_draws_need_a_bootstrap(params, fit):
    with pytest.raises(ValueError, match="bootstrap=False draws none"):
        ExtraTreesClassifier(5, **params).fit(X, Y, **fit)


@pytest.mark.parametrize(
    ("params", "fit", "message"),
    [
        ({"replace": False}, {}, "draws"),
        ({"stratify": True}, {}, "draws"),
        ({}, {"groups": np.arange(150)}, "draws"),
        ({}, {"in_bag": np.ones((5, 150), int)}, "draws"),
        ({"voting": "majority"}, {}, "voting"),
        ({"voting": "oob_weighted"}, {}, "voting"),
    ],
)
def test_the_bridge_refuses_what_scikit_learn_cannot_repeat(params, fit, message):
    forest = RandomForestClassifier(5, random_state=0, **params).fit(X, Y, **fit)
    with pytest.raises(ValueError, match=message):
        to_sklearn(forest)


@pytest.mark.parametrize("ours", [ExtraTreesRegressor, RandomForestRegressor])
def test_the_bridge_keeps_who_was_out_of_bag(ours):
    data, y = load_breast_cancer(return_X_y=True)
    forest = ours(5, random_state=0, bootstrap=True, max_samples=0.7).fit(data, y)
    back = from_sklearn(to_sklearn(forest))
    np.testing.assert_array_equal(counts_of(back, len(y)), counts_of(forest, len(y)))


def test_a_forest_of_one_draw_a_tree_can_be_kept():
    """What is drawn is checked when a model is loaded: one row is as good as many."""
    model = RandomForestClassifier(3, max_samples=1, random_state=0).fit(X, Y)
    again = pickle.loads(pickle.dumps(model))
    assert [draws.tolist() for draws in again.estimators_samples_] == [
        draws.tolist() for draws in model.estimators_samples_
    ]
    assert all(len(draws) == 1 for draws in again.estimators_samples_)


@pytest.mark.parametrize(("n", "is_low"), [(90, True), (100, False)])
def test_a_share_of_fewer_than_ten_rows_warns(n, is_low):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        RandomForestClassifier(2, max_samples=0.1, random_state=0).fit(X[:n], Y[:n])
    assert is_low == any("low number" in str(w.message) for w in told)
