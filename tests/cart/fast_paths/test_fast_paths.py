"""Trees of the fast paths against those of the general path."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.tree import DecisionTreeClassifier as Peer
from sklearn.tree import DecisionTreeRegressor as RegressionPeer

from cart import DecisionTreeClassifier, DecisionTreeRegressor
from cart.estimators.grower import Grower
from cart.fast_paths.classification import path as class_counts_path
from cart.fast_paths.classification.path import ClassCountsPath
from cart.fast_paths.classification.random_cut import RandomClassCountsPath
from cart.fast_paths.regression.sorted_path import SortedPath
from cart.growth.plan import make_plan
from cart.splitting import criteria
from cart.table.columns import Columns
from cart.table.encoding import encode
from cart.table.float_table import FloatTable
from tests.agreement.same import assert_same_nodes, assert_same_tree, paths, same_structure
from tests.examples import examples, fewer

seeds = st.integers(0, 2**32 - 1)


def grow_both_ways(X, y, weights, params, expected_path, hands_on=False, is_narrow=True):
    """Trees of the fast path, on codes of 16 bits or 32, and of the general one."""
    is_regression = y.dtype.kind == "f"
    model = (DecisionTreeRegressor if is_regression else DecisionTreeClassifier)(**params)
    criterion = criteria.REGRESSION if is_regression else criteria.CLASSIFICATION
    n_values = 1 if is_regression else int(y.max()) + 1
    codes = y.astype(float).reshape(len(y), -1)
    plan = make_plan(model, criterion[model.criterion], "best", *X.shape, codes.shape[1], n_values)
    table = encode(Columns(X.astype(np.float32)))
    table = table.narrow() if is_narrow else table.wide()
    assert table.codes.dtype == (np.uint16 if is_narrow else np.uint32)
    fast, general = paths(table, codes, plan, expected_path)
    if hands_on:
        del fast._grow_in_general
    seeds = range(1, 1 + len(weights))
    return fast.grow(weights, seeds), general.grow(weights, seeds)


def assert_same_growth(*args, **options):
    """The trees of `grow_both_ways` are the same, bit for bit."""
    for ours, theirs in zip(*grow_both_ways(*args, **options), strict=True):
        assert_same_nodes(ours, theirs)


limits = st.fixed_dictionaries(
    {"max_features": st.sampled_from([1, 2, 0.5, 1.0])},
    optional={
        "max_depth": st.integers(1, 6),
        "min_samples_split": st.integers(2, 10),
        "min_samples_leaf": st.integers(1, 8),
        "min_impurity_decrease": st.sampled_from([0.013, 0.11]),
        "ccp_alpha": st.sampled_from([0.01]),
    },
)


@examples(150)
@given(
    seed=seeds,
    params=limits,
    n_classes=st.integers(1, 4),
    criterion=st.sampled_from(["gini", "entropy"]),
    is_narrow=st.booleans(),
)
def test_quick_class_trees_are_the_general_ones(seed, params, n_classes, criterion, is_narrow):
    rng = np.random.default_rng(seed)
    n = rng.integers(1, 300)
    X = rng.integers(0, rng.choice([2, 10, 1000]), (n, rng.integers(1, 6)))
    X = X * rng.choice([1.0, 3e-8])
    y = rng.integers(0, n_classes, n)
    weights = rng.integers(0, 4, (3, n)).astype(float)
    weights[:, rng.integers(n)] = 1.0
    params = {**params, "criterion": criterion}
    assert_same_growth(X, y, weights, params, ClassCountsPath, is_narrow=is_narrow)


@examples(200)
@given(
    seed=seeds,
    params=limits,
    n_classes=st.integers(2, 4),
    criterion=st.sampled_from(["gini", "entropy"]),
    missing=st.sampled_from([0.0, 0.1, 0.6]),
    least=st.sampled_from([0.0, 0.0, 0.02, 0.1]),
    is_constrained=st.booleans(),
    is_random=st.booleans(),
)
def test_class_trees_with_missing_values_and_bounds_are_the_general_ones(
    seed, params, n_classes, criterion, missing, least, is_constrained, is_random
):
    rng = np.random.default_rng(seed)
    n = rng.integers(1, 500)
    X = rng.integers(0, rng.choice([2, 10, 1000]), (n, rng.integers(1, 6)))
    X = np.where(rng.random(X.shape) < missing, np.nan, X * rng.choice([1.0, 3e-8]))
    weights = rng.integers(0, 4, (3, n)).astype(float)
    weights[:, rng.integers(n)] = 1.0
    n_classes = 2 if is_constrained else n_classes
    y = rng.integers(0, n_classes, n)
    y = np.where(X[:, 0] > np.nanmedian(X) if n > 9 else True, y, 0)
    params = {**params, "criterion": criterion, "min_weight_fraction_leaf": least}
    if is_constrained:
        params["monotonic_cst"] = rng.integers(-1, 2, X.shape[1])
    model = DecisionTreeClassifier(**params)
    splitter = "random" if is_random else "best"
    criterion = criteria.CLASSIFICATION[criterion]
    plan = make_plan(model, criterion, splitter, n, X.shape[1], 1, n_classes)
    columns, codes = Columns(X.astype(np.float32)), y.astype(float)[:, None]
    table = FloatTable.encode(columns) if is_random else encode(columns)
    path = RandomClassCountsPath if is_random else ClassCountsPath
    fast, general = paths(table, codes, plan, path)
    for weight, number in zip(weights, range(1, 4), strict=True):
        both = (grower.grow([weight], [number])[0] for grower in (fast, general))
        assert_same_nodes(*both)


@examples(300)
@given(
    seed=seeds,
    params=limits,
    has_ties=st.booleans(),
    offset=st.sampled_from([0.0, 5.0, 1e6]),
    factor=st.sampled_from([1.0, 40.0, 0.5]),
)
def test_quick_mean_trees_are_the_general_ones(seed, params, has_ties, offset, factor):
    """To the bit: without ties for any numbers, with ties where sums are exact in every order.

    Of many features to look at one by one, none keeps a sorted list.
    """
    rng = np.random.default_rng(seed)
    n, n_features = rng.integers(1, 300), rng.integers(1, 12)
    if has_ties:
        X = rng.integers(0, rng.choice([2, 10, 100]), (n, n_features)) * rng.choice([1.0, 3e-8])
        y = rng.integers(0, 50, n).astype(float)
    else:
        X = np.argsort(rng.random((n, n_features)), axis=0)
        y = offset + rng.normal(size=n) * rng.choice([1.0, 1e-6])
    weights = rng.integers(0, 4, (3, n)) * factor
    weights[:, rng.integers(n)] = 1.0
    assert_same_growth(X, y, weights, params, SortedPath)


@examples(150)
@given(
    seed=seeds,
    params=limits,
    kind=st.sampled_from(["squared_error", "poisson", "gini", "entropy"]),
    n_classes=st.sampled_from([1, 2, 2, 3, 6]),
    missing=st.sampled_from([0.0, 0.1, 0.6]),
    least=st.sampled_from([0.0, 0.0, 0.02, 0.1]),
    is_constrained=st.booleans(),
    n_max=st.sampled_from([60, 600]),
)
def test_trees_by_sums_with_missing_values_and_bounds_are_the_general_ones(
    seed, params, kind, n_classes, missing, least, is_constrained, n_max
):
    """To the bit, for any numbers, without ties but between missing values."""
    rng = np.random.default_rng(seed)
    n, n_features = rng.integers(1, n_max), rng.integers(1, 12 if kind == "squared_error" else 8)
    X = np.argsort(rng.random((n, n_features)), axis=0).astype(float)
    signal = X[:, 0] + X[:, -1] > rng.normal(n, n / 3, n)
    X[rng.random(X.shape) < missing] = np.nan
    is_classifier = kind in ("gini", "entropy")
    if is_classifier:
        y = np.minimum(signal + rng.integers(0, max(n_classes - 1, 1), n), n_classes - 1)
        y[0] = n_classes - 1
    elif kind == "poisson":
        y = rng.poisson(1.0 + 3.0 * signal).astype(float) * rng.choice([1.0, 0.3])
        y[0] = 1.0
    else:
        y = signal + rng.normal(size=n)
    weights = rng.integers(0, 4, (3, n)) * rng.random((3, n))
    weights[:, rng.integers(n)] = 0.3
    params = {**params, "criterion": kind, "min_weight_fraction_leaf": least}
    if is_constrained and not is_classifier:
        params["monotonic_cst"] = rng.integers(-1, 2, n_features)
    for weight in weights:
        assert_same_growth(X, y, weight[None], params, SortedPath, is_narrow=False)


def test_columns_that_are_known_in_one_row_of_a_node():
    """The order that such a column leaves is not overwritten by the next one that is looked at."""
    rng = np.random.default_rng(0)
    X = np.argsort(rng.random((150, 40)), axis=0).astype(float)
    X[rng.random(X.shape) < 0.95] = np.nan
    params = {"criterion": "squared_error", "max_features": 6, "max_leaf_nodes": 40}
    weights, y = rng.integers(0, 3, (8, 150)).astype(float), rng.normal(size=150)
    for weight in weights:
        assert_same_growth(X, y, weight[None], params, SortedPath, is_narrow=False)


@examples(150)
@given(
    seed=seeds,
    params=limits,
    targets=st.sampled_from(["any", "whole", "rounded", "far", "two"]),
    n_max=st.sampled_from([10, 100, 400]),
)
def test_trees_by_absolute_error_are_the_general_ones(seed, params, targets, n_max):
    """To the bit, also where cuts tie and scikit-learn's rounding decides."""
    rng = np.random.default_rng(seed)
    n, n_features = rng.integers(1, n_max), rng.integers(1, 8)
    X = np.argsort(rng.random((n, n_features)), axis=0).astype(float)
    X[:, 0] = X[:, -1]
    y = rng.normal(size=n) + (X[:, 0] > n / 2)
    y = {
        "any": y, "whole": np.rint(5.0 * y) + 0.0, "rounded": np.round(y, 1) + 0.0, "far": 1e9 + y,
        "two": 0.1 * (y > 0),
    }[targets]  # fmt: skip
    weights = rng.integers(0, 4, (3, n)).astype(float) if rng.random() < 0.7 else np.ones((3, n))
    weights[:, rng.integers(n)] = 1.0
    params = {**params, "criterion": "absolute_error"}
    assert_same_growth(X, y, weights, params, SortedPath, is_narrow=False)


@examples(100)
@given(
    seed=seeds,
    params=limits,
    n_outputs=st.sampled_from([2, 3, 4, 9]),
    missing=st.sampled_from([0.0, 0.2]),
    least=st.sampled_from([0.0, 0.0, 0.1]),
)
def test_trees_of_several_means_are_the_general_ones(seed, params, n_outputs, missing, least):
    """To the bit, for any numbers."""
    rng = np.random.default_rng(seed)
    n, n_features = rng.integers(1, 400), rng.integers(1, 12)
    X = np.argsort(rng.random((n, n_features)), axis=0).astype(float)
    y = rng.normal(size=(n, n_outputs)) + (X[:, :1] > n / 2)
    X[rng.random(X.shape) < missing] = np.nan
    weights = rng.integers(0, 4, (3, n)) * rng.choice([1.0, 0.3])
    weights[:, rng.integers(n)] = 1.0
    params = {**params, "min_weight_fraction_leaf": least}
    for weight in weights:
        assert_same_growth(X, y, weight[None], params, SortedPath, is_narrow=False)


@examples(100)
@given(
    seed=seeds,
    params=limits,
    n_outputs=st.sampled_from([2, 3, 12]),
    n_classes=st.integers(2, 4),
    missing=st.sampled_from([0.0, 0.2]),
    n_leaves=st.sampled_from([None, None, 10]),
    criterion=st.sampled_from(["gini", "entropy"]),
)
def test_class_trees_of_several_outputs_are_the_general_ones(
    seed, params, n_outputs, n_classes, missing, n_leaves, criterion
):
    rng = np.random.default_rng(seed)
    n, n_features = rng.integers(1, 400), rng.integers(1, 12)
    X = rng.integers(0, rng.choice([2, 10, 1000]), (n, n_features)).astype(float)
    y = rng.integers(0, n_classes, (n, n_outputs)) * (X[:, :1] > X.mean())
    y[0] = n_classes - 1, *range(n_outputs - 1)
    X[rng.random(X.shape) < missing] = np.nan
    weights = rng.integers(0, 4, (3, n)).astype(float)
    weights[:, rng.integers(n)] = 1.0
    params = {**params, "max_leaf_nodes": n_leaves, "criterion": criterion}
    both = grow_both_ways(X, y, weights, params, ClassCountsPath, is_narrow=False)
    for ours, theirs in zip(*both, strict=True):
        assert_same_nodes(ours, theirs)
        np.testing.assert_array_equal(ours.n_classes, theirs.n_classes)


@pytest.mark.parametrize("criterion", ["gini", "entropy"])
@pytest.mark.parametrize(("n_outputs", "n_classes"), [(3, 2), (3, 4), (20, 2), (2, 10)])
def test_large_class_trees_of_several_outputs_are_the_general_ones(n_outputs, n_classes, criterion):
    """So many rows are screened, so many labels have thousands of combinations, and the last output
    has two classes only."""
    rng, n = np.random.default_rng(0), fewer(8000)
    X = rng.normal(size=(n, 6)).round(3)
    y = (X @ rng.normal(size=(6, n_outputs)) + rng.normal(size=(n, n_outputs))).round()
    y = y.clip(0, n_classes - 1).astype(int)
    y[0, 0], y[:, -1] = n_classes - 1, y[:, -1].clip(0, 1)
    weights = rng.integers(0, 4, (2, n)).astype(float)
    assert_same_growth(X, y, weights, {"criterion": criterion}, ClassCountsPath, is_narrow=False)


def test_more_classes_of_several_outputs_than_fit_a_word_go_the_general_path():
    """17 bits number a row, 14 its combination of labels and 2 its weight: one too many."""
    rng, n = np.random.default_rng(0), 1 << 16
    y = (np.arange(n)[:, np.newaxis] >> np.arange(14) & 1).astype(float)
    table = encode(Columns(rng.normal(size=(n, 1)).astype(np.float32)))
    plan = make_plan(DecisionTreeClassifier(), criteria.Gini, "best", n, 1, 14, 2)
    path = ClassCountsPath(table, y, plan)
    assert path.accepts(np.ones((1, n)), True)
    assert not path.accepts(np.full((1, n), 2.0), True)
    assert not ClassCountsPath.knows(plan._replace(n_outputs=54))  # codes beyond 2**53


@examples(60)
@given(
    seed=seeds,
    kind=st.sampled_from(["squared_error", "poisson", "two weighted", "gini", "random"]),
    n_leaves=st.integers(2, 40),
    max_features=st.sampled_from([0.5, 1.0]),
    missing=st.sampled_from([0.0, 0.2]),
    is_constrained=st.booleans(),
)
def test_trees_best_first_are_the_general_ones(
    seed, kind, n_leaves, max_features, missing, is_constrained
):
    rng = np.random.default_rng(seed)
    n, n_features = rng.integers(1, 400), rng.integers(1, 8)
    X = np.argsort(rng.random((n, n_features)), axis=0).astype(float)
    signal = X[:, 0] > rng.normal(n / 2, n / 3, n)
    X[rng.random(X.shape) < missing] = np.nan
    is_classifier = kind not in ("squared_error", "poisson")
    y = signal.astype(float) if is_classifier else signal + rng.poisson(2.0, n) + 0.5
    y[0] = 1.0
    weight = rng.integers(0, 4, n) * (0.3 if kind == "two weighted" else 1.0)
    weight[rng.integers(n)] = 1.0
    model = (DecisionTreeClassifier if is_classifier else DecisionTreeRegressor)(
        max_leaf_nodes=n_leaves, max_features=max_features
    )
    if is_constrained and kind != "two weighted":
        model.monotonic_cst = rng.integers(-1, 2, n_features)
    criterion = criteria.Gini if is_classifier else criteria.REGRESSION[kind]
    splitter, values = "random" if kind == "random" else "best", 2 if is_classifier else 1
    plan = make_plan(model, criterion, splitter, n, n_features, 1, values)
    columns = Columns(X.astype(np.float32))
    table = FloatTable.encode(columns) if kind == "random" else encode(columns)
    path = {"gini": ClassCountsPath, "random": RandomClassCountsPath}.get(kind, SortedPath)
    for ours, theirs in zip(
        *(grower.grow([weight], [7]) for grower in paths(table, y[:, None], plan, path)),
        strict=True,
    ):
        assert ours.n_leaves <= n_leaves
        assert_same_nodes(ours, theirs)


@pytest.mark.parametrize("y", [1e9 / 3, 0.1, 1e-170, 1e95, 1e120, 1e170])
def test_targets_that_differ_by_rounding_only_or_hardly_fit(y):
    """Where all targets are one, rounding may make a node look impure, and squares overflow."""
    rng = np.random.default_rng(0)
    X = np.argsort(rng.random((300, 4)), axis=0)
    weights = rng.integers(0, 4, (3, 300)).astype(float)
    for scale in (0.0, 1.0):
        target = y * (1.0 + scale * rng.random(300))
        with np.errstate(all="ignore"):
            assert_same_growth(X, target, weights, {}, SortedPath, hands_on=y > 1e100)


@pytest.mark.parametrize("max_features", [1, 1.0])
@pytest.mark.parametrize("task", ["two classes", "five classes", "means"])
@pytest.mark.parametrize("is_narrow", [True, False])
def test_large_trees(task, max_features, is_narrow, monkeypatch):
    """On near copies of the codes, and on rows that lists, or none, bring along."""
    monkeypatch.setattr(class_counts_path, "CACHE_COPY_BYTES", (2**14, 2**11))
    rng = np.random.default_rng(0)
    n = 24_000
    X = np.argsort(rng.random((n, 24)), axis=0)
    signal = X[:, 0] + X[:, 1] > rng.normal(n, n / 2, n)
    y, path = signal.astype(int), ClassCountsPath
    if task == "five classes":
        y = signal + rng.integers(0, 4, n)
    elif task == "means":
        y, path = signal + rng.normal(size=n), SortedPath
    weights = np.bincount(rng.integers(0, n, n), minlength=n)[None].astype(float)
    params = {"max_features": max_features}
    ((ours,), (theirs,)) = grow_both_ways(X, y, weights, params, path, is_narrow=is_narrow)
    assert ours.node_count > 1000
    assert_same_nodes(ours, theirs)


@examples(300)
@given(
    seed=seeds,
    total=st.sampled_from([2**24, 2**25, 2**26]),
    step=st.integers(-2, 2),
    n_classes=st.sampled_from([2, 3, 5]),
    is_skewed=st.booleans(),
)
def test_gini_trees_of_weights_on_both_sides_of_what_single_precision_counts(
    seed, total, step, n_classes, is_skewed
):
    """Up to a total of 2**26, whose square double precision holds, and beyond it, where the general
    path takes over. Few rows may have nearly all of the weight, and cuts be next to the border."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(100, 300))
    X = np.argsort(rng.random((n, 3)), axis=0)
    y = rng.integers(0, n_classes, n)
    if rng.random() < 0.5:
        y = np.where(X[:, 0] > n // 2, y, 0)
    share = rng.random(n) ** (20 if is_skewed else 1)
    weight = np.maximum(np.floor(share / share.sum() * total), 1.0)
    weight = np.minimum(weight, 2.0**20 - 1)  # what a word has room for
    while weight.sum() != total + step:
        i = rng.integers(n)
        weight[i] = min(max(weight[i] + total + step - weight.sum(), 1.0), 2.0**20 - 1)
    beyond = weight.sum() > 2**26
    assert_same_growth(X, y, weight[None], {}, ClassCountsPath, hands_on=beyond)


@pytest.mark.parametrize("weight", [2.0**18, 2.0**19, 2.0**20, 2.0**24])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_row_of_weight_1_beside_many_heavy_ones_is_split_off(weight, n_classes):
    """In single precision its weight vanishes beside the others'."""
    X = np.arange(64.0)[:, None]
    y = np.minimum(X[:, 0] // 32 + (n_classes == 3) * (X[:, 0] // 48), n_classes - 1).astype(int)
    weights = np.full(64, weight)
    weights[-1] = 1.0
    ours = DecisionTreeClassifier(random_state=0).fit(X, y, weights)
    theirs = Peer(random_state=0).fit(X, y, weights)
    assert ours.tree_.node_count == 2 * n_classes - 1
    assert_same_tree(ours.tree_, theirs.tree_)


@pytest.mark.parametrize(
    ("criterion", "size", "weight"),
    [
        ("poisson", 2.0**350, 1.0),
        ("poisson", 1.0, 2.0**350),
        ("poisson", 2.0**1000, 1.0),
        ("squared_error", 2.0**502, 1.0),  # some squares of sums overflow, and some do not
        ("squared_error", 1.0, 2.0**502),
        ("squared_error", 1.0, 2.0**-520),
    ],
)
def test_trees_of_sums_whose_products_overflow_or_vanish(criterion, size, weight):
    """What their scores are at most would be no number: the general path grows the trees."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = (np.digitize(X[:, 0], [-1, 0, 1]) * 2 + rng.integers(1, 5, 300)) * size
    params = {"criterion": criterion, "max_depth": 3, "random_state": 0}
    with np.errstate(over="raise"):
        ours = DecisionTreeRegressor(**params).fit(X, y, np.full(300, weight)).tree_
    theirs = RegressionPeer(**params).fit(X, y, np.full(300, weight)).tree_
    assert ours.node_count >= 7
    assert same_structure(ours, theirs)


@pytest.mark.parametrize("factor", [2.0**26, 2.0**22, 2.0**17, 0.5])
def test_weights_that_fit_into_no_word(factor):
    """Weights too large for a word, or no whole numbers: the general path grows the trees."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 3)), rng.integers(0, 200, 200)
    weights = rng.integers(0, 4, (2, 200)) * factor
    weights[:, 50:] = np.minimum(weights[:, 50:], 1.0)
    both = grow_both_ways(X, y, weights, {}, ClassCountsPath, hands_on=True)
    for ours, theirs in zip(*both, strict=True):
        assert ours.node_count > 10
        assert_same_nodes(ours, theirs)


@pytest.mark.parametrize("factor", [2.0**14, 1e300])
def test_weights_of_which_entropy_keeps_no_table(factor):
    """They are many times as much as there are rows: the general path grows the trees."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 3)), rng.integers(0, 2, 200)
    weights = rng.integers(0, 4, (2, 200)) * factor
    both = grow_both_ways(X, y, weights, {"criterion": "entropy"}, ClassCountsPath, hands_on=True)
    for ours, theirs in zip(*both, strict=True):
        assert ours.node_count > 10
        assert_same_nodes(ours, theirs)


def test_the_table_of_entropy_grows_with_the_weights():
    """It is asked of every weight up to the total, whatever the batch before weighed."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), rng.integers(0, 2, 60).astype(float)
    plan = make_plan(DecisionTreeClassifier(), criteria.Entropy, "best", 60, 3, 1, 2)
    path = ClassCountsPath(encode(Columns(X.astype(np.float32))), y[:, None], plan)
    for total in (61, 62, 60, 63, 80):
        weights = np.ones((1, 60))
        weights[0, 0] += total - 60
        assert path.accepts(weights, True)
        assert len(path._criterion.table) > total


def test_more_trees_than_before_and_fewer():
    """One Grower grows any number of trees at once, and each is the same as alone."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), rng.integers(0, 2, 60).astype(float)
    weights = rng.integers(0, 3, (7, 60)).astype(float)
    for kind, values, criterion in (
        (DecisionTreeClassifier, 2, criteria.Gini),
        (DecisionTreeRegressor, 1, criteria.SquaredError),
    ):
        plan = make_plan(kind(), criterion, "best", 60, 3, 1, values)
        grower = Grower(encode(Columns(X.astype(np.float32))), y[:, None], plan)
        some = [*grower.grow(weights[:2], [0, 1]), *grower.grow(weights[2:], range(2, 7))]
        for i, tree in enumerate(some):
            assert_same_nodes(grower.grow(weights[i : i + 1], [i])[0], tree)
