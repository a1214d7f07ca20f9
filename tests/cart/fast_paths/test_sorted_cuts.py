"""Trees grown on the sorted rows of their surrogates are those grown without, to the bit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cart.estimators.grower as grower
from cart import DecisionTreeClassifier
from cart.estimators.preparation import prepare
from forest import RandomForestClassifier
from tests.agreement.same import trees_of
from tests.examples import examples


def table(seed, n, n_levels):
    """Two classes, six columns of which one is constant; few levels make ties."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6))
    if n_levels:
        X = np.floor(X * n_levels / 4.0)
    X[:, 4] = 1.0
    X[:, 1] = X[:, 0] + np.floor(X[:, 1])
    y = (X[:, 0] + X[:, 2] + rng.normal(size=n) > 0).astype(int)
    y[:2] = 0, 1
    return X, y, rng


def require_same(one, other):
    for ours, theirs in zip(trees_of(one), trees_of(other), strict=True):
        for name in ours.nodes._fields:
            first, second = getattr(ours, name), getattr(theirs, name)
            np.testing.assert_array_equal(first, second, err_msg=name)
        for kind in ("surrogates", "competitors"):
            kept = getattr(ours, kind), getattr(theirs, kind)
            assert (kept[0] is None) == (kept[1] is None)
            for first, second in zip(*(each or () for each in kept), strict=True):
                np.testing.assert_array_equal(first, second)


def both(model, X, y, weight=None):
    """The model fitted on the path of sorted rows, which is asserted, and without it."""
    grown, path = [], grower.SortedCountsPath
    with pytest.MonkeyPatch.context() as patch:
        grow = path._grow
        patch.setattr(path, "_grow", lambda self, *a: (grown.append(1), grow(self, *a))[1])
        one = type(model)(**model.get_params()).fit(X, y, sample_weight=weight)
        n_grown = len(grown)
        patch.setattr(path, "fits", lambda *args: False)
        other = type(model)(**model.get_params()).fit(X, y, sample_weight=weight)
        assert len(grown) == n_grown
    return one, other, n_grown


@examples(60)
@given(
    st.integers(0, 10**6), st.sampled_from([2, 9, 40, 300]), st.sampled_from([0, 3, 20]),
    st.fixed_dictionaries({
        "missing": st.sampled_from(["learned", "majority", "surrogate"]),
        "surrogates": st.sampled_from([1, 4]),
        "competitors": st.sampled_from([0, 2]),
        "surrogate_features": st.sampled_from(["all", "drawn"]),
        "surrogate_style": st.sampled_from(["all", "known"]),
        "feature_draw": st.sampled_from(["sequence", "keyed"]),
        "max_features": st.sampled_from([None, 1, 3]),
        "min_samples_leaf": st.sampled_from([1, 2, 7]),
        "max_depth": st.sampled_from([None, 1, 4]),
        "min_impurity_decrease": st.sampled_from([0.0, 0.01]),
    }),
    st.booleans(),
)  # fmt: skip
def test_trees_and_surrogates_are_the_same(seed, n, n_levels, params, is_weighted):
    X, y, rng = table(seed, n, n_levels)
    weight = rng.integers(seed % 2, 4, n).astype(float) if is_weighted else None
    if is_weighted:
        weight[:2] = 1.0, 2.0
    model = DecisionTreeClassifier(random_state=seed % 1000, **params)
    one, other, n_grown = both(model, X, y, weight)
    assert n_grown == 1
    require_same(one, other)


@pytest.mark.parametrize("max_features", ["sqrt", None])
def test_forests_are_the_same(max_features):
    X, y, _ = table(0, 200, 0)
    model = RandomForestClassifier(
        5, max_features=max_features, surrogates=3, missing="surrogate", random_state=0, n_jobs=2
    )
    one, other, n_grown = both(model, X, y)
    assert n_grown == 5
    require_same(one, other)
    X[::7, 0] = np.nan
    np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(X))


@pytest.mark.parametrize(
    "changed",
    [
        {"criterion": "entropy"}, {"ccp_alpha": 0.01}, {"max_leaf_nodes": 5},
        {"min_weight_fraction_leaf": 0.1}, {"monotonic_cst": [1, 0, 0, 0, 0, 0]},
    ],
    ids=str,
)  # fmt: skip
def test_what_the_path_does_not_know_goes_elsewhere(changed):
    X, y, _ = table(0, 100, 0)
    model = DecisionTreeClassifier(surrogates=2, random_state=0)
    assert grower.SortedCountsPath.knows(prepare(model, X, y, None, "best").plan)
    model.set_params(**changed)
    assert not grower.SortedCountsPath.knows(prepare(model, X, y, None, "best").plan)


def test_so_do_heavy_rows_and_missing_values():
    X, y, _ = table(0, 100, 0)
    model = DecisionTreeClassifier(surrogates=2, random_state=0)
    for weight in (np.full(100, 16.0), np.full(100, 0.5)):
        assert both(model, X, y, weight)[2] == 0
    assert both(model, X, y, np.full(100, 15.0))[2] == 1
    X[3, 2] = np.nan
    assert both(model, X, y)[2] == 0
    assert both(model, X, np.where(y == 1, 2, np.arange(100) % 2))[2] == 0


@pytest.mark.parametrize(
    ("weights", "shares"), [((1.0, 2.0), (16 / 31, 15 / 31)), ((16.0, 1.0), (1 / 31, 30 / 31))]
)
def test_so_do_rows_that_are_heavy_with_priors_or_without(weights, shares):
    """The rare class, one row in 16, weighs 16 in the tree or outside of it, all else 1 or 2."""
    X, _, _ = table(0, 256, 0)
    y = (np.arange(256) % 16 > 0).astype(int)
    model = DecisionTreeClassifier(surrogates=2, priors=shares, random_state=0)
    one, other, n_grown = both(model, X, y, np.array(weights)[y])
    assert n_grown == 0
    require_same(one, other)


def test_a_forest_of_which_the_path_takes_some_trees():
    """One row is drawn 15 times or so: the path takes no tree where it is drawn more often."""
    X, y, _ = table(0, 60, 0)
    weight = np.ones(60)
    weight[0] = 20.0
    model = RandomForestClassifier(20, surrogates=2, random_state=0, n_jobs=1)
    one, other, n_grown = both(model, X, y, weight)
    assert 5 <= n_grown <= 15
    require_same(one, other)
