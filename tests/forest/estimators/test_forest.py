"""What a forest promises beyond the trees themselves."""

import pickle
import warnings
from types import SimpleNamespace

import joblib
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.ensemble import RandomForestClassifier as PeerClassifier
from sklearn.ensemble import RandomForestRegressor as PeerRegressor
from sklearn.exceptions import NotFittedError
from sklearn.metrics import balanced_accuracy_score, mean_absolute_error

from cart import DecisionTreeClassifier
from forest import RandomForestClassifier, RandomForestRegressor, proximity
from forest.growing import thread_pool as grow
from forest.growing.thread_pool import _WorkQueue
from forest.inference.training_rows import bootstrap_of
from tests.oracles import forests as oracle

FORESTS = [
    (RandomForestClassifier, PeerClassifier, load_breast_cancer),
    (RandomForestRegressor, PeerRegressor, load_diabetes),
]
EACH_FOREST = pytest.mark.parametrize(
    ("ours", "peer", "load"), FORESTS, ids=["classifier", "regressor"]
)


def out_of_bag_attribute(forest):
    return getattr(forest, "oob_decision_function_", getattr(forest, "oob_prediction_", None))


def outputs(forest, X):
    return forest.predict_proba(X) if hasattr(forest, "classes_") else forest.predict(X)


@EACH_FOREST
@pytest.mark.parametrize(
    "params",
    [{}, {"max_samples": 0.4}, {"max_samples": 60}, {"bootstrap": False, "max_features": 3}],
    ids=str,
)
def test_draws_and_seeds_are_scikit_learns(ours, peer, load, params):
    X, y = load(return_X_y=True)
    a = ours(12, random_state=3, **params).fit(X, y)
    b = peer(12, random_state=3, **params).fit(X, y)
    for mine, theirs in zip(a.estimators_samples_, b.estimators_samples_, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert [t.random_state for t in a.estimators_] == [t.random_state for t in b.estimators_]
    np.testing.assert_array_equal(a.apply(X), b.apply(X))
    np.testing.assert_array_equal(outputs(a, X), outputs(b, X))


def test_weights_draw_rows_as_in_scikit_learn():
    X, y = load_breast_cancer(return_X_y=True)
    weight = np.random.RandomState(0).uniform(0.1, 3, len(y))
    for params in ({}, {"class_weight": "balanced"}, {"class_weight": {0: 1, 1: 5}}):
        a = RandomForestClassifier(8, random_state=1, **params).fit(X, y, weight)
        b = PeerClassifier(8, random_state=1, **params).fit(X, y, weight)
        for mine, theirs in zip(a.estimators_samples_, b.estimators_samples_, strict=True):
            np.testing.assert_array_equal(mine, theirs)
        np.testing.assert_array_equal(a.predict_proba(X), b.predict_proba(X))


@EACH_FOREST
def test_out_of_bag_predictions_are_those_of_the_plain_loop(ours, peer, load):
    X, y = load(return_X_y=True)
    forest = ours(30, random_state=0, oob_score=True, max_depth=6).fit(X, y)
    trees = [tree.tree_ for tree in forest.estimators_]
    expected = oracle.out_of_bag_values(trees, forest.estimators_samples_, X)
    if not hasattr(forest, "classes_"):
        expected = expected[:, 0]
    np.testing.assert_allclose(out_of_bag_attribute(forest), expected, rtol=1e-12)


@EACH_FOREST
def test_out_of_bag_scores_are_scikit_learns_when_every_row_was_out_of_bag(ours, peer, load):
    X, y = load(return_X_y=True)
    a = ours(60, random_state=0, oob_score=True).fit(X, y)
    b = peer(60, random_state=0, oob_score=True).fit(X, y)
    np.testing.assert_allclose(out_of_bag_attribute(a), out_of_bag_attribute(b), rtol=1e-12)
    assert a.oob_score_ == pytest.approx(b.oob_score_, abs=1e-12)
    metric = balanced_accuracy_score if hasattr(a, "classes_") else mean_absolute_error
    a.set_params(oob_score=metric).fit(X, y)
    b.set_params(oob_score=metric).fit(X, y)
    assert a.oob_score_ == pytest.approx(b.oob_score_, abs=1e-12)


@EACH_FOREST
def test_rows_never_out_of_bag_are_nan_and_not_scored(ours, peer, load):
    X, y = load(return_X_y=True)
    forest = ours(2, random_state=0, oob_score=True)
    with pytest.warns(UserWarning, match="never out of bag") as caught:
        forest.fit(X, y)
    in_bag = [set(draws) for draws in forest.estimators_samples_]
    never = np.array([all(i in drawn for drawn in in_bag) for i in range(len(y))])
    assert 0 < never.sum() < len(y)
    assert any(f"{never.sum()} of {len(y)} rows" in str(w.message) for w in caught)
    values = out_of_bag_attribute(forest).reshape(len(y), -1)
    np.testing.assert_array_equal(np.isnan(values).all(axis=1), never)
    scored = values[~never]
    if hasattr(forest, "classes_"):
        expected = (forest.classes_[scored.argmax(axis=1)] == y[~never]).mean()
    else:
        rest = y[~never] - scored[:, 0]
        expected = 1 - (rest**2).sum() / ((y[~never] - y[~never].mean()) ** 2).sum()
    assert forest.oob_score_ == pytest.approx(expected, abs=1e-12)


@given(seed=st.integers(0, 1000), n=st.integers(2, 60), max_samples=st.floats(0.1, 1.5))
def test_every_row_is_in_bag_or_out_of_bag_for_each_tree(seed, n, max_samples):
    rng = np.random.RandomState(seed)
    X, y = rng.normal(size=(n, 3)), rng.normal(size=n)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        forest = RandomForestRegressor(3, random_state=seed, max_samples=max_samples).fit(X, y)
    bootstrap = bootstrap_of(forest)
    for t, draws in enumerate(forest.estimators_samples_):
        counts, left_out = bootstrap.counts(t), bootstrap.out_of_bag(t)
        assert counts.sum() == len(draws) == max(1, int(max_samples * n))
        assert sorted([*np.unique(draws), *left_out]) == list(range(n))
        assert forest.estimators_[t].tree_.weighted_n_node_samples[0] == len(draws)
        assert forest.estimators_[t].tree_.n_node_samples[0] == n - len(left_out)


def test_a_metric_of_out_of_bag_rows_sees_two_arrays_alike():
    X, y = load_iris(return_X_y=True)

    def share_right(y_true, y_pred):
        assert y_true.shape == y_pred.shape
        assert y_true.dtype == y_pred.dtype
        return np.mean(y_true == y_pred)

    forest = RandomForestClassifier(30, oob_score=share_right, random_state=0).fit(X, y)
    assert forest.oob_score_ == forest.set_params(oob_score=True).fit(X, y).oob_score_
    numbers = RandomForestRegressor(30, oob_score=share_right, random_state=0).fit(X, y * 1.0)
    assert numbers.oob_score_ < 1.0


@pytest.mark.parametrize(("n_trees", "n_workers"), [(1, 2), (10, 1), (100, 3), (101, 8)])
def test_every_tree_is_handed_out_once(n_trees, n_workers):
    """And to none of several workers more than half of its share of what is left."""
    queue, taken = _WorkQueue(n_trees, n_workers, None), []
    while numbers := queue.take(12):
        share = np.ceil((n_trees - len(taken)) / (2 * n_workers)) if n_workers > 1 else 12
        assert len(numbers) <= min(share, 12)
        taken += numbers
    assert taken == list(range(n_trees))
    queue = _WorkQueue(n_trees, n_workers, None)
    queue.close()
    assert queue.take(12) == []


def test_a_tree_that_is_finished_after_an_interrupt_is_told_to_nobody():
    steps = []
    reporter = SimpleNamespace(step=lambda: steps.append(None), is_stopped=False)
    queue = _WorkQueue(2, 2, reporter)
    queue.leave(0, "a tree")
    queue.close()
    queue.leave(1, "another")
    assert queue.trees == ["a tree", None]
    assert len(steps) == 1


def test_a_small_forest_starts_no_thread(monkeypatch):
    started, start = [], grow.in_threads
    monkeypatch.setattr(grow, "in_threads", lambda *job: started.append(job[1]) or start(*job))
    forest, rows = RandomForestClassifier(10, n_jobs=2), load_iris(return_X_y=True)
    forest.fit(*rows)
    assert started == [2]
    monkeypatch.setattr(grow, "_WORK_PER_THREAD", 400_000)
    forest.fit(*rows)
    assert started == [2]


@EACH_FOREST
@pytest.mark.parametrize("n_jobs", [2, 4])
def test_the_model_does_not_depend_on_n_jobs(ours, peer, load, n_jobs):
    X, y = load(return_X_y=True)
    X = np.tile(X, (6, 1)) + np.random.RandomState(0).normal(scale=1e-3, size=(6 * len(X), 1))
    y = np.tile(y, 6)
    alone = ours(30, random_state=0, oob_score=True).fit(X, y)
    many = ours(30, random_state=0, oob_score=True, n_jobs=n_jobs).fit(X, y)
    np.testing.assert_array_equal(outputs(alone, X), outputs(many, X))
    np.testing.assert_array_equal(out_of_bag_attribute(alone), out_of_bag_attribute(many))
    np.testing.assert_array_equal(alone.feature_importances_, many.feature_importances_)
    np.testing.assert_array_equal(alone.apply(X), many.apply(X))


@EACH_FOREST
def test_a_warm_start_is_one_fit(ours, peer, load):
    X, y = load(return_X_y=True)
    once = ours(20, random_state=5, oob_score=True).fit(X, y)
    grown = ours(8, random_state=5, warm_start=True, oob_score=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        grown.fit(X, y)
    first = grown.estimators_[0]
    grown.set_params(n_estimators=20).fit(X, y)
    assert grown.estimators_[0] is first
    np.testing.assert_array_equal(outputs(once, X), outputs(grown, X))
    assert grown.oob_score_ == once.oob_score_
    with pytest.warns(UserWarning, match="does not fit new trees"):
        grown.fit(X, y)
    with pytest.raises(ValueError, match="n_estimators=3 must be at least"):
        grown.set_params(n_estimators=3).fit(X, y)


@EACH_FOREST
@pytest.mark.parametrize("other", [0, 1])
def test_a_warm_start_of_joined_forests_is_scikit_learns(ours, peer, load, other):
    """Its seeds, too: an interrupt leaves trees of one stream alone, and none of them twice."""
    X, y = load(return_X_y=True)
    seeds = []
    for kind in (ours, peer):
        forest = kind(3, random_state=0, warm_start=True).fit(X, y)
        forest.estimators_ += kind(2, random_state=other).fit(X, y).estimators_
        forest.set_params(n_estimators=8).fit(X, y)
        seeds.append([tree.random_state for tree in forest.estimators_])
    assert seeds[0] == seeds[1]


def test_a_warm_start_refuses_another_table():
    X, y = load_iris(return_X_y=True)
    forest = RandomForestClassifier(2, warm_start=True).fit(X, y)
    forest.set_params(n_estimators=4)
    with pytest.raises(ValueError, match="4 features"):
        forest.fit(X[:, :2], y)
    with pytest.raises(ValueError, match="2 classes"):
        forest.fit(X[y < 2], y[y < 2])
    for labels in (y + 1, np.array(["a", "b", "c"])[y]):  # what the kept trees say means others
        with pytest.raises(ValueError, match=r"has the classes .* warm_start=True have \[0 1 2\]"):
            forest.fit(X, labels)
    both = RandomForestClassifier(2, warm_start=True).fit(X, np.c_[y, y]).set_params(n_estimators=3)
    with pytest.raises(ValueError, match=r"\[1 2 3\], .* have \[0 1 2\]"):
        both.fit(X, np.c_[y, y + 1])
    assert forest.predict(X).shape == y.shape
    assert forest.fit(X, y.astype(float)).classes_.dtype == float  # the same labels


def other_tables_and_draws(n):
    order, few = np.random.default_rng(0).permutation(n), np.arange(n // 2)
    likely = {"sample_weight": np.linspace(0.1, 1.0, n)}
    return [
        ({}, order, {}), ({}, few, {}), ({"max_samples": 0.3}, ..., {}),
        ({"replace": False}, ..., {}), ({"bootstrap_draw": "keyed"}, ..., {}), ({}, ..., likely),
        ({}, ..., {"groups": np.arange(n) // 2}), ({}, ..., {"in_bag": np.ones((8, n), int)}),
    ]  # fmt: skip


@EACH_FOREST
@pytest.mark.parametrize("judge", [{"oob_score": True}, {"voting": "oob_weighted"}], ids=str)
def test_a_warm_start_judges_no_kept_tree_on_rows_that_it_may_have_seen(ours, peer, load, judge):
    X, y = load(return_X_y=True)
    for params, rows, given_to_fit in other_tables_and_draws(len(y)):
        forest = ours(4, random_state=0, warm_start=True).fit(X, y).set_params(n_estimators=8)
        forest.set_params(**params, **judge)
        with pytest.raises(ValueError, match="out-of-bag rows are unknown"):
            forest.fit(X[rows], y[rows], **given_to_fit)
        forest.set_params(oob_score=False, voting="soft").fit(X[rows], y[rows], **given_to_fit)
        with pytest.raises(ValueError, match="several ways"):
            forest.out_of_bag(X[rows], y[rows])
        with pytest.raises(ValueError, match="several ways"):
            proximity(forest, X[rows], pairs="gap")


@EACH_FOREST
def test_a_fit_takes_what_the_fit_before_found_out_of_bag_away(ours, peer, load):
    """A score and weights of other trees, on other rows; the deviations name scikit-learn's."""
    X, y = load(return_X_y=True)
    forest = ours(20, random_state=0, oob_score=True, voting="oob_weighted").fit(X, y)
    forest.set_params(oob_score=False, voting="soft").fit(X[::2], y[::2])
    assert not hasattr(forest, "oob_score_")
    assert out_of_bag_attribute(forest) is None
    with pytest.raises(NotFittedError, match="was set after the fit"):
        forest.set_params(voting="oob_weighted").predict(X)
    forest = ours(20, random_state=0, oob_score=True, warm_start=True).fit(X, y)
    forest.set_params(oob_score=False, n_estimators=30).fit(X, y).set_params(oob_score=True)
    with pytest.warns(UserWarning, match="does not fit new trees"):
        forest.fit(X, y)
    assert forest.oob_score_ == ours(30, random_state=0, oob_score=True).fit(X, y).oob_score_


def test_a_warm_start_goes_on_with_the_counts_that_are_given():
    X, y = load_iris(return_X_y=True)
    counts = np.random.default_rng(0).poisson(1.0, (40, len(y)))
    forest = RandomForestClassifier(20, random_state=0, warm_start=True)
    forest.fit(X, y, in_bag=counts[:20]).set_params(n_estimators=40, oob_score=True)
    with pytest.raises(ValueError, match="out-of-bag rows are unknown"):
        forest.fit(X, y, in_bag=counts[::-1])
    with pytest.raises(ValueError, match="out-of-bag rows are unknown"):
        forest.fit(X, y)
    forest.fit(X, y, in_bag=counts)
    assert forest.oob_score_ == 1.0 - forest.out_of_bag(X, y).loss


@EACH_FOREST
def test_decision_path_and_leaves_are_scikit_learns(ours, peer, load):
    X, y = load(return_X_y=True)
    a, b = ours(4, random_state=0).fit(X, y), peer(4, random_state=0).fit(X, y)
    mine, my_starts = a.decision_path(X[:20])
    theirs, their_starts = b.decision_path(X[:20])
    np.testing.assert_array_equal(my_starts, their_starts)
    np.testing.assert_array_equal(mine.toarray(), theirs.toarray())
    np.testing.assert_allclose(a.feature_importances_, b.feature_importances_, rtol=1e-12)


@EACH_FOREST
def test_pickle_and_clone(ours, peer, load):
    X, y = load(return_X_y=True)
    forest = ours(5, random_state=0).fit(X, y)
    before = outputs(forest, X)
    again = pickle.loads(pickle.dumps(forest))
    np.testing.assert_array_equal(outputs(again, X), before)
    with pytest.raises(NotFittedError):
        clone(forest).predict(X)


def test_trees_taken_away_do_not_vote():
    X, y = load_iris(return_X_y=True)
    forest = RandomForestClassifier(6, random_state=0).fit(X, y)
    forest.predict(X)
    forest.estimators_ = forest.estimators_[:2]
    expected = np.mean([tree.predict_proba(X) for tree in forest.estimators_], axis=0)
    np.testing.assert_array_equal(forest.predict_proba(X), expected)


@pytest.mark.parametrize("model", [DecisionTreeClassifier(), RandomForestClassifier(3)], ids=repr)
@pytest.mark.parametrize("failure", [KeyboardInterrupt, MemoryError])
def test_an_interrupted_fit_leaves_the_old_model(model, failure, monkeypatch):
    X, y = load_iris(return_X_y=True)
    model.set_params(random_state=0).fit(X, y)
    before = model.predict_proba(X)

    def stop(*args, **kwargs):
        raise failure

    monkeypatch.setattr("cart.estimators.grower.Grower.grow", stop)
    with pytest.raises(failure):
        model.fit(X[:, :2], y == 1)
    monkeypatch.undo()
    np.testing.assert_array_equal(model.predict_proba(X), before)
    assert model.fit(X[:, :2], y == 1).predict(X[:, :2]).dtype == bool


def test_contradictions_are_refused():
    X, y = load_iris(return_X_y=True)
    for params, words in (
        ({"bootstrap": False, "oob_score": True}, "bootstrap=True"),
        ({"bootstrap": False, "max_samples": 0.5}, "bootstrap=True"),
    ):
        with pytest.raises(ValueError, match=words):
            RandomForestClassifier(**params).fit(X, y)
    with pytest.raises(ValueError, match="at least one non-zero"):
        RandomForestClassifier(2).fit(X, y, np.zeros(len(y)))
    for model in (RandomForestClassifier, DecisionTreeClassifier):
        with pytest.raises(ValueError, match="weight 0"):
            model(class_weight=dict.fromkeys(range(3), 0)).fit(X, y)
    with pytest.warns(UserWarning, match=r"low number \(1\)"):
        RandomForestClassifier(2, max_samples=0.01).fit(X, y)


@pytest.mark.parametrize("n_features", [3, 20])
def test_many_rows_are_predicted_as_few_are(n_features):
    """Rows are walked in blocks; where one ends, no row may count twice."""
    rng = np.random.RandomState(0)
    X = rng.normal(size=(1 << 18, n_features)).astype(np.float32)[
        : 40_000 if n_features > 3 else None
    ]
    y = X[:, 0] + X[:, 1]
    forest = RandomForestRegressor(3, max_depth=4, random_state=0).fit(X[:500], y[:500])
    some = np.concatenate(
        [forest.predict(X[first : first + 1000]) for first in range(0, len(X), 1000)]
    )
    for n_jobs in (1, 2, 4):
        np.testing.assert_array_equal(forest.set_params(n_jobs=n_jobs).predict(X), some)
    trees = [tree.predict(X) for tree in forest.estimators_]
    np.testing.assert_allclose(some, np.mean(trees, axis=0), rtol=1e-12)


def test_many_rows_out_of_bag():
    """The same out of bag: against a plain sum over trees."""
    rng = np.random.RandomState(0)
    X = rng.normal(size=(60_000, 20)).astype(np.float32)
    y = X[:, 0] + rng.normal(size=len(X))
    forest = RandomForestRegressor(4, max_depth=4, random_state=0, oob_score=True, max_features=0.3)
    with pytest.warns(UserWarning, match="never out of bag"):
        forest.fit(X, y)
    total, count = np.zeros(len(X)), np.zeros(len(X))
    for tree, draws in zip(forest.estimators_, forest.estimators_samples_, strict=True):
        out = np.setdiff1d(np.arange(len(X)), draws)
        total[out] += tree.predict(X[out])
        count[out] += 1
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(forest.oob_prediction_, total / count, rtol=1e-12)


@EACH_FOREST
def test_an_unpickled_forest_has_the_hash_of_the_first(ours, peer, load):
    """So that joblib's Memory knows what it is called with."""
    X, y = load(return_X_y=True)
    for kind in (ours, peer):
        forest = kind(4, random_state=0).fit(X, y)
        assert joblib.hash(pickle.loads(pickle.dumps(forest))) == joblib.hash(forest)
