"""Forests with the book's parameters together: surrogates, priors and losses, however rows are
drawn; the same for every n_jobs, by warm starts, and after a trip through files."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import SGDClassifier

from cart import DecisionTreeClassifier, load
from cart.estimators.class_costs import class_factors
from forest import (
    BaggingClassifier,
    ExtraTreesClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from importance.core.fitted_forest import check_forest

PRIORS, LOSS = [0.2, 0.5, 0.3], [[0, 1, 4], [2, 0, 1], [3, 3, 0]]
BOOK = {"surrogates": 3, "missing": "surrogate", "competitors": 1, "random_state": 0}
COSTS = {"priors": PRIORS, "loss": LOSS}


def table(n=120, share=0.15):
    """Three classes, five columns of which the second follows the first, some cells missing."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 5)).astype(np.float32)
    X[:, 1] = X[:, 0] + 0.4 * X[:, 1]
    y = np.digitize(X[:, 0] + X[:, 2] + 0.5 * rng.normal(size=n), [-0.4, 1.2])
    X[rng.random(X.shape) < share] = np.nan
    return X, y


def factor_of(y, **costs):
    loss = costs.get("loss")
    loss = None if loss is None else np.array(loss, float)
    priors = costs.get("priors")
    priors = None if priors is None else np.array(priors)
    return class_factors(None, y.astype(float), priors, loss, 3)


def require_same_trees(one, other):
    assert len(one) == len(other)
    for ours, theirs in zip(one, other, strict=True):
        for name in ("feature", "threshold", "missing_go_to_left", "value", "impurity"):
            first, second = getattr(ours.tree_, name), getattr(theirs.tree_, name)
            np.testing.assert_array_equal(first, second)
        for name in ("surrogates", "competitors"):
            kept = getattr(ours.tree_, name), getattr(theirs.tree_, name)
            for first, second in zip(*kept, strict=True):
                np.testing.assert_array_equal(first, second)


def test_priors_and_losses_weigh_rows_that_are_given():
    """With in_bag= each tree is one that is grown alone on these rows, its altered priors those
    that the table's classes have in the bag."""
    X, y = table(300)
    in_bag = np.random.default_rng(1).integers(0, 3, (4, len(y)))
    limits = {"min_samples_leaf": 12, "max_depth": 3}  # in small nodes cuts tie but for rounding
    model = RandomForestClassifier(4, **BOOK, **COSTS, **limits, max_features=None)
    model.fit(X, y, in_bag=in_bag)
    factor = factor_of(y, **COSTS)
    for counts, estimator in zip(in_bag, model.estimators_, strict=True):
        weight = factor * np.bincount(y, counts)
        alone = DecisionTreeClassifier(
            **{**BOOK, "random_state": estimator.random_state}, **limits,
            priors=weight / weight.sum(),
        ).fit(X, y, counts)  # fmt: skip
        ours, theirs = estimator.tree_, alone.tree_
        np.testing.assert_array_equal(ours.feature, theirs.feature)
        np.testing.assert_array_equal(ours.threshold, theirs.threshold)
        np.testing.assert_allclose(ours.value, theirs.value, rtol=1e-9)
        np.testing.assert_array_equal(ours.surrogates.feature, theirs.surrogates.feature)
        np.testing.assert_allclose(ours.surrogates.agree, theirs.surrogates.agree, rtol=1e-12)
        assert ours.weighted_n_node_samples[0] == pytest.approx(weight.sum())


DRAWS = {
    "given": ({}, {"in_bag": np.random.default_rng(2).integers(0, 3, (3, 120))}),
    "groups": ({}, {"groups": np.arange(120) // 4}),
    "strata": ({"stratify": True}, {}),
    "keyed": ({"bootstrap_draw": "keyed"}, {}),
    "none": ({"bootstrap": False}, {}),
    "by weight": ({}, {}),
}


@pytest.mark.parametrize("how", DRAWS)
@pytest.mark.parametrize("kind", [RandomForestClassifier, ExtraTreesClassifier])
def test_priors_count_however_rows_are_drawn(how, kind):
    """In the trees' weights, or in the draws: of the root's shares, and of all importances ask."""
    X, y = table(share=0.0)
    params, given = DRAWS[how]
    model = kind(3, **{"bootstrap": True, **params}, priors=PRIORS, surrogates=2, random_state=0)
    model.fit(X, y, **given)
    factor = np.ones(3) if how == "by weight" else factor_of(y, priors=PRIORS)
    fitted = check_forest(model, X, y, out_of_bag=False)
    for t, (estimator, drawn) in enumerate(
        zip(model.estimators_, model.estimators_samples_, strict=True)
    ):
        weight = np.bincount(drawn, minlength=len(y)) * factor[y]
        shares = np.bincount(y, weight) / weight.sum()
        np.testing.assert_allclose(estimator.tree_.value[0, 0], shares, rtol=1e-12)
        np.testing.assert_allclose(fitted.weight_in_tree(t), weight, rtol=1e-12)
    mean = np.mean([estimator.tree_.value[0, 0] for estimator in model.estimators_], axis=0)
    np.testing.assert_allclose(mean, PRIORS, atol=0.1)


@pytest.mark.parametrize("how", ["groups", "by weight"])
def test_agreement_is_counted_without_priors(how):
    """Rows that priors draw more often, or weigh more, count less as much."""
    X, y = table(share=0.0)
    model = RandomForestClassifier(
        3, priors=[0.7, 0.2, 0.1], surrogates=4, max_depth=1, random_state=0
    ).fit(X, y, **DRAWS[how][1])
    factor = factor_of(y, priors=[0.7, 0.2, 0.1])
    for estimator, drawn in zip(model.estimators_, model.estimators_samples_, strict=True):
        weight = np.bincount(drawn, minlength=len(y)) / (factor[y] if how == "by weight" else 1.0)
        tree = estimator.tree_
        goes_left = X[:, tree.feature[0]] <= tree.threshold[0]
        assert len(tree.surrogates.of(0)) > 0
        for split in tree.surrogates.of(0):
            agrees = ((X[:, split.feature] <= split.threshold) == split.low_left) == goes_left
            assert split.agree == pytest.approx(weight[agrees].sum() / weight.sum(), rel=1e-9)


@pytest.mark.parametrize("how", ["given", "by weight"])
def test_the_forest_does_not_depend_on_n_jobs(how):
    X, y = table()
    fits = [
        RandomForestClassifier(3, **BOOK, **COSTS, n_jobs=n_jobs).fit(X, y, **DRAWS[how][1])
        for n_jobs in (1, 2)
    ]
    require_same_trees(*fits)
    np.testing.assert_array_equal(fits[0].predict_proba(X), fits[1].predict_proba(X))


@pytest.mark.parametrize("how", ["groups", "keyed", "by weight"])
def test_a_warm_start_grows_what_one_fit_would(how):
    X, y = table()
    params, given = DRAWS[how]
    whole = RandomForestClassifier(5, **BOOK, **COSTS, **params).fit(X, y, **given)
    warm = RandomForestClassifier(2, **BOOK, **COSTS, **params, warm_start=True).fit(X, y, **given)
    require_same_trees(whole, warm.set_params(n_estimators=5).fit(X, y, **given))
    np.testing.assert_array_equal(whole.predict_proba(X), warm.predict_proba(X))


@pytest.mark.parametrize(("first", "then"), [(None, LOSS), (LOSS, None)])
def test_a_warm_start_keeps_its_loss(first, then):
    """Votes under other priors cannot be led back by one loss."""
    X, y = table()
    model = RandomForestClassifier(2, loss=first, warm_start=True, random_state=0).fit(X, y)
    shares = model.predict_proba(X)
    with pytest.raises(ValueError, match="have another loss; set it as it was"):
        model.set_params(n_estimators=4, loss=then).fit(X, y)
    np.testing.assert_array_equal(model.predict_proba(X), shares)


def test_clones_files_and_pickles_are_the_same_forest(tmp_path):
    """And go on as it would: draws and what classes weigh are kept."""
    X, y = table()
    given = DRAWS["groups"][1]
    model = RandomForestClassifier(3, **BOOK, **COSTS, warm_start=True).fit(X, y, **given)
    again = clone(model)
    assert again.get_params() == model.get_params()
    require_same_trees(model, again.fit(X, y, **given))
    model.save(tmp_path / "model")
    for kept in (load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        require_same_trees(model, kept)
        np.testing.assert_array_equal(model.predict_proba(X), kept.predict_proba(X))
        np.testing.assert_array_equal(model._class_factor, kept._class_factor)
        kept.set_params(n_estimators=4).fit(X, y, **given)
        require_same_trees(model.estimators_, kept.estimators_[:3])


def test_regression_forests_go_on_with_surrogates_too():
    X, y = table()
    whole = RandomForestRegressor(4, **BOOK, n_jobs=2).fit(X, y)
    warm = RandomForestRegressor(2, **BOOK, warm_start=True, n_jobs=1).fit(X, y)
    require_same_trees(whole, warm.set_params(n_estimators=4).fit(X, y))


def test_bagging_says_that_costs_of_its_trees_do_not_count_in_the_prediction():
    X, y = table(share=0.0)
    tree = DecisionTreeClassifier(loss=LOSS, min_samples_leaf=10)
    with pytest.warns(UserWarning, match="but not the prediction"):
        model = BaggingClassifier(tree, n_estimators=5, random_state=0).fit(X, y)
    shares = model.predict_proba(X)
    np.testing.assert_array_equal(model.predict(X), shares.argmax(axis=1))


def test_bagging_says_nothing_of_the_loss_of_others():
    X, y = table(share=0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        BaggingClassifier(SGDClassifier(loss="log_loss"), n_estimators=2).fit(X, y)
