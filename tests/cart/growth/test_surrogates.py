"""Surrogates against a plain loop over nodes, features and cuts; where rows go; what is refused."""

import pickle
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.oracles import splitter
from cart import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreeRegressor,
    export_text,
    load,
)
from cart.files import DamagedModelError
from cart.interop import bridge
from cart.splitting.agreement import units_of
from cart.tree.pruning import prune
from cart.tree.tree import Tree
from forest import ExtraTreesClassifier, RandomForestClassifier, RandomForestRegressor
from tests.examples import examples


def table(seed, n=60, n_features=4, n_levels=6, share=0.2):
    """Few levels, so that there are ties; missing cells, and whole weights."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, n_levels, (n, n_features)).astype(np.float64)
    y = (X[:, 0] + X[:, -1] + rng.normal(size=n) > n_levels - 1).astype(int)
    X[rng.random(X.shape) < share] = np.nan
    return X, y, rng.integers(0, 3, n).astype(np.float64)


def agreement(X, vote, feature, style):
    """The best cut of a feature by brute force: agree, adj, threshold, low_left; or None."""
    known = ~np.isnan(X[:, feature])
    both = known & (vote != 0)
    sent = vote if style == "all" else vote[both]
    total, majority = np.abs(sent).sum(), max(sent[sent > 0].sum(), -sent[sent < 0].sum())
    best = None
    levels = np.unique(X[known, feature])
    for low, high in pairwise(levels):
        below = both & (X[:, feature] <= low)
        above = both & (X[:, feature] > low)
        if min(below.sum(), above.sum()) < 2:
            continue
        for low_left in (False, True):
            v, w = (vote[below], vote[above]) if low_left else (vote[above], vote[below])
            agree = v[v > 0].sum() - w[w < 0].sum()
            floor = max(vote[both][vote[both] > 0].sum(), -vote[both][vote[both] < 0].sum())
            if agree > max(floor, majority) and (best is None or agree > best[0]):
                best = agree, (low + high) / 2, low_left
    if best is None:
        return None
    agree, majority = best[0] / total, majority / total
    return agree, (agree - majority) / (1 - majority), best[1], best[2]


def go_left(tree, node, X, surrogates):
    """Where rows go at a node: by its split, a surrogate, or the default."""
    values = X[:, tree.feature[node]]
    left = values <= tree.threshold[node]
    for i in np.flatnonzero(np.isnan(values)):
        left[i] = tree.missing_go_to_left[node]
        for s in surrogates:
            if not np.isnan(X[i, s.feature]):
                left[i] = (X[i, s.feature] <= s.threshold) == s.low_left
                break
    return left


def leaves_of(tree, X, routes):
    """The leaf of every row, row by row."""
    leaf = np.zeros(len(X), np.int64)
    for node in range(tree.node_count):
        here = np.flatnonzero(leaf == node)
        if tree.children_left[node] >= 0 and len(here):
            left = go_left(tree, node, X[here], tree.surrogates.of(node) if routes else [])
            leaf[here] = np.where(left, tree.children_left[node], tree.children_right[node])
    return leaf


@examples(40)
@given(
    st.integers(0, 10**6), st.sampled_from(["learned", "surrogate", "majority"]),
    st.sampled_from(["all", "known"]), st.booleans(), st.sampled_from([0.0, 0.2]),
)  # fmt: skip
def test_surrogates_are_those_of_the_plain_loop(seed, missing, style, is_weighted, share):
    X, y, weight = table(seed, share=share)
    weight = weight if is_weighted else np.ones(len(y))
    model = DecisionTreeClassifier(
        surrogates=9, missing=missing, surrogate_style=style, random_state=0, precision="float64"
    ).fit(X, y, sample_weight=weight)
    tree = model.tree_
    inside = weight > 0
    X, weight = X[inside], weight[inside]
    rows = {0: np.arange(len(X))}
    for node in range(tree.node_count):
        here = rows.pop(node)
        assert len(here) == tree.n_node_samples[node]
        if tree.children_left[node] < 0:
            continue
        values = X[here, tree.feature[node]]
        left = values <= tree.threshold[node]
        vote = np.where(np.isnan(values), 0.0, np.where(left, 1.0, -1.0)) * weight[here]
        expected = []
        for feature in range(X.shape[1]):
            found = agreement(X[here], vote, feature, style)
            if feature != tree.feature[node] and found is not None:
                expected.append((feature, *found))
        expected.sort(key=lambda s: -s[1])
        found = tree.surrogates.of(node)
        assert [s.feature for s in found] == [s[0] for s in expected]
        for ours, (_, agree, adj, threshold, low_left) in zip(found, expected, strict=True):
            assert (ours.threshold, ours.low_left) == (threshold, low_left)
            assert np.allclose([ours.agree, ours.adj], [agree, adj], rtol=1e-12)
        if missing != "learned":
            lefts, rights = vote[vote > 0].sum(), -vote[vote < 0].sum()
            assert tree.missing_go_to_left[node] == (lefts >= rights)
        goes_left = go_left(tree, node, X[here], found if missing == "surrogate" else [])
        rows[tree.children_left[node]] = here[goes_left]
        rows[tree.children_right[node]] = here[~goes_left]


@pytest.mark.parametrize("kind", [RandomForestClassifier, RandomForestRegressor])
@pytest.mark.parametrize("missing", ["surrogate", "majority"])
def test_forests_send_rows_as_the_plain_walk_does(kind, missing):
    X, y, _ = table(7, n=150)
    model = kind(6, surrogates="auto", missing=missing, random_state=0, n_jobs=1).fit(X, y)
    again = kind(6, surrogates="auto", missing=missing, random_state=0, n_jobs=2).fit(X, y)
    X_new = table(8, n=80, share=0.5)[0]
    leaves = model.apply(X_new)
    values = []
    for t, estimator in enumerate(model.estimators_):
        tree = estimator.tree_
        plain = leaves_of(tree, X_new, missing == "surrogate")
        assert np.array_equal(leaves[:, t], plain)
        values.append(tree.value[plain, 0])
        theirs = again.estimators_[t].tree_
        for ours, other in zip(tree.surrogates[:-1], theirs.surrogates[:-1], strict=True):
            assert np.array_equal(ours, other, equal_nan=True)
    predicted = model.predict_proba(X_new) if hasattr(model, "classes_") else None
    mean = np.mean(values, axis=0)
    if predicted is None:
        predicted, mean = model.predict(X_new), mean[:, 0]
    assert np.allclose(predicted, mean, rtol=1e-12)


def test_the_improvement_by_a_split_with_surrogates_is_the_decrease_of_impurity():
    X, y, _ = table(3, n=200, share=0.2)
    tree = DecisionTreeClassifier(surrogates=3, random_state=0).fit(X, y).tree_
    impurity = tree.weighted_n_node_samples * tree.impurity
    children = impurity[tree.children_left] + impurity[tree.children_right]
    decrease = np.where(tree.feature >= 0, impurity - children, 0.0)
    np.testing.assert_allclose(tree.surrogates.primary, decrease, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("share", [0.0, 0.2])
@pytest.mark.parametrize("kind", [DecisionTreeClassifier, RandomForestClassifier])
def test_surrogates_to_be_read_change_no_tree(kind, share):
    X, y, _ = table(3, n=200, share=share)
    plain = kind(random_state=0).fit(X, y)
    model = kind(random_state=0, surrogates=3, competitors=2).fit(X, y)
    pairs = zip(
        getattr(plain, "estimators_", [plain]), getattr(model, "estimators_", [model]), strict=True
    )
    for ours, other in pairs:
        for name in ("feature", "threshold", "missing_go_to_left", "value", "impurity"):
            assert np.array_equal(getattr(ours.tree_, name), getattr(other.tree_, name))
        assert other.tree_.surrogates is not None
        assert ours.tree_.surrogates is None
        assert ours.tree_.competitors is None
    options = {"missing": "majority", "random_state": 0}
    for asked in ({"surrogates": 2}, {"competitors": 2}, {}):
        tree = DecisionTreeClassifier(**options, **asked).fit(X, y).tree_
        held = [name for name in ("surrogates", "competitors") if getattr(tree, name) is not None]
        assert held == [*asked]
    one, two = (
        DecisionTreeClassifier(competitors=n, random_state=0).fit(X, y).tree_ for n in (1, 2)
    )
    for node in range(one.node_count):
        assert one.competitors.of(node) == two.competitors.of(node)[:1]
    lone = DecisionTreeClassifier(competitors=1, surrogates=1).fit(X, np.zeros(len(X))).tree_
    assert lone.competitors.of(0) == lone.surrogates.of(0) == []


def test_extra_trees_keep_surrogates_too():
    X, y, _ = table(5, n=150)
    model = ExtraTreesClassifier(4, surrogates=2, missing="surrogate", random_state=0).fit(X, y)
    for t, estimator in enumerate(model.estimators_):
        tree = estimator.tree_
        plain = leaves_of(tree, X, True)
        assert np.array_equal(model.apply(X)[:, t], plain)
        counts = np.bincount(plain, minlength=tree.node_count)
        is_leaf = tree.children_left < 0
        assert np.array_equal(counts[is_leaf], tree.n_node_samples[is_leaf])


def test_drawn_features_limit_surrogates():
    X, y, _ = table(2, n=300, n_features=9, share=0.0)
    model = DecisionTreeClassifier(
        max_features=2, surrogates=9, surrogate_features="drawn", random_state=0
    ).fit(X, y)
    assert np.diff(model.tree_.surrogates.start).max() == 2


@pytest.mark.parametrize("share", [0.0, 0.2])
def test_a_constrained_feature_stands_in_for_none(share):
    """Rows that it sent would not keep its constraint."""
    rng = np.random.default_rng(0)
    first = rng.normal(size=80)
    X = np.column_stack([first, -first, rng.normal(size=80)])
    X[rng.random(80) < share, 0] = np.nan
    options = {"monotonic_cst": [0, 1, 0], "surrogates": 2, "random_state": 0}
    model = DecisionTreeRegressor(missing="surrogate", **options).fit(X, first)
    assert 1 not in model.tree_.surrogates.feature
    rows = np.column_stack([np.full(9, np.nan), np.linspace(-2, 2, 9), np.zeros(9)])
    assert (np.diff(model.predict(rows)) >= 0.0).all()
    assert 1 in DecisionTreeRegressor(**options).fit(X, first).tree_.surrogates.feature


@pytest.mark.parametrize(
    ("Tree", "missing", "seed"),
    [
        (DecisionTreeRegressor, "majority", 170),
        (DecisionTreeRegressor, "surrogate", 170),
        (ExtraTreeRegressor, "majority", 38),
    ],
)
def test_rows_without_a_value_break_no_constraint(Tree, missing, seed):
    """They move the means of both sides after the split was chosen without them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 2)).round(1)
    y = X[:, 0] + rng.normal(size=40)
    X[rng.random(X.shape) < 0.4] = np.nan
    n_surrogates = int(missing == "surrogate")
    model = Tree(monotonic_cst=[1, 1], missing=missing, surrogates=n_surrogates, random_state=0)
    model.fit(X, y)
    steps = np.linspace(-3.0, 3.0, 61)
    for other in (-1.0, 0.0, 1.0):
        for columns in ((steps, np.full(61, other)), (np.full(61, other), steps)):
            assert np.diff(model.predict(np.column_stack(columns))).min() >= 0.0


def test_pruned_trees_keep_the_surrogates_of_their_nodes():
    X, y, _ = table(4, n=200)
    model = DecisionTreeClassifier(
        ccp_alpha=0.01, surrogates=3, missing="surrogate", max_leaf_nodes=20, random_state=0
    ).fit(X, y)
    assert np.array_equal(model.apply(X), leaves_of(model.tree_, X, True))
    assert np.diff(model.tree_.surrogates.start)[model.tree_.children_left < 0].sum() == 0


def same_nodes(tree, other):
    """Pairs of numbers of the nodes that two trees have in common."""
    pairs = [(0, 0)]
    while pairs:
        one, two = pairs.pop()
        yield one, two
        if tree.children_left[one] >= 0:
            pairs += [
                (getattr(tree, side)[one], getattr(other, side)[two])
                for side in ("children_left", "children_right")
            ]


def test_what_a_pruned_tree_keeps_are_the_alternatives_of_its_nodes():
    """Though these have other numbers, and those that have become leaves have none."""
    X, y, _ = table(4, n=200)
    model = DecisionTreeClassifier(surrogates=2, competitors=2, random_state=0)
    whole = model.fit(X, y).tree_
    kept = prune(whole, 0.01)
    assert 1 < kept.n_leaves < whole.n_leaves
    for now, before in same_nodes(kept, whole):
        is_leaf = kept.children_left[now] < 0
        for name in ("surrogates", "competitors"):
            splits, all_splits = getattr(kept, name), getattr(whole, name)
            assert splits.of(now) == ([] if is_leaf else all_splits.of(before))
            assert splits.primary[now] == (0.0 if is_leaf else all_splits.primary[before])


@pytest.mark.parametrize("missing", ["surrogate", "majority"])
def test_alternatives_are_the_same_in_whatever_order_nodes_are_split(missing):
    X, y, _ = table(4, n=200)
    y = y + np.random.default_rng(0).random(200)  # no two splits are equally good
    model = DecisionTreeRegressor(
        missing=missing, surrogates=2, competitors=2, min_samples_leaf=5, random_state=0
    )
    depth_first = model.fit(X, y).tree_
    best_first = model.set_params(max_leaf_nodes=len(X)).fit(X, y).tree_
    pairs = list(same_nodes(best_first, depth_first))
    assert any(one != two for one, two in pairs)
    for one, two in pairs:
        assert best_first.feature[one] == depth_first.feature[two]
        for name in ("surrogates", "competitors"):
            assert getattr(best_first, name).of(one) == getattr(depth_first, name).of(two)


@pytest.mark.parametrize("missing", ["surrogate", "learned"])
@pytest.mark.parametrize("share", [0.0, 0.2])
def test_models_are_saved_with_surrogates(tmp_path, missing, share):
    X, y, _ = table(6, n=100, share=share)
    model = RandomForestClassifier(
        3, surrogates=2, competitors=1, missing=missing, random_state=0
    ).fit(X, y)
    model.save(tmp_path / "model")
    for again in (load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        assert np.array_equal(again.predict_proba(X), model.predict_proba(X))
        tree, other = model.estimators_[0].tree_, again.estimators_[0].tree_
        assert tree.surrogates.of(0) == other.surrogates.of(0)
        assert tree.competitors.of(0) == other.competitors.of(0)


@pytest.mark.parametrize(
    "change",
    [
        lambda s: s._replace(feature=s.feature + 9),
        lambda s: s._replace(feature=s.feature - 9),
        lambda s: s._replace(feature=np.full_like(s.feature, 4)),  # of features 0 to 3
        lambda s: s._replace(start=s.start + 1),
        lambda s: s._replace(start=s.start[:-1]),
        lambda s: s._replace(start=s.start[::-1].copy()),
        lambda s: s._replace(start=np.append(0 * s.start[:-1], s.start[-1])),  # of the last leaf
        lambda s: s._replace(threshold=s.threshold[:-1]),
        lambda s: s._replace(threshold=s.threshold * np.nan),
        lambda s: s._replace(low_left=s.low_left + 2),
        lambda s: s._replace(low_left=s.low_left.astype(float)),
        lambda s: s._replace(list_start=s.list_start + 7),
        lambda s: s._replace(agree=None),
        lambda s: s._replace(agree=s.agree[:-1]),
        lambda s: s._replace(primary=s.primary[:-1]),
        lambda s: s._replace(routes=3),
        lambda s: tuple(s),
    ],
)
def test_damaged_surrogates_are_refused(change):
    X, y, _ = table(6, n=100)
    tree = DecisionTreeClassifier(surrogates=2, missing="surrogate").fit(X, y).tree_
    Tree(tree.nodes, tree.n_features, None, tree.surrogates)
    with pytest.raises(DamagedModelError):
        Tree(tree.nodes, tree.n_features, None, change(tree.surrogates))


def test_what_cannot_be_is_refused_in_words():
    X, y, _ = table(1)
    with pytest.raises(ValueError, match="surrogates=0 keeps none"):
        DecisionTreeClassifier(missing="surrogate").fit(X, y)
    with pytest.raises(ValueError, match='missing="refuse"'):
        DecisionTreeClassifier(missing="refuse").fit(X, y)
    model = RandomForestClassifier(2, missing="refuse").fit(np.nan_to_num(X), y)
    with pytest.raises(ValueError, match='missing="refuse"'):
        model.predict(X)
    by_surrogates = DecisionTreeClassifier(missing="surrogate", surrogates=1).fit(X, y)
    with pytest.raises(ValueError, match="surrogate splits"):
        bridge.to_sklearn(by_surrogates)


@pytest.mark.parametrize("rule", [("majority", 0), ("surrogate", 1)])
@pytest.mark.parametrize(
    ("Tree", "roots"), [(DecisionTreeClassifier, {2}), (ExtraTreeRegressor, {1, 2})]
)
def test_a_node_draws_on_past_what_known_rows_do_not_vary_in(Tree, roots, rule):
    """A feature with one value is constant, whoever lacks it; so are categories that are barred."""
    rng = np.random.default_rng(0)
    X = np.column_stack([np.ones(300), rng.integers(0, 30, 300), rng.normal(size=300)])
    y = X[:, 2] > 0
    X[rng.random(300) < 0.5, 0] = X[rng.random(300) < 0.5, 1] = np.nan
    guard = {"max_features": 1, "categorical_features": [1], "min_category_ratio": 1e9}
    for seed in range(10):
        tree = Tree(random_state=seed, missing=rule[0], surrogates=rule[1], **guard).fit(X, y)
        assert tree.tree_.feature[0] in roots  # whichever was drawn first


@examples(20)
@given(st.integers(0, 10**6), st.booleans(), st.sampled_from(["squared_error", "absolute_error"]))
def test_competitors_are_those_of_the_plain_loop(seed, has_missing, criterion):
    """Of the rows that have a feature, the cut with the largest decrease of impurity x weight."""
    X, y, weight = table(seed, share=0.2 if has_missing else 0.0)
    y = 3.0 * y + weight
    tree = DecisionTreeRegressor(
        criterion=criterion, competitors=9, missing="majority", min_samples_leaf=2,
        precision="float64", random_state=0,
    ).fit(X, y).tree_  # fmt: skip

    def burden(rows):
        return len(rows) * splitter.impurity(y[rows], np.ones(len(rows)), criterion)

    rows = {0: np.arange(len(X))}
    for node in range(tree.node_count):
        here = rows.pop(node)
        if tree.children_left[node] < 0:
            assert np.isnan(tree.competitors.margin[node])
            continue
        feature = tree.feature[node]
        gains = {}
        for j in range(X.shape[1]):
            known = here[~np.isnan(X[here, j])]
            levels = np.unique(X[known, j])
            for low in levels[:-1]:
                parts = known[X[known, j] <= low], known[X[known, j] > low]
                if min(map(len, parts)) >= 2:
                    gain = burden(known) - sum(map(burden, parts))
                    gains[j] = max(gains.get(j, 0.0), gain)
        assert np.isclose(tree.competitors.primary[node], max(gains.values(), default=0.0))
        found = {c.feature: c.improvement for c in tree.competitors.of(node)}
        found = {j: g for j, g in found.items() if g > 1e-9}  # less is rounding
        expected = {j: g for j, g in gains.items() if j != feature and g > 1e-9}
        assert found == pytest.approx(expected)
        best = max(gains.values(), default=0.0)
        second = max((g for j, g in gains.items() if j != feature), default=0.0)
        margin = 1.0 - second / best if best > 0.0 else np.nan
        assert tree.competitors.margin[node] == pytest.approx(margin, abs=1e-9, nan_ok=True)
        goes_left = go_left(tree, node, X[here], [])
        rows[tree.children_left[node]] = here[goes_left]
        rows[tree.children_right[node]] = here[~goes_left]


def test_the_sides_of_competitors_are_those_of_splits_on_their_features_alone():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 6, (200, 3))
    y = np.isin(X, (1, 4)) @ [4.0, 2.0, 1.0] + rng.normal(size=200)
    stump = DecisionTreeRegressor(max_depth=1, categorical_features=[0, 1, 2], competitors=2)
    competitors = stump.fit(X, y).tree_.competitors.of(0)
    assert [c.feature for c in competitors] == [1, 2]
    alone = DecisionTreeRegressor(max_depth=1, categorical_features=[0])
    for c in competitors:
        leaves = alone.fit(X[:, [c.feature]], y).apply(np.arange(6)[:, np.newaxis])
        assert (c.left, c.right) == tuple(
            tuple(np.flatnonzero(leaves == leaf).tolist()) for leaf in (1, 2)
        )


def test_a_lone_root_has_no_competitors_and_no_surrogates():
    tree = DecisionTreeRegressor(competitors=2, surrogates=2).fit([[1.0], [2.0]], [3.0, 3.0])
    assert tree.tree_.competitors.of(0) == tree.tree_.surrogates.of(0) == []
    assert "value" in export_text(tree, surrogates=1, competitors=1)


def test_a_row_with_a_weight_has_units():
    """However small beside the others; whole weights are their own units."""
    units = units_of(np.array([1e-30, 0.3, 0.0, 0.6]))
    assert units[0] == 1
    assert units[2] == 0
    assert units[3] == pytest.approx(2.0 * units[1], rel=1e-12)
    assert 2**50 <= units.sum() <= 2**51
    np.testing.assert_array_equal(units_of(np.array([3.0, 0.0, 1.0])), [3, 0, 1])
    small = np.array([3e-310, 0.0, 1e-310])
    np.testing.assert_allclose(units_of(small) / units_of(small).sum(), [0.75, 0.0, 0.25])
