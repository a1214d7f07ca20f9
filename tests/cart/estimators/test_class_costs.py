"""Priors and losses against what they mean, computed row by row."""

import numpy as np
import pandas as pd
import polars
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cart
from cart import DecisionTreeClassifier, ExtraTreeClassifier
from cart.estimators.class_costs import node_costs
from forest import ExtraTreesClassifier, RandomForestClassifier
from tests.data import load
from tests.examples import examples

LOSS = [[0, 1, 4], [2, 0, 1], [3, 3, 0]]
PRIORS = [0.5, 0.2, 0.3]


class Data:
    """A small table, with priors and losses drawn from a seed."""

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        n, self.n_classes = int(rng.integers(8, 50)), int(rng.integers(2, 5))
        self.X = rng.integers(0, 20, (n, 3)).astype(float)
        self.y = rng.integers(0, self.n_classes, n)
        self.y[: self.n_classes] = np.arange(self.n_classes)
        self.weight = rng.integers(1, 4, n) if rng.random() < 0.5 else np.ones(n)
        self.priors = rng.dirichlet(np.ones(self.n_classes) * 3) if rng.random() < 0.7 else None
        loss = rng.integers(1, 6, (self.n_classes, self.n_classes)) * (1 - np.eye(self.n_classes))
        self.loss = loss if rng.random() < 0.7 or self.priors is None else None
        self.rng = rng

    @property
    def row_weight(self):
        """Weights of the rows under the priors: those of class i sum to priors[i]."""
        total = np.bincount(self.y, self.weight)
        priors = total / total.sum() if self.priors is None else self.priors
        return self.weight * (priors / total)[self.y]

    def fit(self, **params):
        return DecisionTreeClassifier(
            priors=self.priors, loss=self.loss, precision="float64", random_state=0, **params
        ).fit(self.X, self.y, self.weight)


seeds = st.integers(0, 2**32 - 1)


@examples(50)
@given(seeds)
def test_altered_priors_choose_the_split(seed):
    """The decrease of Gini under them, cut by cut."""
    data = Data(seed)
    altered = data.row_weight
    if data.loss is not None:
        altered = altered * data.loss.sum(axis=1)[data.y]
    altered = altered / altered.sum()

    def burden(rows):
        weight = np.bincount(data.y[rows], altered[rows], data.n_classes)
        return weight.sum() - (weight**2).sum() / weight.sum() if rows.any() else 0.0

    best = 0.0
    whole = burden(np.ones(len(altered), bool))
    for feature in range(3):
        for value in np.unique(data.X[:, feature])[:-1]:
            goes_left = data.X[:, feature] <= value
            best = max(best, whole - burden(goes_left) - burden(~goes_left))
    tree = data.fit(max_depth=1).tree_
    assert tree.weighted_n_node_samples[0] == pytest.approx(data.weight.sum())
    if tree.node_count == 1:
        assert best <= 1e-9
        return
    goes_left = data.X[:, tree.feature[0]] <= tree.threshold[0]
    assert whole - burden(goes_left) - burden(~goes_left) == pytest.approx(best, abs=1e-12)


@examples(50)
@given(seeds)
def test_leaves_predict_what_costs_least(seed):
    """True priors and losses: shares, class, and the risk of every node."""
    data = Data(seed)
    model = data.fit(min_samples_leaf=4)
    loss = 1.0 - np.eye(data.n_classes) if data.loss is None else data.loss
    passed = model.decision_path(data.X).toarray().astype(bool)
    risk = node_costs(model.tree_, data.loss)
    for node in range(model.tree_.node_count):
        rows = passed[:, node]
        weight = np.bincount(data.y[rows], data.row_weight[rows], data.n_classes)
        assert risk[node] == pytest.approx((weight @ loss).min(), abs=1e-12)
        if model.tree_.children_left[node] < 0:
            shares = model.predict_proba(data.X[rows])
            np.testing.assert_allclose(shares, [weight / weight.sum()] * rows.sum(), atol=1e-12)
            costs = weight @ loss
            for label in model.predict(data.X[rows]):
                assert costs[label] == pytest.approx(costs.min(), abs=1e-12)


def test_priors_are_class_weights_that_sum_to_them():
    """The same tree as with the weights that give the classes these shares."""
    X, y = load("wine")
    by_hand = dict(enumerate(np.array(PRIORS) / np.bincount(y) * len(y)))
    for kind in (DecisionTreeClassifier, ExtraTreeClassifier):
        ours = kind(priors=dict(enumerate(PRIORS)), random_state=0).fit(X, y)
        weighted = kind(class_weight=by_hand, random_state=0).fit(X, y)
        np.testing.assert_array_equal(ours.tree_.threshold, weighted.tree_.threshold)
        np.testing.assert_allclose(ours.predict_proba(X), weighted.predict_proba(X))


def test_without_them_nothing_changes():
    """Priors that are the shares, and losses of 1, are no priors and losses."""
    X, y = load("iris")
    plain = DecisionTreeClassifier(random_state=0, max_depth=3).fit(X, y)
    other = DecisionTreeClassifier(
        random_state=0, max_depth=3, priors=[1 / 3] * 3, loss=1 - np.eye(3)
    ).fit(X, y)
    np.testing.assert_array_equal(plain.tree_.feature, other.tree_.feature)
    np.testing.assert_array_equal(plain.predict(X), other.predict(X))
    np.testing.assert_allclose(plain.predict_proba(X), other.predict_proba(X), atol=1e-12)


@pytest.mark.parametrize("kind", [RandomForestClassifier, ExtraTreesClassifier])
def test_a_forest_weighs_its_votes(kind):
    """The mean of the trees' shares, without what the losses altered, at least cost."""
    X, y = load("wine")
    params = {"priors": PRIORS, "loss": LOSS, "max_depth": 2, "random_state": 0}
    forest = kind(20, **params).fit(X, y)
    votes = np.mean([tree.tree_.predict(X.astype(np.float32)) for tree in forest], axis=0)
    shares = votes / np.sum(LOSS, axis=1)
    shares /= shares.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(forest.predict_proba(X), shares)
    np.testing.assert_array_equal(forest.predict(X), (shares @ LOSS).argmin(axis=1))
    single = forest.estimators_[0]
    shares = single.tree_.predict(X.astype(np.float32)) / np.sum(LOSS, axis=1)
    shares /= shares.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(single.predict_proba(X), shares)
    np.testing.assert_array_equal(single.predict(X), (shares @ LOSS).argmin(axis=1))


def test_a_forest_judges_out_of_bag_by_its_losses():
    X, y = load("wine")
    forest = RandomForestClassifier(30, loss=LOSS, oob_score=True, random_state=0).fit(X, y)
    shares = forest.oob_decision_function_
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert forest.oob_score_ == np.mean((shares @ LOSS).argmin(axis=1) == y)


def test_a_dear_class_is_missed_less_often():
    X, y = load("breast_cancer")
    missed = [
        np.count_nonzero((y == 0) & (model.predict(X) == 1))
        for model in (
            DecisionTreeClassifier(max_depth=2, random_state=0, loss=loss).fit(X, y)
            for loss in ([[0, 1], [1, 0]], [[0, 20], [1, 0]])
        )
    ]
    assert missed[1] < missed[0]


def test_models_are_saved_with_their_losses(tmp_path):
    X, y = load("iris")
    model = DecisionTreeClassifier(max_depth=2, loss=LOSS, priors={0: 0.2, 1: 0.2, 2: 0.6})
    model.fit(X, y).save(tmp_path / "tree")
    loaded = cart.load(tmp_path / "tree")
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert loaded.get_params() == model.get_params()


def test_priors_and_losses_of_pandas_are_by_their_labels():
    """However they are ordered, as by `value_counts(normalize=True)`; unless rows have no names."""
    X, y = load("iris")
    y = np.array(["a", "b", "c"])[y]
    priors = pd.Series({"c": 0.6, "a": 0.3, "b": 0.1})
    loss = pd.DataFrame(LOSS, index=[*"abc"], columns=[*"abc"])
    for as_frame, plain in (
        ({"priors": priors}, {"priors": [0.3, 0.1, 0.6]}),
        ({"priors": priors.reset_index(drop=True)}, {"priors": [0.6, 0.3, 0.1]}),
        ({"loss": loss.loc[[*"cab"], [*"bca"]]}, {"loss": LOSS}),
        ({"loss": pd.DataFrame(LOSS)}, {"loss": LOSS}),
    ):
        one, other = (
            DecisionTreeClassifier(max_depth=2, random_state=0, **params).fit(X, y)
            for params in (as_frame, plain)
        )
        np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(X))
        np.testing.assert_array_equal(one.predict(X), other.predict(X))


def test_losses_of_polars_are_refused_in_another_order():
    """They have no row names, so they are read by position."""
    X, y = load("iris")
    for columns, order in ((["0", "1", "2"], "201"), ([*"abc"], "bca")):
        labels = np.array(columns)[y] if "a" in columns else y
        loss = polars.DataFrame(dict(zip(columns, np.transpose(LOSS), strict=True)))
        model = DecisionTreeClassifier(loss=loss).fit(X, labels)
        np.testing.assert_array_equal(model.loss_, LOSS)
        with pytest.raises(ValueError, match="no row names, so it is read by position"):
            model.set_params(loss=loss.select(*order)).fit(X, labels)


def test_a_fit_without_losses_forgets_those_before():
    X, y = load("iris")
    model = DecisionTreeClassifier(max_depth=2, random_state=0, loss=LOSS).fit(X, y)
    model.set_params(loss=None).fit(X, y)
    plain = DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.predict_proba(X), plain.predict_proba(X))


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"priors": [0.5, 0.5]}, "shape \\(2,\\), but there are 3 classes"),
        ({"priors": [0.5, 0.5, 0.5]}, "sum to 1"),
        ({"priors": [0.0, 0.5, 0.5]}, "positive"),
        ({"priors": {0: 0.5, 1: 0.5}}, "missing: \\[2\\]"),
        ({"priors": {0: 0.5, 1: 0.3, 2: 0.1, 7: 0.1}}, "not in y: \\[7\\]"),
        ({"priors": pd.Series({0: 0.5, 2: 0.5})}, "missing: \\[1\\]"),
        ({"loss": pd.DataFrame(LOSS, index=[*"abc"])}, "rows \\['a', 'b', 'c'\\]"),
        ({"loss": pd.DataFrame(LOSS, columns=[*"cab"])}, "columns \\['c', 'a', 'b'\\]"),
        ({"priors": ["a", 0.5, 0.5]}, "priors must be an array of numbers"),
        ({"loss": {0: {1: 2}}}, "loss must be an array of numbers"),
        ({"loss": [[0, 1, 2], [1]]}, "loss must be an array of numbers"),
        ({"loss": [[0, 1], [1, 0]]}, "shape \\(2, 2\\)"),
        ({"loss": np.ones((3, 3))}, "diagonal"),
        ({"loss": -1.0 * np.array(LOSS)}, "non-negative"),
        ({"loss": [[0, 0, 0], [1, 0, 1], [1, 1, 0]]}, "Row 0"),
        ({"priors": PRIORS, "class_weight": "balanced"}, "class_weight"),
    ],
)
def test_what_makes_no_sense_is_refused(params, words):
    X, y = load("iris")
    for kind in (DecisionTreeClassifier, RandomForestClassifier):
        with pytest.raises(ValueError, match=words):
            kind(**params).fit(X, y)


def test_what_has_no_priors_or_losses_says_so():
    X, y = load("iris")
    with pytest.raises(ValueError, match="a single output"):
        DecisionTreeClassifier(priors=PRIORS).fit(X, np.column_stack((y, y)))
    with pytest.raises(ValueError, match="voting='majority'"):
        RandomForestClassifier(2, loss=LOSS, voting="majority").fit(X, y)
    with pytest.raises(ValueError, match="without loss"):
        RandomForestClassifier(2, loss=LOSS).fit(X, y).predict_proba_std(X)
