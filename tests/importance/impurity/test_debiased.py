"""MDI judged out of bag, against the formulas of the papers written out node by node."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.sparse import csr_matrix
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.ensemble import RandomForestClassifier as PeerClassifier
from sklearn.ensemble import RandomForestRegressor as PeerRegressor
from sklearn.utils import compute_sample_weight

from benchmarks.studies.importance_designs import noise_bias
from forest import RandomForestClassifier, RandomForestRegressor
from importance import conditional_permutation, mdi, optimism, unbiased_mdi
from importance.core.fitted_forest import check_forest
from importance.impurity.debiased import judge_splits
from tests.oracles import forests as oracle

CASES = [
    (RandomForestClassifier, load_iris, {}),
    (RandomForestClassifier, load_iris, {"criterion": "entropy", "max_leaf_nodes": 9}),
    (RandomForestClassifier, load_breast_cancer, {"class_weight": "balanced_subsample"}),
    (RandomForestClassifier, load_breast_cancer, {"class_weight": "balanced", "max_depth": 3}),
    (RandomForestRegressor, load_diabetes, {}),
    (RandomForestRegressor, load_diabetes, {"criterion": "absolute_error", "max_leaf_nodes": 15}),
    (RandomForestRegressor, load_diabetes, {"ccp_alpha": 50.0}),
    (RandomForestRegressor, load_diabetes, {"monotonic_cst": [0, 0, 1, 1, 0, 0, -1, 0, 1, 0]}),
]
EACH_CASE = pytest.mark.parametrize(
    ("kind", "load", "params"), CASES, ids=[f"{c[1].__name__[5:]}-{c[2]}" for c in CASES]
)


def small(load, n=110, missing=0.0):
    X, y = load(return_X_y=True)
    rng = np.random.RandomState(0)
    rows = rng.permutation(len(y))[:n]
    X = X[rows].astype(np.float32)
    X[rng.uniform(size=X.shape) < missing] = np.nan
    return X, y[rows]


def rows_of_nodes(tree, X):
    """Which rows pass each node, (node_count, n_rows) bool; one row and node after the other."""
    passes = np.zeros((tree.node_count, len(X)), bool)
    parent = np.full(tree.node_count, -1)
    for node in range(tree.node_count):
        for child in (tree.children_left[node], tree.children_right[node]):
            if child != -1:
                parent[child] = node
    for i, x in enumerate(X):
        node = oracle.leaf(tree, x)
        while node != -1:
            passes[node, i] = True
            node = parent[node]
    return passes


def gini_cross(inside, outside):
    """1 - sum of p p', of (labels, weights)."""
    classes = np.unique(np.concatenate((inside[0], outside[0])))
    p, q = ([np.average(y == c, weights=w) for c in classes] for y, w in (inside, outside))
    return 1.0 - np.dot(p, q)


def squared_cross(inside, outside):
    """(in-bag variance + mean out-of-bag squared error of the in-bag mean) / 2."""
    mean = np.average(inside[0], weights=inside[1])
    variance, error = (
        np.average((y - mean) ** 2, weights=w) for y, w in (inside, outside)
    )  # fmt: skip
    return (variance + error) / 2.0


def ufi(tree, X, y, w_in, w_out, cross, judged_by=None):
    """Zhou and Hooker's measure of one tree; with w_out=w_in it is MDI.

    Splits are skipped if a side has no row of weight in `judged_by`, `w_out` by default.
    """
    judged_by = w_out if judged_by is None else judged_by
    passes = rows_of_nodes(tree, X)
    values = np.zeros(tree.n_features)
    for node in range(tree.node_count):
        children = [tree.children_left[node], tree.children_right[node]]
        if children[0] == -1 or any((judged_by * passes[c]).sum() == 0 for c in children):
            continue
        burden = []
        for k in (node, *children):
            inside, outside = (
                (y[passes[k] & (w > 0)], w[passes[k] & (w > 0)]) for w in (w_in, w_out)
            )
            burden.append(inside[1].sum() * cross(inside, outside))
        values[tree.feature[node]] += (burden[0] - burden[1] - burden[2]) / w_in.sum()
    return values


def mdi_oob(tree, X, y, w_in, w_out):
    """Li et al.: the out-of-bag mean of f_j(x) . y, row by row, with f_j of the in-bag means."""
    labels = np.eye(y.max() + 1)[y] if y.dtype.kind == "i" else y[:, np.newaxis]
    passes = rows_of_nodes(tree, X)
    mean = [np.average(labels, axis=0, weights=w_in * p) for p in passes]
    values = np.zeros(tree.n_features)
    for i in np.flatnonzero(w_out):
        node = 0
        while tree.children_left[node] != -1:
            left, right = tree.children_left[node], tree.children_right[node]
            child = left if passes[left, i] else right
            step = np.dot(mean[child] - mean[node], labels[i])
            values[tree.feature[node]] += w_out[i] * step / w_out.sum()
            node = child
    return values


def in_bag_weight(draws, y, params):
    weight = np.bincount(draws, minlength=len(y)).astype(float)
    if params.get("class_weight") == "balanced_subsample":
        weight *= compute_sample_weight("balanced", y, indices=draws)
    return weight


@EACH_CASE
@pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
def test_formulas_of_the_papers(kind, load, params, weighted):
    with_gaps = weighted and not params.keys() & {"criterion", "monotonic_cst"}
    X, y = small(load, missing=0.2 if with_gaps else 0.0)
    row_weight = np.random.RandomState(1).randint(3, size=len(y)) if weighted else np.ones(len(y))
    forest = kind(4, random_state=0, **params).fit(X, y)
    cross = squared_cross if load is load_diabetes else gini_cross
    results = {
        method: unbiased_mdi(forest, X, y, method=method, sample_weight=row_weight)
        for method in ("ufi", "mdi_oob")
    }
    told = optimism(forest, X, y, sample_weight=row_weight)
    plain, unjudged = np.zeros((2, X.shape[1]))
    for t, (estimator, draws) in enumerate(
        zip(forest.estimators_, forest.estimators_samples_, strict=True)
    ):
        w_in = in_bag_weight(draws, y, params)
        w_out = row_weight * (w_in == 0)
        unit = np.var(y) if load is load_diabetes else 1.0
        for method, expected in (
            ("ufi", ufi(estimator.tree_, X, y, w_in, w_out, cross)),
            ("mdi_oob", mdi_oob(estimator.tree_, X, y, w_in, w_out)),
        ):
            np.testing.assert_allclose(
                results[method].per_tree[t] / unit, expected / unit, atol=1e-10
            )
        mine = ufi(estimator.tree_, X, y, w_in, w_in, cross) / 4
        plain += mine
        unjudged += mine - ufi(estimator.tree_, X, y, w_in, w_in, cross, judged_by=w_out) / 4
    np.testing.assert_allclose(told.mdi_by_depth.sum(axis=0), plain, rtol=1e-9, atol=1e-9 * unit)
    np.testing.assert_allclose(told.unjudged_by_depth.sum(axis=0), unjudged, atol=1e-9 * unit)
    np.testing.assert_allclose(told.by_depth.sum(axis=0), told.by_feature, atol=1e-9 * unit)
    np.testing.assert_allclose(told.by_feature, plain - results["ufi"].values, atol=1e-9 * unit)
    for result in results.values():
        d = result.per_tree
        np.testing.assert_allclose(result.values, d.mean(axis=0))
        np.testing.assert_allclose(result.standard_error, d.std(axis=0) / 2, rtol=1e-9)
        assert ("squared error" if load is load_diabetes else "Gini") in result.unit + result.bias


@given(
    counts=arrays(np.int64, (2, 4), elements=st.integers(0, 20)).filter(
        lambda c: c.sum(axis=1).all()
    )
)
def test_cross_impurity_is_the_mean_of_both_and_their_distance(counts):
    """H' = (G_in + G_oob) / 2 + |p - p'|^2 / 2: what the vector form of the module rests on."""
    inside, outside = ((np.repeat(np.arange(4), c), np.ones(c.sum())) for c in counts)
    p, q = counts / counts.sum(axis=1, keepdims=True)
    expected = (1 - p @ p + 1 - q @ q) / 2 + ((p - q) ** 2).sum() / 2
    assert gini_cross(inside, outside) == pytest.approx(expected)


@pytest.mark.parametrize(("n_classes", "categorical"), [(2, False), (3, True), (1, True)])
def test_noise_has_mean_zero_and_mdi_not(n_classes, categorical):
    """The null case of Strobl et al. (2007)."""
    found = noise_bias(40, n_trees=10, n_classes=n_classes, categorical=categorical)
    assert np.abs(found.z_score(found.ufi)).max() < 3.0
    assert np.abs(found.z_score(found.mdi_oob)).max() < 3.0
    assert found.z_score(found.mdi).min() > 5.0
    if not categorical:
        assert (np.diff(found.mdi.mean(axis=0)[1:]) > 0.0).all()  # more levels, more of it


def test_optimism_of_noise_and_signal_by_depth():
    rng = np.random.RandomState(0)
    X = rng.normal(size=(400, 3))
    y = (X[:, 0] > 0) ^ (rng.uniform(size=400) < 0.1)
    forest = RandomForestClassifier(40, random_state=0, max_features=None).fit(X, y)
    told = optimism(forest, X, y)
    value = unbiased_mdi(forest, X, y)
    assert value.values.argmax() == 0
    assert value.z_score()[0] > 20
    # The cut at 0 comes first and is confirmed; what comes later is not.
    first = told.by_depth[0, 0] / told.mdi_by_depth[0, 0]
    assert abs(first) < 0.1
    later = told.by_depth[3:].sum(axis=0) / told.mdi_by_depth[3:].sum(axis=0)
    assert later.min() > 0.8
    assert (told.unjudged_by_depth <= told.mdi_by_depth + 1e-12).all()
    assert told.unjudged_by_depth.sum() > 0.0
    depths = [tree.get_depth() for tree in forest.estimators_]
    assert len(told.by_depth) == max(depths)


@pytest.mark.parametrize("method", ["ufi", "mdi_oob"])
def test_same_for_every_n_jobs_and_for_adopted_and_sparse_forests(method):
    for ours, peer, load in (
        (RandomForestClassifier, PeerClassifier, load_iris),
        (RandomForestRegressor, PeerRegressor, load_diabetes),
    ):
        X, y = small(load)
        X[np.random.RandomState(0).uniform(size=X.shape) < 0.5] = 0.0
        a = ours(12, random_state=0).fit(X, y)
        mine = unbiased_mdi(a, X, y, method=method)
        for n_jobs in (1, 2):
            again = unbiased_mdi(a, X, y, method=method, n_jobs=n_jobs)
            np.testing.assert_array_equal(mine.per_tree, again.per_tree)
        one, two = (optimism(a, X, y, method=method, n_jobs=n_jobs) for n_jobs in (1, 2))
        np.testing.assert_array_equal(one.by_depth, two.by_depth)
        sparse = csr_matrix(X)
        for forest, table in (
            (peer(12, random_state=0).fit(X, y), X),
            (ours(12, random_state=0).fit(sparse, y), sparse),
        ):
            theirs = unbiased_mdi(forest, table, y, method=method)
            np.testing.assert_allclose(mine.per_tree, theirs.per_tree, rtol=1e-9, atol=1e-9)


def test_lone_roots_of_a_sparse_table_say_nothing():
    X = csr_matrix(small(load_iris)[0])
    forest = RandomForestRegressor(3, random_state=0).fit(X, np.ones(X.shape[0]))
    np.testing.assert_array_equal(unbiased_mdi(forest, X, np.ones(X.shape[0])).values, 0.0)


def test_zero_of_y_counts_in_mdi_oob_only():
    X, y = small(load_diabetes)
    a, b = ((RandomForestRegressor(5, random_state=0).fit(X, t), t) for t in (y, y + 1024.0))
    np.testing.assert_allclose(
        unbiased_mdi(a[0], X, a[1]).values, unbiased_mdi(b[0], X, b[1]).values, rtol=1e-9
    )
    moved = [unbiased_mdi(f, X, t, method="mdi_oob").values for f, t in (a, b)]
    assert np.abs(moved[0] - moved[1]).max() > 1.0


@pytest.mark.parametrize("method", ["ufi", "mdi_oob"])
def test_what_rounding_leaves_of_a_split_is_zero(method):
    """One row has another y, and no split on it helps a row out of bag: 1e-19 was a share of it."""
    X = np.random.RandomState(1).randn(120, 3)
    y = np.zeros(120)
    y[3] = 1.0
    for seed in range(5):
        forest = RandomForestRegressor(5, random_state=seed).fit(X, y)
        values = unbiased_mdi(forest, X, y, method=method).per_tree
        assert ((values == 0.0) | (np.abs(values) > 1e-12)).all()


def test_groups_are_sums():
    X, y = small(load_iris)
    forest = RandomForestClassifier(10, random_state=0).fit(X, y)
    groups = {"sepal": [0, 1], "petal": [2, 3]}
    for measure in (mdi, lambda f, **kw: unbiased_mdi(f, X, y, **kw)):
        single, joint = measure(forest), measure(forest, groups=groups)
        np.testing.assert_allclose(joint.values, single.values.reshape(2, 2).sum(axis=1))
        np.testing.assert_allclose(joint.per_tree[:, 1], single.per_tree[:, 2:].sum(axis=1))
        assert list(joint.feature_names) == ["sepal", "petal"]
    single, joint = (optimism(forest, X, y, groups=g) for g in (None, groups))
    np.testing.assert_allclose(joint.by_depth[:, 0], single.by_depth[:, :2].sum(axis=1))


@pytest.mark.parametrize("load", [load_iris, load_diabetes])
def test_raw_mdi_is_the_sum_over_splits(load):
    """As in ranger and randomForest: rows x impurity, trees of one node count 0."""
    X, y = small(load)
    kind = RandomForestRegressor if load is load_diabetes else RandomForestClassifier
    cross = squared_cross if load is load_diabetes else gini_cross
    forest = kind(6, random_state=0).fit(X, y)
    raw = mdi(forest, normalize=False)
    for d, tree, draws in zip(
        raw.per_tree, forest.estimators_, forest.estimators_samples_, strict=True
    ):
        w = in_bag_weight(draws, y, {})
        np.testing.assert_allclose(d, w.sum() * ufi(tree.tree_, X, y, w, w, cross), rtol=1e-9)
    np.testing.assert_allclose(raw.values, raw.per_tree.mean(axis=0))
    alone = kind(3, min_samples_leaf=0.9, random_state=0).fit(X, y)
    assert not mdi(alone, normalize=False).per_tree.any()
    assert not unbiased_mdi(alone, X, y).values.any()
    assert optimism(alone, X, y).by_depth.shape == (0, X.shape[1])


def test_trees_without_out_of_bag_rows_are_left_out():
    X, y = small(load_iris, 12)
    forest = RandomForestClassifier(30, max_samples=36, random_state=0).fit(X, y)
    n_left = [len(oracle.out_of_bag(d, len(X))) for d in forest.estimators_samples_]
    assert 0 in n_left
    result = unbiased_mdi(forest, X, y)
    np.testing.assert_array_equal(np.isnan(result.per_tree).all(axis=1), np.array(n_left) == 0)
    told = optimism(forest, X, y)
    np.testing.assert_allclose(told.by_depth.sum(axis=0), told.by_feature, atol=1e-12)
    soaked = RandomForestClassifier(2, max_samples=2000, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="max_samples"):
        unbiased_mdi(soaked, X, y)


def test_refusals():
    X, y = small(load_iris)
    forest = RandomForestClassifier(2, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="method='ufy' is not known"):
        unbiased_mdi(forest, X, y, method="ufy")
    with pytest.raises(ValueError, match="bootstrap=True"):
        unbiased_mdi(RandomForestClassifier(2, bootstrap=False).fit(X, y), X, y)
    with pytest.raises(ValueError, match="not the table"):
        optimism(forest, X[::-1], y[::-1])
    with pytest.raises(ValueError, match="Groups overlap"):
        mdi(forest, groups=[[0, 1], [1, 2]])


@pytest.mark.parametrize("method", ["ufi", "mdi_oob"])
def test_which_splits_out_of_bag_rows_judge(method):
    """UFI needs rows on both sides; MDI-oob compares a side that has some with the node."""
    X, y = small(load_iris)
    forest = RandomForestClassifier(5, random_state=0).fit(X, y)
    n_one_sided = 0
    for t, splits in judge_splits(check_forest(forest, X, y, None), method, 1):
        rows = np.setdiff1d(np.arange(len(y)), forest.estimators_samples_[t])
        tree = forest.estimators_[t].tree_
        reached = np.asarray(tree.decision_path(X[rows].astype(np.float32)).sum(axis=0)).ravel()
        left, right = (
            reached[side[splits.node]] > 0 for side in (tree.children_left, tree.children_right)
        )
        expected = left & right if method == "ufi" else left | right
        np.testing.assert_array_equal(splits.is_judged, expected)
        n_one_sided += np.count_nonzero(left != right)
    assert n_one_sided > 0


@pytest.mark.parametrize("measure", [unbiased_mdi, optimism, conditional_permutation])
def test_classes_that_are_hardly_out_of_bag_are_named(measure):
    """Drawn by weights that balance them, the rows of a rare class never are: all is 0."""
    X = np.random.RandomState(0).normal(size=(100, 3))
    y = (X[:, 0] > np.sort(X[:, 0])[-7]).astype(int)
    forest = RandomForestClassifier(20, class_weight="balanced", random_state=0).fit(X, y)
    with pytest.warns(UserWarning, match=r"Rows of class 1 are out of bag .*1: 0\.0%"):
        measure(forest, X, y)
    assert (unbiased_mdi(forest, X, y).values == 0.0).all()
