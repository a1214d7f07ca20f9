"""Every `definition` of `oob_permutation` against a plain version of its source."""

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier as PeerClassifier
from sklearn.ensemble import RandomForestRegressor as PeerRegressor
from sklearn.metrics import accuracy_score, r2_score

from benchmarks.oracles import permutation as oracle
from forest import RandomForestClassifier, RandomForestRegressor
from importance import oob_permutation
from importance.core.fitted_forest import check_forest, names_of
from importance.core.groups import parse_groups
from importance.permutation.definitions import DEFINITIONS
from importance.permutation.tree_level import Options

FORESTS = {
    "classes": (RandomForestClassifier, PeerClassifier),
    "numbers": (RandomForestRegressor, PeerRegressor),
}
EACH_TASK = pytest.mark.parametrize("task", FORESTS)
EACH_SIDE = pytest.mark.parametrize("adopted", [False, True], ids=["ours", "adopted"])
N, P, T = 90, 4, 6


def fitted(task, adopted, **params):
    """A forest with its table: ties, a noise column, three classes or numbers."""
    rng = np.random.RandomState(2)
    X = np.round(rng.normal(size=(N, P)), 1).astype(np.float32)
    y = X[:, 0] + X[:, 1] * X[:, 2] + 0.4 * rng.normal(size=N)
    if task == "classes":
        y = np.array(["a", "b", "c"])[np.digitize(y, (-0.5, 0.7))]
    params = {"random_state": 0, "max_depth": 4, **params}
    forest = FORESTS[task][adopted](T, **params).fit(X, y)
    codes = np.searchsorted(forest.classes_, y).astype(float) if task == "classes" else y
    return forest, X, y, codes


def judge(name, forest, X, y, **asked):
    """The definition for given permutations."""
    table = check_forest(forest, X, y)
    return DEFINITIONS[name].evaluate(table, parse_groups(None, names_of(forest)), Options(**asked))


def within_trees(forest):
    """A permutation of the out-of-bag rows for every tree, column and repeat: a function."""
    rows = [oracle.out_of_bag(draws, N) for draws in forest.estimators_samples_]

    def order(t, column, repeat=0):
        return np.random.RandomState([t, column, repeat]).permutation(len(rows[t]))

    return rows, order


def of_trees(forest, X, codes, loss, rows, order):
    """Increases of the losses of the out-of-bag rows of each tree: a list of (P, n_rows)."""
    return [
        np.array(
            [
                oracle.given(tree.tree_, X[mine], codes[mine], loss, [j], order(t, j))
                for j in range(P)
            ]
        )
        for t, (tree, mine) in enumerate(zip(forest.estimators_, rows, strict=True))
    ]


# ----------------------------------------------------------------- randomForest and ranger


@EACH_TASK
@EACH_SIDE
@pytest.mark.parametrize("scale", [False, True])
def test_random_forest(task, adopted, scale):
    """rf.c and regrf.c: sums over trees, divided by T; standard errors; rows and classes."""
    forest, X, y, codes = fitted(task, adopted)
    rows, order = within_trees(forest)
    said = of_trees(
        forest, X, codes, "zero_one" if task == "classes" else "squared_error", rows, order
    )
    d = np.array([one.mean(axis=1) for one in said])
    mean = d.sum(axis=0) / T
    error = np.sqrt(((d**2).sum(axis=0) / T - mean**2) / T)
    divisor = np.where(error < 2.2e-16, 1.0, error) if scale else 1.0
    result = judge(
        "randomForest", forest, X, y, scale=scale, per_row=True, per_class=task == "classes",
        shuffles=lambda t: lambda column, n: order(t, column),
    )  # fmt: skip
    np.testing.assert_allclose(result.values, mean / divisor, atol=1e-10)
    np.testing.assert_allclose(result.standard_error, error / divisor, atol=1e-10)
    local, times = np.zeros((N, P)), np.zeros(N)
    for mine, one in zip(rows, said, strict=True):
        local[mine] += one.T
        times[mine] += 1
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(result.per_row, local / times[:, np.newaxis], atol=1e-10)
    for c in range(3 if task == "classes" else 0):
        mine = [one[:, codes[r] == c] for one, r in zip(said, rows, strict=True)]
        d = np.array([one.mean(axis=1) if one.size else np.zeros(P) for one in mine])
        mean = d.sum(axis=0) / T
        error = np.sqrt(((d**2).sum(axis=0) / T - mean**2) / T)
        divisor = np.where(error < 2.2e-16, 1.0, error) if scale else 1.0
        np.testing.assert_allclose(result.per_class[c], mean / divisor, atol=1e-9)


def test_random_forest_divides_by_all_trees():
    """Trees without out-of-bag rows, of a class or at all, count as 0."""
    X = np.random.RandomState(0).normal(size=(12, 2))
    y = np.array([0] * 10 + [1] * 2)
    forest = RandomForestClassifier(40, max_samples=36, random_state=0).fit(X, y)
    rows = [oracle.out_of_bag(draws, 12) for draws in forest.estimators_samples_]
    has_rows = np.array([len(mine) > 0 for mine in rows])
    has_class = np.array([(y[mine] == 1).any() for mine in rows])
    assert 0 < has_rows.sum() < 40
    ours = oob_permutation(forest, X, y, per_class=True)
    theirs = oob_permutation(forest, X, y, definition="randomForest", per_class=True)
    np.testing.assert_allclose(theirs.values, ours.values * has_rows.mean(), atol=1e-12)
    np.testing.assert_allclose(
        theirs.per_class[1], ours.per_class[1] * has_class.mean(), atol=1e-12
    )


@pytest.mark.parametrize("name", ["randomForest", "ranger"])
def test_scaling_leaves_alone_what_has_no_error(name):
    """A feature that no tree uses has 0, not 0 / 0."""
    forest, X, y, _ = fitted("numbers", False)
    X[:, 3] = 1.0
    forest = forest.fit(X, y)
    plain = oob_permutation(forest, X, y, definition=name)
    scaled = oob_permutation(forest, X, y, definition=name, scale=True)
    assert scaled.values[3] == scaled.standard_error[3] == 0.0
    np.testing.assert_allclose(scaled.values[:3], plain.z_score()[:3])


@EACH_SIDE
@pytest.mark.parametrize("loss", ["zero_one", "true_class", "squared_error"])
@pytest.mark.parametrize("scale", [False, True])
def test_ranger(adopted, loss, scale):
    """Tree.cpp and Forest.cpp; its casewise sums are divided by T."""
    task = "numbers" if loss == "squared_error" else "classes"
    forest, X, y, codes = fitted(task, adopted)
    rows, order = within_trees(forest)
    said = of_trees(forest, X, codes, loss, rows, order)
    d = np.array([one.mean(axis=1) for one in said])
    mean = d.sum(axis=0) / T
    if scale:
        variance = (d**2).sum(axis=0) / T - mean**2
        mean = np.where(variance > 0, mean / np.sqrt(np.maximum(variance, 1e-300) / T), mean)
    casewise = np.zeros((N, P))
    for mine, one in zip(rows, said, strict=True):
        casewise[mine] += one.T / T
    result = judge(
        "ranger", forest, X, y, scale=scale, per_row=True, loss=loss,
        shuffles=lambda t: lambda column, n: order(t, column),
    )  # fmt: skip
    np.testing.assert_allclose(result.values, mean, atol=1e-9)
    np.testing.assert_allclose(result.per_row, casewise, atol=1e-10)


# ------------------------------------------------------------------ rfpimp and Breiman (2001)


@EACH_TASK
@EACH_SIDE
def test_rfpimp(task, adopted):
    """Accuracy or R2 of the out-of-bag votes, with one permutation of all rows."""
    forest, X, y, codes = fitted(task, adopted)
    trees = [tree.tree_ for tree in forest.estimators_]
    orders = [np.random.RandomState(j).permutation(N) for j in range(P)]

    def score(X):
        total, times = oracle.vote(trees, forest.estimators_samples_, lambda t, rows: X[rows], N)
        known = times > 0
        if task == "classes":
            return accuracy_score(codes[known], total[known].argmax(axis=1))
        return r2_score(codes[known], total[known, 0] / times[known])

    base = score(X)
    expected = [base - score(oracle.exchanged(X, [j], orders[j])) for j in range(P)]
    result = judge("rfpimp", forest, X, y, shuffles=lambda column: lambda repeat, n: orders[column])
    np.testing.assert_allclose(result.values, expected, atol=1e-10)


@EACH_SIDE
def test_breiman_2001(adopted):
    """Section 10: votes of all trees, each with its own permutation; percent of the error."""
    forest, X, y, codes = fitted("classes", adopted)
    trees = [tree.tree_ for tree in forest.estimators_]
    _, order = within_trees(forest)

    def error_rate(X_of_tree):
        votes, times = oracle.vote(trees, forest.estimators_samples_, X_of_tree, N, is_hard=True)
        known = times > 0
        return np.mean(votes[known].argmax(axis=1) != codes[known])

    base = error_rate(lambda t, rows: X[rows])
    expected = [
        [
            100 * (error_rate(lambda t, rows, j=j, r=r: oracle.exchanged(
                X[rows], [j], order(t, j, r))) - base) / base
            for j in range(P)
        ]
        for r in range(2)
    ]  # fmt: skip
    result = judge(
        "breiman2001", forest, X, y, n_repeats=2,
        shuffles=lambda column: lambda what, n: order(what[0], column, what[1]),
    )  # fmt: skip
    np.testing.assert_allclose(result.values, np.mean(expected, axis=0), atol=1e-10)
    np.testing.assert_allclose(
        result.standard_error, np.std(expected, axis=0, ddof=1) / np.sqrt(2), atol=1e-10
    )


def test_breiman_2001_needs_an_error():
    y = np.arange(40) % 2
    X = np.column_stack((100.0 * y, np.ones(40)))
    forest = RandomForestClassifier(30, max_features=None, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="error of the forest is 0"):
        oob_permutation(forest, X, y, definition="breiman2001")


# -------------------------------------------------------------------------------- expectations


@pytest.mark.parametrize("name", ["randomForest", "ranger"])
def test_without_permutations_the_expectation_is_taken(name):
    """Then both are the exact values of `oob_permutation`: all trees have out-of-bag rows."""
    for task in FORESTS:
        forest, X, y, _ = fitted(task, False)
        loss = "zero_one" if hasattr(forest, "classes_") else "squared_error"
        exact = oob_permutation(forest, X, y, loss=loss)
        result = oob_permutation(forest, X, y, definition=name)
        np.testing.assert_allclose(result.values, exact.values, atol=1e-12)
        np.testing.assert_allclose(result.standard_error, exact.errors["over trees"], atol=1e-12)
        assert name in result.measure


@pytest.mark.parametrize("name", DEFINITIONS)
def test_shuffles_come_close_to_the_expectation(name):
    """The mean of many shuffles, from either half of the seeds, is the same within 4 errors."""
    forest, X, y, _ = fitted("classes", False)
    halves = [
        np.array(
            [
                oob_permutation(
                    forest, X, y, definition=name, n_repeats=5, random_state=10 * half + seed
                ).values
                for seed in range(8)
            ]
        )
        for half in range(2)
    ]
    error = np.sqrt(sum(half.var(axis=0, ddof=1) / 8 for half in halves))
    assert (np.abs(halves[0].mean(axis=0) - halves[1].mean(axis=0)) < 4 * error + 1e-12).all()
    if DEFINITIONS[name].level == "tree":
        exact = oob_permutation(forest, X, y, definition=name).values
        mean = np.concatenate(halves).mean(axis=0)
        assert (np.abs(mean - exact) < 4 * error + 1e-12).all()
