"""What holds for every tree with missing values, constraints, pruning, whatever the criterion."""

import numpy as np
import pytest
import sklearn.datasets
import sklearn.tree
from hypothesis import given
from hypothesis import strategies as st

import cart
from benchmarks.oracles import pruning, splitter
from benchmarks.oracles.ties import Training, has_medians, replay
from cart.interop.bridge import counterpart
from tests.agreement.same import assert_same_tree
from tests.examples import examples

CLASSIFICATION = ("gini", "entropy")
REGRESSION = ("squared_error", "absolute_error", "poisson")
CRITERIA = CLASSIFICATION + REGRESSION
ATOL = 1e-9


class Data:
    """A small table with many equal values, drawn from a seed."""

    def __init__(self, seed, missing=True, n_outputs=None):
        rng = np.random.default_rng(seed)
        n, n_features = rng.integers(2, 40), rng.integers(1, 5)
        n_levels, scale = rng.choice([2, 3, 10, 1000]), rng.choice([1.0, 0.1, -1e6])
        n_outputs = n_outputs or rng.integers(1, 3)
        self.X = rng.integers(0, n_levels, (n, n_features)) * scale
        if missing:
            self.X[rng.random(self.X.shape) < rng.choice([0.0, 0.1, 0.6])] = np.nan
        self.y = rng.integers(0, 4, (n, n_outputs))
        self.y[0] = 1
        self.y = self.y[:, 0] if n_outputs == 1 else self.y
        self.weight = rng.integers(0, 4, n)
        self.weight[0] += 1
        self.cst = rng.integers(-1, 2, n_features)
        self.rng = rng


seeds = st.integers(0, 2**32 - 1)
criteria = st.sampled_from(CRITERIA)
parameters = st.fixed_dictionaries(
    {"random_state": st.integers(0, 1000), "splitter": st.sampled_from(["best", "random"])},
    optional={
        "max_depth": st.integers(1, 6),
        "min_samples_leaf": st.integers(1, 5),
        "min_weight_fraction_leaf": st.sampled_from([0.1, 0.3]),
        "max_features": st.just(1),
        "max_leaf_nodes": st.integers(2, 9),
        "min_impurity_decrease": st.sampled_from([0.013, 0.11]),
    },
)


def make_tree(criterion, **params):
    kind = "Classifier" if criterion in CLASSIFICATION else "Regressor"
    return getattr(cart, f"DecisionTree{kind}")(criterion=criterion, **params)


def constrained(data, criterion, **params):
    """A tree under the constraints of the data; of two classes, where there are classes."""
    y = data.y % 2 if criterion in CLASSIFICATION else data.y
    model = make_tree(criterion, monotonic_cst=data.cst, **params)
    return model.fit(data.X, y, data.weight), y


def node_rows(model, X):
    """Rows of each node, by its decision path."""
    return [column.nonzero()[0] for column in model.decision_path(X).toarray().T]


# ---------------------------------------------------------------------------------- splits


@examples(100)
@given(seeds, st.sampled_from(REGRESSION))
def test_impurity_and_value_by_definition(seed, criterion):
    data = Data(seed)
    model = make_tree(criterion, random_state=0).fit(data.X, data.y, data.weight)
    y = data.y.reshape(len(data.y), -1)
    for node, rows in enumerate(node_rows(model, data.X)):
        rows = rows[data.weight[rows] > 0]
        weight = data.weight[rows].astype(float)
        expected = splitter.impurity(y[rows], weight, criterion)
        assert model.tree_.impurity[node] == pytest.approx(expected, abs=ATOL)
        for k, value in enumerate(model.tree_.value[node, :, 0]):
            expected = np.average(y[rows, k], weights=weight)
            if criterion == "absolute_error":
                expected = splitter.weighted_median(y[rows, k], weight)
            assert value == pytest.approx(expected, abs=ATOL)


@examples(200)
@given(seeds, criteria)
def test_a_split_is_the_best_of_all_ways(seed, criterion):
    """By enumeration, missing values on either side, impurities by their definition."""
    data = Data(seed)
    tree = make_tree(criterion, max_depth=1).fit(data.X, data.y, data.weight).tree_
    rows = np.flatnonzero(data.weight)
    X, y, weight = np.float32(data.X[rows]), data.y[rows], data.weight[rows].astype(float)
    if splitter.impurity(y, weight, criterion) <= ATOL:
        assert tree.node_count == 1
        return
    gains = {
        (feature, threshold, missing_left): splitter.decrease(y, weight, is_left, criterion)
        for feature in range(X.shape[1])
        for is_left, threshold, missing_left in splitter.ways(X[:, feature])
    }
    if criterion == "poisson":  # a side with targets of 0 only has an infinite impurity
        gains = {way: gain for way, gain in gains.items() if np.isfinite(gain)}
    if not gains:
        assert tree.node_count == 1
        return
    feature = tree.feature[0]
    missing_left = bool(tree.missing_go_to_left[0]) if np.isnan(X[:, feature]).any() else None
    assert gains[feature, tree.threshold[0], missing_left] >= max(gains.values()) - ATOL


@examples(300)
@given(seeds, parameters, criteria, st.booleans())
def test_scikit_learn_grows_the_same_tree(seed, params, criterion, bound):
    """Sums of whole numbers are exact; only logarithms of equal scores are left to rounding."""
    data = Data(seed, n_outputs=1 if bound else None)
    if bound:
        ours, y = constrained(data, criterion, **params)
    else:
        y = data.y
        ours = make_tree(criterion, **params).fit(data.X, y, data.weight)
    theirs = counterpart(ours, cart, sklearn.tree)
    theirs.fit(data.X, y, data.weight)
    assert_same_tree(ours.tree_, theirs.tree_)


@pytest.mark.parametrize("criterion", CRITERIA)
@given(seeds, parameters)
def test_scikit_learn_grows_the_same_constrained_tree(criterion, seed, params):
    data = Data(seed, n_outputs=1)
    data.cst[data.cst == 0] = 1
    ours, y = constrained(data, criterion, **params)
    theirs = counterpart(ours, cart, sklearn.tree)
    assert_same_tree(ours.tree_, theirs.fit(data.X, y, data.weight).tree_)


@examples(200)
@given(seeds, parameters, criteria, st.booleans())
def test_every_split_is_the_best_of_the_features_drawn(seed, params, criterion, bound):
    data = Data(seed, n_outputs=1 if bound else None)
    data.y = data.y if criterion in CLASSIFICATION else data.y / 10
    data.weight = data.rng.integers(1, 100, len(data.y)) / 100
    if bound:
        model, y = constrained(data, criterion, **params)
    else:
        y = data.y
        model = make_tree(criterion, **params).fit(data.X, y, data.weight)
    training = Training(data.X, y, data.weight, model)
    assert not [node for node in replay(model.tree_, training) if node.is_wrong]
    if criterion == "absolute_error" and not bound:
        assert has_medians(model.tree_, training)


@given(seeds, parameters, criteria)
def test_missing_values_go_where_they_went_in_training(seed, params, criterion):
    data = Data(seed)
    model = make_tree(criterion, **params).fit(data.X, data.y, data.weight)
    known = data.weight > 0
    counts = np.bincount(model.apply(data.X[known]), minlength=model.tree_.node_count)
    leaf = model.tree_.children_left < 0
    np.testing.assert_array_equal(counts[leaf], model.tree_.n_node_samples[leaf])


@given(seeds, parameters, criteria)
def test_missing_values_follow_the_majority_where_none_was_missing(seed, params, criterion):
    data = Data(seed, missing=False)
    tree = make_tree(criterion, **params).fit(data.X, data.y, data.weight).tree_
    split = tree.children_left >= 0
    n_left = tree.n_node_samples[tree.children_left[split]]
    n_right = tree.n_node_samples[tree.children_right[split]]
    np.testing.assert_array_equal(tree.missing_go_to_left[split], n_left > n_right)


# -------------------------------------------------------------------- monotonic constraints


@examples(150)
@given(seeds, parameters, criteria)
def test_predictions_are_monotonic(seed, params, criterion):
    """Along every constrained feature, whatever the others are."""
    data = Data(seed, n_outputs=1, missing=False)
    model, y = constrained(data, criterion, **params)
    if criterion in CLASSIFICATION and len(np.unique(y[data.weight > 0])) < 2:
        return
    for feature, direction in enumerate(data.cst):
        values = np.unique(data.X[:, feature])
        grid = np.concatenate([values[:1] - 1, values, values[-1:] + 1])
        X = data.X.repeat(len(grid), axis=0)
        X[:, feature] = np.tile(grid, len(data.X))
        is_classifier = criterion in CLASSIFICATION
        predicted = model.predict_proba(X)[:, 1] if is_classifier else model.predict(X)
        steps = np.diff(predicted.reshape(len(data.X), len(grid)), axis=1)
        assert (steps * direction >= -ATOL).all()


# ----------------------------------------------------------------------------------- pruning


@given(seeds, criteria)
def test_larger_alphas_give_nested_subtrees(seed, criterion):
    data = Data(seed)
    model = make_tree(criterion, random_state=0)
    path = model.cost_complexity_pruning_path(data.X, data.y, data.weight)
    assert (np.diff(path.ccp_alphas) >= -ATOL).all()
    assert (np.diff(path.impurities) >= -ATOL).all()
    whole = model.fit(data.X, data.y, data.weight)
    assert path.impurities[0] == pytest.approx(leaf_impurity(whole.tree_))
    finer = None
    for alpha in np.unique(path.ccp_alphas.round(12)) + ATOL:
        if not np.isfinite(alpha):
            continue
        expected = pruning.prune(whole.tree_, alpha)
        pruned = make_tree(criterion, random_state=0, ccp_alpha=alpha)
        pruned.fit(data.X, data.y, data.weight)
        np.testing.assert_array_equal(pruned.tree_.n_node_samples, expected)
        leaves = pruned.apply(data.X)
        if finer is not None:  # rows that shared a leaf share one still
            assert len(set(zip(finer, leaves, strict=True))) == len(set(finer))
        finer = leaves
    assert pruned.tree_.node_count == 1


def test_leaves_of_pruning_send_missing_values_nowhere():
    X, y = sklearn.datasets.load_iris(return_X_y=True)
    X[np.random.default_rng(0).random(X.shape) < 0.2] = np.nan
    whole, ours, theirs = (
        home.DecisionTreeClassifier(random_state=0, ccp_alpha=alpha).fit(X, y).tree_
        for home, alpha in ((cart, 0.0), (cart, 0.01), (sklearn.tree, 0.01))
    )
    np.testing.assert_array_equal(ours.missing_go_to_left, theirs.missing_go_to_left)
    became_leaves = np.isin(whole.impurity, ours.impurity[ours.children_left < 0])
    assert whole.missing_go_to_left[became_leaves].any()


@given(seeds, criteria)
def test_a_pruned_tree_costs_least(seed, criterion):
    """Of all the subtrees on the path, at that alpha; the definition of pruning."""
    data = Data(seed)
    model = make_tree(criterion, random_state=0)
    path = model.cost_complexity_pruning_path(data.X, data.y, data.weight)
    subtrees = [
        make_tree(criterion, random_state=0, ccp_alpha=alpha).fit(data.X, data.y, data.weight).tree_
        for alpha in path.ccp_alphas
        if np.isfinite(alpha)
    ]
    for alpha in data.rng.choice(path.ccp_alphas, 3) * data.rng.uniform(0.5, 2, 3):
        model.set_params(ccp_alpha=alpha).fit(data.X, data.y, data.weight)
        costs = [leaf_impurity(tree) + alpha * tree.n_leaves for tree in subtrees]
        cost = leaf_impurity(model.tree_) + alpha * model.get_n_leaves()
        assert cost <= min(costs) + ATOL


def leaf_impurity(tree):
    leaf = tree.children_left < 0
    weight = tree.weighted_n_node_samples
    return (tree.impurity * weight)[leaf].sum() / weight[0]
