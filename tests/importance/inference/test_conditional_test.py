"""P-values given the other features: what they are computed from, and what is refused."""

from functools import partial

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from scipy.stats import false_discovery_control, ttest_1samp
from sklearn.model_selection import GroupKFold, KFold

from forest import ExtraTreesRegressor, RandomForestClassifier, RandomForestRegressor
from importance import conditional_test, drop_column

N, FOLDS = 240, 4


def make_table(seed=0):
    """x0 matters, x1 goes with it and says nothing of its own, x2 is noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, 3))
    X[:, 1] = 0.9 * X[:, 0] + 0.4 * X[:, 1]
    return X, 2.0 * X[:, 0] + rng.normal(size=N)


@pytest.fixture(scope="module")
def fitted():
    X, y = make_table()
    return RandomForestRegressor(30, max_features=1, random_state=0).fit(X, y), X, y


@pytest.fixture(scope="module")
def found(fitted):
    return conditional_test(*fitted, cv=FOLDS, random_state=0)


def test_what_has_information_of_its_own_is_found(found):
    assert found.p_values[0] < 0.01
    assert (found.p_values[1:] > 0.05).all()


def test_a_follower_is_not_charged_with_what_it_follows():
    """Permuted freely, x1 looks important: most trees ask for it in the place of x0."""
    p_values = []
    for seed in range(10):
        X, y = make_table(seed)
        forest = RandomForestRegressor(30, max_features=1, random_state=0).fit(X, y)
        p_values.append(conditional_test(forest, X, y, cv=FOLDS, random_state=0).p_values)
    low = (np.array(p_values) <= 0.05).sum(axis=0)
    assert low[0] == 10
    assert (low[1:] <= 2).all()  # more with a probability of 1 %, at a level of 5 %


def test_p_values_are_those_of_a_t_test_with_the_variance_of_refits(found):
    """Nadeau and Bengio: 1 / J + n_test / n_train of a fold's variance, in the place of 1 / J."""
    per_row = found.importances.per_row
    assert per_row.shape == (N, 3)
    inflated = np.sqrt((1.0 / FOLDS + 1.0 / (FOLDS - 1)) / (1.0 / FOLDS))
    plain = ttest_1samp(per_row, 0.0)
    np.testing.assert_allclose(found.importances.values, per_row.mean(axis=0))
    np.testing.assert_allclose(
        found.importances.standard_error, per_row.std(axis=0, ddof=1) / np.sqrt(N) * inflated
    )
    from scipy.stats import t

    np.testing.assert_allclose(found.p_values, t.sf(plain.statistic / inflated, N - 1))
    np.testing.assert_allclose(
        found.false_discovery, false_discovery_control(found.p_values, method="by")
    )


def test_dropped_columns_are_those_of_drop_column(fitted):
    found = conditional_test(*fitted, method="drop", cv=FOLDS, random_state=0)
    from sklearn.model_selection import KFold

    folds = list(KFold(FOLDS, shuffle=True, random_state=0).split(fitted[1]))
    theirs = drop_column(*fitted, on=folds)
    np.testing.assert_array_equal(found.importances.per_row, theirs.per_row)


@pytest.mark.parametrize("method", ["resample", "drop"])
@pytest.mark.parametrize("kind", [RandomForestClassifier, RandomForestRegressor])
def test_what_changes_no_prediction_has_a_p_value_of_one(kind, method):
    """Sums of equal losses differ from their multiples in the last bit: p was any number."""
    rng = np.random.default_rng(0)
    X = np.column_stack((rng.normal(size=N), np.ones(N)))
    y = X[:, 0] + 0.3 * rng.normal(size=N)
    y = y > 0.0 if kind is RandomForestClassifier else y
    forest = kind(10, max_depth=1, max_features=1.0, random_state=0).fit(X, y)
    found = conditional_test(forest, X, y, method=method, n_draws=7, random_state=0)
    assert found.p_values[0] < 1e-3
    assert found.p_values[1] == 1.0
    assert found.importances.values[1] == 0.0 or method == "drop"
    assert "x1 0 (p = 1)" in repr(found)


@pytest.mark.parametrize("function", [conditional_test, partial(drop_column, on=KFold(3))])
def test_folds_that_part_groups_of_rows_are_refused(function):
    """Noise that is equal in the rows of a group tells the group, whose y others of it have: all
    p-values were below 0.05."""
    rng = np.random.default_rng(0)
    groups = rng.permutation(np.repeat(np.arange(20), 5))
    X, y = rng.normal(size=(20, 2))[groups], rng.normal(size=20)[groups]
    forest = RandomForestRegressor(5, random_state=0).fit(X, y, groups=groups)
    with pytest.raises(ValueError, match="fitted with groups of rows, and the folds split"):
        function(forest, X, y)
    splits = list(GroupKFold(3).split(X, y, groups))
    assert len(drop_column(forest, X, y, on=splits).values) == 2


def test_threads_and_draws(fitted, found):
    again = conditional_test(*fitted, cv=FOLDS, random_state=0, n_jobs=2)
    np.testing.assert_array_equal(again.importances.per_row, found.importances.per_row)
    other = conditional_test(*fitted, cv=FOLDS, random_state=1)
    assert (other.importances.per_row != found.importances.per_row).any()


def test_every_kind_of_column_and_rare_classes():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(N, 4))
    X[:, 1] = rng.integers(3, size=N)
    X[rng.random(N) < 0.2, 2] = np.nan
    y = np.where(X[:, 0] + (X[:, 1] == 1) > 0.5, "yes", "no")
    forest = RandomForestClassifier(30, categorical_features=[1], random_state=0).fit(X, y)
    found = conditional_test(forest, X, y, cv=FOLDS, random_state=0)
    assert found.importances.loss == "brier"
    np.testing.assert_array_equal(found.p_values < 0.05, [True, True, False, False])


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"method": "guess"}, "'guess' is not known"),
        ({"n_draws": 0}, "n_draws=0"),
        ({"cv": 1}, "cv=1 must be a whole number of at least 2"),
        ({"cv": 2.5}, "cv=2.5 must be a whole number"),
        ({"cv": N + 1}, f"cv={N + 1} folds need as many rows, but there are {N}; use fewer folds"),
        ({"loss": "brier"}, "not a loss of regression"),
    ],
)
def test_what_cannot_be_is_refused(fitted, options, says):
    with pytest.raises(ValueError, match=says):
        conditional_test(*fitted, **options)


def test_a_forest_without_out_of_bag_rows_is_tested_too():
    """The rows of the folds are held out."""
    X, y = make_table()[:2]
    found = conditional_test(ExtraTreesRegressor(10, random_state=0).fit(X, y), X, y, cv=2)
    assert np.isfinite(found.p_values).all()


def test_folds_beyond_the_largest_class_are_refused():
    X, y = make_table()[0], np.arange(N) // 3
    forest = RandomForestClassifier(3, random_state=0).fit(X, y)
    says = "=4 folds need as many rows, but the largest class has 3; use fewer folds"
    with pytest.raises(ValueError, match=f"^cv{says}"):
        conditional_test(forest, X, y, cv=4)
    with pytest.raises(ValueError, match=f"^on{says}"):
        drop_column(forest, X, y, on=4)


def test_sparse_tables_and_other_votes_are_refused(fitted):
    _, X, y = fitted
    sparse = RandomForestRegressor(5, random_state=0).fit(csr_matrix(X), y)
    with pytest.raises(TypeError, match=r"X\.toarray\(\)"):
        conditional_test(sparse, csr_matrix(X), y)
    labels = (y > 0.0).astype(int)
    majority = RandomForestClassifier(5, voting="majority", random_state=0).fit(X, labels)
    with pytest.raises(ValueError, match='voting="soft"'):
        conditional_test(majority, X, labels)
    with pytest.raises(ValueError, match="not the table"):
        conditional_test(fitted[0], X[::-1], y)
