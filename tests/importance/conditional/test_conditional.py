"""Conditional permutation: cells and neighbours row by row, and what the measure promises."""

import warnings
from itertools import product

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from scipy.stats import rankdata, spearmanr
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.ensemble import RandomForestClassifier as PeerClassifier
from sklearn.ensemble import RandomForestRegressor as PeerRegressor

from benchmarks.studies.importance_designs import independent_given_the_rest, strobl_2008
from forest import RandomForestClassifier, RandomForestRegressor
from importance import conditional_permutation, oob_permutation
from importance.conditional.association import Association
from importance.conditional.donors import Bins, exchange_within, find_neighbors
from tests.oracles import forests as oracle

pytestmark = pytest.mark.filterwarnings("ignore:Most out-of-bag rows")


def small(load, n=90, missing=0.0):
    """Some rows of a data set; its first column rounded, so that it is discrete."""
    X, y = load(return_X_y=True)
    rng = np.random.RandomState(0)
    rows = rng.permutation(len(y))[:n]
    X = X[rows].astype(np.float32)
    X[:, 0] = np.digitize(X[:, 0], np.quantile(X[:, 0], [0.3, 0.6]))
    X[rng.uniform(size=X.shape) < missing] = np.nan
    return X, y[rows]


def conditions(X, threshold):
    """Per column the others whose |Spearman| reaches the threshold."""
    rho = np.abs(spearmanr(X)[0])
    return [
        [k for k in range(X.shape[1]) if k != j and rho[j, k] >= threshold]
        for j in range(X.shape[1])
    ]  # fmt: skip


def cell_of(tree, x, columns, discrete):
    """The cell of a row: per column its value, or on which side of each cut of the tree it lies."""
    found = []
    for column in columns:
        nodes = np.flatnonzero(tree.feature == column)
        if column in discrete:
            found.append(str(x[column]))
        elif len(nodes):
            cuts = tuple(x[column] <= tree.threshold[node] for node in nodes)
            found.append("missing" if np.isnan(x[column]) else cuts)
    return tuple(found)


def within_cells(tree, X, y, weight, loss, j, columns, discrete):
    """Mean increase over all donors in the cell of each row, and how many rows have others."""
    cells = [cell_of(tree, x, columns, discrete) for x in X]
    base = oracle.row_losses(oracle.values(tree, X), y, loss)
    increase, n_movable = 0.0, 0
    for i in range(len(X)):
        donors = [d for d in range(len(X)) if cells[d] == cells[i]]
        moved = np.repeat(X[[i]], len(donors), axis=0)
        moved[:, j] = X[donors, j]
        losses = oracle.row_losses(oracle.values(tree, moved), np.repeat(y[i], len(donors)), loss)
        increase += weight[i] * (losses.mean() - base[i])
        n_movable += len(donors) > 1
    return increase / weight.sum(), n_movable


@pytest.mark.parametrize(
    ("kind", "load", "loss"),
    [
        (RandomForestClassifier, load_iris, "zero_one"),
        (PeerClassifier, load_iris, "brier"),
        (RandomForestRegressor, load_diabetes, "squared_error"),
    ],
)
@pytest.mark.parametrize("params", [{}, {"max_leaf_nodes": 7}], ids=str)
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_cells_are_the_grid_of_the_trees_cuts(kind, load, loss, params, missing):
    X, y = small(load, missing=missing)
    forest = kind(4, random_state=1, max_features=0.5, **params).fit(X, y)
    sets = conditions(np.nan_to_num(X), 0.3)
    condition = dict(enumerate(sets))
    discrete = [j for j in range(X.shape[1]) if len(np.unique(X[:, j])) <= 9]
    assert 0 in discrete
    assert len(discrete) < X.shape[1]
    weight = np.random.RandomState(0).randint(3, size=len(y)) if missing else np.ones(len(y))
    result = conditional_permutation(
        forest, X, y, condition=condition, loss=loss, sample_weight=weight
    )
    expected = np.zeros((4, X.shape[1]))
    n_movable, n_rows = np.zeros((2, X.shape[1]))
    for t, draws in enumerate(forest.estimators_samples_):
        tree, rows = forest.estimators_[t].tree_, oracle.out_of_bag(draws, len(X))
        for j in np.unique(tree.feature[tree.feature >= 0]):
            expected[t, j], n = within_cells(
                tree, X[rows], y[rows], weight[rows], loss, j, sets[j], discrete
            )
            n_movable[j] += n
            n_rows[j] += len(rows)
    unit = np.var(y) if loss == "squared_error" else 1.0
    np.testing.assert_allclose(result.per_tree / unit, expected / unit, atol=1e-10)
    np.testing.assert_array_equal(np.isnan(result.movable), n_rows == 0)
    np.testing.assert_allclose(np.nan_to_num(result.movable), n_movable / np.maximum(n_rows, 1))


def test_categories_share_a_cell_if_every_split_treats_them_alike():
    """Missing ones have a cell of their own."""
    rng = np.random.RandomState(0)
    n = 300
    kind = rng.randint(30, size=n)
    effect = rng.normal(size=30)
    X = np.column_stack((kind, effect[kind] + rng.normal(size=n), rng.normal(size=n)))
    y = effect[kind] + X[:, 1] + 0.3 * rng.normal(size=n)
    is_missing = rng.uniform(size=n) < 0.1
    X[is_missing, 0] = np.nan
    forest = RandomForestRegressor(
        4, categorical_features=[0], max_leaf_nodes=12, max_features=None, random_state=0
    ).fit(X, y)
    result = conditional_permutation(forest, X, y, condition={1: [0]})
    for t, draws in enumerate(forest.estimators_samples_):
        tree, rows = forest.estimators_[t].tree_, oracle.out_of_bag(draws, n)
        nodes = np.flatnonzero(tree.feature == 0)
        side = [[c in tree.categories.of(v)[0] for v in nodes] for c in range(30)]
        cell = np.array(["" if is_missing[row] else str(side[kind[row]]) for row in rows])
        assert 1 < len(np.unique(cell)) < 30
        total = 0.0
        for i, row in enumerate(rows):
            donors = rows[cell == cell[i]]
            moved = np.repeat(X[[row]], len(donors), axis=0)
            moved[:, 1] = X[donors, 1]
            own = forest.estimators_[t].predict(X[[row]])
            error = (forest.estimators_[t].predict(moved) - y[row]) ** 2 - (own - y[row]) ** 2
            total += error.mean()
        assert result.per_tree[t, 1] == pytest.approx(total / len(rows))


def test_trees_without_rows_of_weight_say_nothing():
    X, y = small(load_diabetes)
    forest = RandomForestRegressor(8, random_state=0).fit(X, y)
    weight = np.zeros(len(y))
    weight[forest.estimators_samples_[2]] = 1.0  # none of them is out of bag for this tree
    found = conditional_permutation(forest, X, y, sample_weight=weight)
    assert np.isnan(found.per_tree[2]).all()
    others = np.delete(found.per_tree, 2, axis=0)
    np.testing.assert_allclose(found.values, others.mean(axis=0))
    np.testing.assert_allclose(found.standard_error, others.std(axis=0) / np.sqrt(7))


def test_more_cells_than_integers_can_number():
    """Rows of a cell are alike in every column, however many cells could be."""
    rng = np.random.RandomState(0)
    numbers = rng.randint(2, size=(40, 3)) << 30
    found = exchange_within([Bins(number, 1 << 31) for number in numbers.T], 40)
    cells = np.split(found.rows, found.row_start[1:-1])
    alike = [np.flatnonzero((numbers == one).all(axis=1)).tolist() for one in numbers]
    assert sorted(map(sorted, cells)) == sorted(
        cell for i, cell in enumerate(alike) if cell[0] == i and len(cell) > 1
    )


def test_neighbours_are_the_nearest_by_ranks():
    rng = np.random.RandomState(5)  # of the first table whose sixth and seventh neighbour never tie
    X = rng.normal(size=(120, 3)).astype(np.float32)
    X[:, 1] = np.exp(3 * X[:, 0] + rng.normal(size=120))
    y = X[:, 0] + X[:, 2] + rng.normal(size=120)
    forest = RandomForestRegressor(5, random_state=0, max_features=None).fit(X, y)
    condition = {0: [1, 2], 1: [0], 2: []}
    result = conditional_permutation(
        forest, X, y, condition=condition, method="neighbours", n_neighbors=6
    )
    place = rankdata(X, axis=0).astype(int)
    n_movable = 0
    for t, draws in enumerate(forest.estimators_samples_):
        tree, rows = forest.estimators_[t].tree_, oracle.out_of_bag(draws, len(X))
        base = oracle.row_losses(oracle.values(tree, X), y, "squared_error")
        for j in (0, 1):
            increase = 0.0
            for i in rows:
                distance = ((place[:, condition[j]] - place[i, condition[j]]) ** 2).sum(axis=1)
                distance[i] = 1 << 30
                assert len({*np.sort(distance)[5:7]}) == 2  # ties would be broken at random
                donors = [d for d in np.argsort(distance)[:6] if d in rows]
                n_movable += j == 0 and len(donors) > 0
                if donors:
                    moved = np.repeat(X[[i]], len(donors), axis=0)
                    moved[:, j] = X[donors, j]
                    losses = oracle.row_losses(oracle.values(tree, moved), y[i], "squared_error")
                    increase += losses.mean() - base[i]
            assert result.per_tree[t, j] == pytest.approx(increase / len(rows))
    n_rows = sum(len(oracle.out_of_bag(d, len(X))) for d in forest.estimators_samples_)
    assert result.movable[0] == pytest.approx(n_movable / n_rows)
    assert result.movable[2] == 1.0
    assert [list(names) for names in result.conditioned_on] == [["x1", "x2"], ["x0"], []]


def test_neighbours_beside_gaps_and_categories():
    """Ranks lie in [0, 1], a gap is 1 above the highest, and two categories are 1 apart."""
    rng = np.random.RandomState(0)
    X = np.column_stack((rng.normal(size=80), rng.randint(3, size=80), rng.normal(size=80)))
    X[rng.uniform(size=80) < 0.3, 0] = np.nan
    known = ~np.isnan(X[:, 0])
    ranks = np.full((80, 2), 2.0)
    ranks[known, 0] = (rankdata(X[known, 0]) - 1) / (known.sum() - 1)
    ranks[:, 1] = (rankdata(X[:, 2]) - 1) / 79
    apart = ((ranks[:, np.newaxis] - ranks) ** 2).sum(axis=2) + (X[:, [1]] != X[:, 1])
    np.fill_diagonal(apart, np.inf)
    is_categorical = np.array([False, True, False])
    found = find_neighbors(X, np.arange(3), is_categorical, 50, np.random.RandomState(0))
    there = np.sort(np.take_along_axis(apart, found, axis=1), axis=1)
    np.testing.assert_allclose(there, np.sort(apart, axis=1)[:, :50], atol=1e-12)


@pytest.mark.parametrize("method", ["cells", "neighbours"])
@pytest.mark.parametrize(
    ("kind", "load"), [(RandomForestClassifier, load_iris), (RandomForestRegressor, load_diabetes)]
)
def test_without_conditions_it_is_the_marginal_value(method, kind, load):
    X, y = small(load, missing=0.1)
    forest = kind(8, random_state=0).fit(X, y)
    free = {j: [] for j in range(X.shape[1])}
    result = conditional_permutation(forest, X, y, condition=free, method=method)
    marginal = oob_permutation(forest, X, y)
    scale = np.var(y)
    np.testing.assert_allclose(result.per_tree / scale, marginal.per_tree / scale, atol=1e-10)
    assert (result.movable == 1.0).all()


@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("categorical", [None, [2]])
@pytest.mark.parametrize("threshold", [0.3, 1.0])
def test_sorted_donors_go_where_others_go(missing, categorical, threshold, monkeypatch):
    X, y = small(load_diabetes, 150, missing)
    X[:, 2] = np.digitize(X[:, 2], np.nanquantile(X[:, 2], [0.2, 0.5, 0.7]))
    params = {"categorical_features": categorical, "random_state": 0}
    forest = RandomForestRegressor(4, **params).fit(X, y)
    found = []
    for least in (0, 1_000):
        monkeypatch.setattr("importance.conditional.exchange._LONG", least)
        found.append(conditional_permutation(forest, X, y, threshold=threshold))
    np.testing.assert_array_equal(found[0].per_tree, found[1].per_tree)


def test_groups_move_by_one_index():
    """Columns of a group are given together, so a group of all columns swaps whole rows."""
    X, y = small(load_iris)
    forest = RandomForestClassifier(6, random_state=0).fit(X, y)
    result = conditional_permutation(forest, X, y, groups={"all": [0, 1, 2, 3]}, loss="brier")
    for d, estimator, draws in zip(
        result.per_tree, forest.estimators_, forest.estimators_samples_, strict=True
    ):
        rows = oracle.out_of_bag(draws, len(X))
        values = oracle.values(estimator.tree_, X[rows])
        base = oracle.row_losses(values, y[rows], "brier").mean()
        swapped = [
            oracle.row_losses(np.tile(v, (len(rows), 1)), y[rows], "brier").mean() for v in values
        ]
        assert d[0] == pytest.approx(np.mean(swapped) - base)
    pair = conditional_permutation(forest, X, y, groups={"petal": [2, 3]}, condition={"petal": [0]})
    assert list(pair.conditioned_on[0]) == ["x0"]


@pytest.mark.parametrize("method", ["cells", "neighbours"])
def test_same_for_every_n_jobs_and_for_adopted_and_sparse_forests(method):
    for ours, peer, load in (
        (RandomForestClassifier, PeerClassifier, load_breast_cancer),
        (RandomForestRegressor, PeerRegressor, load_diabetes),
    ):
        X, y = small(load)
        X[np.random.RandomState(0).uniform(size=X.shape) < 0.4] = 0.0
        sparse = csr_matrix(X)
        a = ours(9, random_state=0, max_depth=4).fit(X, y)
        mine = conditional_permutation(a, X, y, method=method, random_state=0)
        again = conditional_permutation(a, X, y, method=method, random_state=0, n_jobs=2)
        np.testing.assert_array_equal(mine.per_tree, again.per_tree)
        np.testing.assert_array_equal(mine.movable, again.movable)
        for forest, table in (
            (peer(9, random_state=0, max_depth=4).fit(X, y), X),
            (ours(9, random_state=0, max_depth=4).fit(sparse, y), sparse),
        ):
            theirs = conditional_permutation(forest, table, y, method=method, random_state=0)
            np.testing.assert_allclose(mine.per_tree, theirs.per_tree, rtol=1e-9, atol=1e-9)
            np.testing.assert_allclose(mine.movable, theirs.movable)


# ------------------------------------------------------------------------------ the designs


@pytest.mark.parametrize("method", ["cells", "neighbours"])
def test_correlated_features_lose_what_is_not_theirs(method):
    """Strobl et al. (2008)."""
    X, y = strobl_2008(600, np.random.RandomState(0))
    forest = RandomForestRegressor(
        150, max_features=8, min_samples_leaf=15, random_state=0, n_jobs=1
    ).fit(X, y)
    marginal = oob_permutation(forest, X, y)
    result = conditional_permutation(forest, X, y, method=method, random_state=0)
    assert list(result.conditioned_on[3]) == ["x0", "x1", "x2"]
    assert list(result.conditioned_on[4]) == []
    assert result.values[3] <= 0.5 * marginal.values[3]
    strong = [0, 1, 4, 5]
    assert result.values[3] < result.values[strong].min()
    assert result.z_score()[strong].min() > 5.0
    np.testing.assert_allclose(result.values[4:], marginal.values[4:], rtol=1e-9)
    assert result.movable.min() > 0.5


def test_nothing_is_left_of_a_feature_that_discrete_ones_explain():
    """Over sets: the mean is 0 within three standard errors, and that of the marginal is not."""
    values = []
    for seed in range(40):
        X, y = independent_given_the_rest(300, np.random.RandomState(seed))
        forest = RandomForestRegressor(10, max_features=1, random_state=seed).fit(X, y)
        values.append(
            [
                conditional_permutation(forest, X, y, threshold=0.2).values,
                oob_permutation(forest, X, y).values,
            ]
        )
    values = np.array(values)
    z = values.mean(axis=0) / (values.std(axis=0, ddof=1) / np.sqrt(len(values)))
    assert abs(z[0, 2]) < 3.0
    assert z[1, 2] > 10.0
    assert z[0, :2].min() > 10.0


def test_few_movable_rows_are_told():
    X, y = strobl_2008(600, np.random.RandomState(0))
    full = RandomForestRegressor(5, max_features=8, random_state=0).fit(X, y)
    with pytest.warns(UserWarning, match="alone in their cell.*x3 .*min_samples_leaf.*neighbours"):
        result = conditional_permutation(full, X, y)
    assert result.movable[:4].max() < 0.5
    assert result.movable[5] > 0.5
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        conditional_permutation(full, X, y, method="neighbours")
    with pytest.warns(UserWarning, match="no neighbour out of bag.*Raise n_neighbors"):
        conditional_permutation(full, X, y, method="neighbours", n_neighbors=1)


@pytest.mark.parametrize("method", ["cells", "neighbours"])
def test_features_that_no_tree_uses_need_no_conditioning_set(method, monkeypatch):
    """With those of all columns, memory ran out on wide tables."""
    rng = np.random.RandomState(0)
    X, y = rng.normal(size=(40, 300)), rng.normal(size=40)
    forest = RandomForestRegressor(3, max_depth=3, random_state=0).fit(X, y)
    used = set(np.concatenate([t.tree_.feature[t.tree_.feature >= 0] for t in forest]))
    asked, with_all = [], Association.with_all
    monkeypatch.setattr(
        Association, "with_all", lambda self, j: asked.append(j) or with_all(self, j)
    )
    found = conditional_permutation(forest, X, y, method=method)
    assert set(asked) == used
    sets = conditions(X.astype(np.float32), 0.2)
    for j, names in enumerate(found.conditioned_on):
        assert list(names) == [f"x{k}" for k in sets[j] if j in used]
    given = conditional_permutation(forest, X, y, method=method, condition=dict(enumerate(sets)))
    np.testing.assert_array_equal(found.per_tree, given.per_tree)
    assert not found.per_tree[:, sorted({*range(300)} - used)].any()


# ------------------------------------------------------------------------------ association


def test_association_of_numbers_is_spearmans():
    rng = np.random.RandomState(0)
    X = rng.randint(6, size=(80, 5)).astype(float)
    X[:, 1] += X[:, 0]
    X[:, 3] -= 2 * X[:, 0]
    X[:, 4] = 0.0
    for table in (X, csr_matrix(X)):
        found = Association(table, np.zeros(5, bool))
        for j, k in product(range(4), range(4)):
            expected = abs(spearmanr(X[:, j], X[:, k])[0])
            assert found.with_all(j)[k] == pytest.approx(expected)
        assert found.with_all(0)[4] == 0.0


def test_association_with_categories():
    """What the categories explain of the ranks or of the other categories, beyond chance."""
    rng = np.random.RandomState(0)
    n = 2000
    kind = rng.randint(8, size=n)
    merged = np.array([3, 1, 0, 1, 2, 3, 0, 2])[kind]
    number = np.array([5.0, -3.0, 0.0, 4.0, 1.0, 2.0, -1.0, 3.0])[kind]
    noise, many = rng.normal(size=n), rng.randint(400, size=n)
    X = np.column_stack((kind, merged, number, noise, many)).astype(float)
    found = Association(X, np.array([True, True, False, False, True]))
    assert found.with_all(0)[[1, 2]] == pytest.approx(1.0)
    assert found.with_all(2)[0] == pytest.approx(1.0)
    assert 0.2 < found.with_all(1)[0] < 1.0
    ranks = rankdata(number)
    between = sum((merged == c).sum() * (ranks[merged == c].mean() - ranks.mean()) ** 2
                  for c in range(4))  # fmt: skip
    share = between / ((ranks - ranks.mean()) ** 2).sum()
    expected = np.sqrt(1 - (1 - share) * (n - 1) / (n - 4))
    assert found.with_all(2)[1] == pytest.approx(expected)
    assert found.with_all(1)[2] == pytest.approx(expected)
    for j in range(4):
        assert found.with_all(4)[j] < 0.2
    assert max(found.with_all(3)[[0, 1, 2, 4]]) < 0.2


def test_refusals():
    X, y = small(load_iris)
    forest = RandomForestClassifier(2, random_state=0).fit(X, y)
    for params, message in (
        ({"method": "knn"}, "method='knn' is not known"),
        ({"threshold": 1.5}, "threshold=1.5 must lie between"),
        ({"n_neighbors": 0}, "n_neighbors=0"),
        ({"condition": {"age": [0]}}, "'age' is not among"),
        ({"condition": {0: [7]}}, "Column 7"),
        ({"condition": {0: [0, 1]}}, "'x0' cannot be conditioned on itself"),
        ({"condition": {0: [1], "x0": [2]}}, "contains 'x0' twice"),
        ({"condition": {(0, 1): [2]}}, "is neither a single feature nor"),
        ({"loss": "squared_error"}, "use one of"),
    ):
        with pytest.raises(ValueError, match=message):
            conditional_permutation(forest, X, y, **params)
    with pytest.raises(TypeError, match="must map features to lists of columns"):
        conditional_permutation(forest, X, y, condition=[0, 1])
    many = np.column_stack((np.arange(90), X[:, 1:]))
    forest = RandomForestClassifier(2, random_state=0, categorical_features=[0]).fit(many, y)
    at_most = np.arange(64.0)[:, np.newaxis], [0], np.array([True]), 3, np.random.RandomState(0)
    assert find_neighbors(*at_most).shape == (64, 3)
    with pytest.raises(ValueError, match="90 categories"):
        conditional_permutation(forest, many, y, method="neighbours", condition={1: [0]})
