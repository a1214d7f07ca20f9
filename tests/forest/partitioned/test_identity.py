"""The forest of a table in partitions is the forest of the whole table, bit for bit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forest import RandomForestClassifier, RandomForestRegressor
from forest.partitioned.choice_of_subsets import join_cells
from forest.partitioned.engines import LocalEngine
from forest.partitioned.fit import fit_together
from forest.partitioned.growth import Size
from forest.partitioned.histograms import FIRST, OpenRows
from forest.partitioned.open_rows import list_rows
from forest.partitioned.table.targets import fixed_point, step_of
from forest.sampling.block_draws import BLOCK, counts_in_blocks, draws_in_blocks
from importance import drop_column
from tests.examples import examples
from tests.forest.partitioned.same import assert_same_forest

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*never out of bag", "ignore:Distinct values of X become equal in single precision"
)
KEYED = {"n_estimators": 3, "max_bins": 255, "feature_draw": "keyed", "random_state": 0}


def grow(forest, X, y, cuts=(), small_rows=50, n_jobs=1, histogram_bytes=1 << 16):
    """Fit on the parts of a table that is cut before some rows."""
    engine = LocalEngine(n_jobs)
    X_parts, y_parts = np.split(X, cuts), np.split(y, cuts)
    size = Size(small_rows=small_rows, histogram_bytes=histogram_bytes)
    return fit_together(forest, engine, X_parts, y_parts, len(X_parts), size)


def make_table(seed, n_rows, n_features, share_missing=0.0):
    """Columns of many values, of few, of one, and of some that count as one."""
    random = np.random.RandomState(seed)
    X = random.randn(n_rows, n_features)
    kinds = [lambda x: x, lambda x: np.round(3 * x), lambda x: 0 * x, lambda x: 1 + 1e-6 * x]
    for j in range(n_features):
        X[:, j] = kinds[random.randint(len(kinds))](X[:, j])
    X[random.rand(n_rows, n_features) < share_missing] = np.nan
    return X, random


@pytest.mark.parametrize("n_parts", [1, 2, 3, 7])
@pytest.mark.parametrize("n_classes", [2, 10])
def test_classes(n_parts, n_classes):
    X, random = make_table(1, 3000, 8, 0.05)
    y = (np.nan_to_num(X[:, 0]) * 2 + random.randn(3000) > 0) + random.randint(
        n_classes - 1, size=3000
    )
    forest = RandomForestClassifier(**KEYED)
    local = forest.fit(X, y)
    cuts = np.sort(random.randint(3001, size=n_parts - 1))  # sizes differ, some may be empty
    assert_same_forest(grow(forest, X, y, cuts), local)


@pytest.mark.parametrize("n_parts", [1, 2, 3, 7])
@pytest.mark.parametrize("share_missing", [0.0, 0.05])
def test_numbers(n_parts, share_missing):
    X, random = make_table(2, 3000, 8, share_missing)
    y = np.nan_to_num(X[:, 0]) * 1e3 + random.randn(3000)
    forest = RandomForestRegressor(**KEYED)
    cuts = np.sort(random.randint(3001, size=n_parts - 1))
    assert_same_forest(grow(forest, X, y, cuts), forest.fit(X, fixed_point(y)))


@examples(40)
@given(
    seed=st.integers(0, 2**16),
    n_rows=st.sampled_from([1, 2, 7, 60, 400]),
    n_features=st.integers(1, 5),
    share_missing=st.sampled_from([0.0, 0.1, 0.9]),
    small_rows=st.sampled_from([0, 10, 100, 10_000]),
    n_jobs=st.sampled_from([1, 2]),
    criterion=st.sampled_from(["gini", "entropy", "squared_error"]),
    params=st.fixed_dictionaries({
        "max_bins": st.sampled_from([2, 5, 255]),
        "min_samples_leaf": st.sampled_from([1, 3, 20]),
        "min_samples_split": st.sampled_from([2, 10]),
        "max_depth": st.sampled_from([None, 1, 4]),
        "max_features": st.sampled_from([None, 1, "sqrt"]),
        "min_impurity_decrease": st.sampled_from([0.0, 1e-3]),
        "min_weight_fraction_leaf": st.sampled_from([0.0, 0.05]),
        "ccp_alpha": st.sampled_from([0.0, 0.01]),
        "bootstrap": st.booleans(),
        "precision": st.sampled_from(["float32", "float64"]),
    }),
)  # fmt: skip
def test_any_table_any_cut(
    seed, n_rows, n_features, share_missing, small_rows, n_jobs, criterion, params
):
    X, random = make_table(seed, n_rows, n_features, share_missing)
    params = {**KEYED, **params, "criterion": criterion}
    cuts = np.sort(random.randint(n_rows + 1, size=random.randint(4)))
    if criterion == "squared_error":
        forest, y = RandomForestRegressor(**params), random.randn(n_rows) * 100.0
        local = forest.fit(X, fixed_point(y))
    else:
        forest, y = RandomForestClassifier(**params), random.randint(3, size=n_rows)
        local = forest.fit(X, y)
    assert_same_forest(grow(forest, X, y, cuts, small_rows, n_jobs), local)


@examples(25)
@given(
    seed=st.integers(0, 2**16),
    n_rows=st.sampled_from([2, 60, 800]),
    n_classes=st.sampled_from([0, 2, 4]),
    n_categories=st.sampled_from([2, 6, 30, 300]),
    share_missing=st.sampled_from([0.0, 0.1]),
    small_rows=st.sampled_from([0, 20, 10_000]),
    params=st.fixed_dictionaries({
        "min_category_ratio": st.sampled_from([0.0, 5.0]),
        "max_depth": st.sampled_from([None, 3]),
        "max_features": st.sampled_from([None, 1]),
        "min_samples_split": st.sampled_from([2, 10]),
    }),
)  # fmt: skip
def test_categories(seed, n_rows, n_classes, n_categories, share_missing, small_rows, params):
    X, random = make_table(seed, n_rows, 4, share_missing)
    X[:, 1:3] = random.randint(n_categories, size=(n_rows, 2)) ** 2
    X[random.rand(n_rows) < share_missing, 1] = np.nan
    effect = random.randn(n_categories**2)[np.nan_to_num(X[:, 1]).astype(int)]
    params = {**KEYED, **params, "categorical_features": [1, 2]}
    cuts = np.sort(random.randint(n_rows + 1, size=random.randint(4)))
    if n_classes:
        y = (effect * n_classes + random.randn(n_rows)).astype(int) % n_classes
        forest = RandomForestClassifier(**params)
        local = forest.fit(X, y)
    else:
        y = effect + random.randn(n_rows)
        forest = RandomForestRegressor(**params)
        local = forest.fit(X, fixed_point(y))
    assert_same_forest(grow(forest, X, y, cuts, small_rows), local)


@pytest.mark.parametrize("least", [2, 3, 7, 50])
@pytest.mark.parametrize("share_missing", [0.0, 0.3])
def test_few_rows_on_a_side(least, share_missing):
    """Cells have several rows: the limit counts rows."""
    X, random = make_table(9, 1500, 6, share_missing)
    y = random.randint(2, size=1500)
    forest = RandomForestClassifier(**KEYED, min_samples_leaf=least)
    assert_same_forest(grow(forest, X, y, [700], small_rows=0), forest.fit(X, y))


def test_first_rows_of_categories_are_joined():
    one, other = np.array([[3, FIRST - 7], [0, 0]]), np.array([[2, FIRST - 20], [5, FIRST - 21]])
    expected = [[5, FIRST - 7], [5, FIRST - 21]]
    np.testing.assert_array_equal(join_cells(one, other), expected)
    np.testing.assert_array_equal(join_cells(other, one), expected)


def test_draws_of_a_share_of_the_rows():
    X, random = make_table(3, 500, 4)
    y = random.randint(2, size=500)
    forest = RandomForestClassifier(**KEYED, max_samples=0.3)
    assert_same_forest(grow(forest, X, y, [200]), forest.fit(X, y))


def test_draws_in_blocks():
    """Any range of rows is drawn alone; all together have the law of the bootstrap."""
    assert BLOCK == 65_536  # draws of forests that were saved depend on it
    n = 3 * BLOCK + 1000
    whole = counts_in_blocks(5, n, n, 0, n)
    assert whole.sum() == n
    np.testing.assert_array_equal(np.bincount(draws_in_blocks(5, n, n), minlength=n), whole)
    for first, end in ((0, 1), (BLOCK - 5, BLOCK + 5), (100_000, n), (n - 1, n)):
        np.testing.assert_array_equal(counts_in_blocks(5, n, n, first, end), whole[first:end])
    expected = np.exp(-1.0) * n / np.array([1, 1, 2, 6, 24])  # Poisson, nearly
    assert np.abs(np.bincount(whole)[:5] - expected).max() < 5 * np.sqrt(n)
    per_block = np.add.reduceat(whole, range(0, n, BLOCK))
    assert (np.abs(per_block - [BLOCK, BLOCK, BLOCK, 1000]) < 5 * np.sqrt(BLOCK)).all()


@pytest.mark.parametrize("max_samples", [None, 0.3])
def test_keyed_draws_of_rows(max_samples):
    n = BLOCK + 5000
    X, random = make_table(6, n, 3)
    y = random.randint(2, size=n)
    params = {**KEYED, "max_depth": 3, "bootstrap_draw": "keyed", "max_samples": max_samples}
    forest = RandomForestClassifier(**params)
    local = forest.fit(X, y)
    assert_same_forest(grow(forest, X, y, [5, n // 2], small_rows=5000), local)
    for tree, draws in enumerate(local.estimators_samples_):
        assert len(draws) == (n if max_samples is None else int(max_samples * n))
        assert local.estimators_[tree].tree_.n_node_samples[0] == len(np.unique(draws))
    with pytest.raises(ValueError, match="bootstrap_draw"):
        RandomForestClassifier(bootstrap_draw="keyed", replace=False).fit(X[:50], y[:50])


@pytest.mark.parametrize("voting", ["soft", "majority"])
@pytest.mark.parametrize("bootstrap_draw", ["sequence", "keyed"])
def test_out_of_bag_score(voting, bootstrap_draw):
    X, random = make_table(7, 600, 5)
    params = {**KEYED, "n_estimators": 20, "oob_score": True, "bootstrap_draw": bootstrap_draw}
    y = (X.sum(axis=1) + random.randn(600) > 2).astype(int)
    forest = RandomForestClassifier(**params, voting=voting)
    model, local = grow(forest, X, y, [5, 5, 300], n_jobs=2), forest.fit(X, y)
    assert model.oob_score_ == pytest.approx(local.oob_score_, rel=1e-14)
    y = fixed_point(100 + X.sum(axis=1) + random.randn(600))
    forest = RandomForestRegressor(**params)
    model, local = grow(forest, X, y, [5, 5, 300]), forest.fit(X, y)
    assert model.oob_score_ == pytest.approx(local.oob_score_, rel=1e-10)
    assert grow(forest, X, np.full(600, 2.0)).oob_score_ == 1.0  # as r2_score of a constant target
    params["n_estimators"] = 2
    with pytest.warns(UserWarning, match="never out of bag"):
        grow(RandomForestRegressor(**params), X, y)


def test_the_score_of_one_row_out_of_bag():
    """R2 needs two rows, accuracy one."""
    X, n_in_bag = np.arange(6.0).reshape(3, 2), []
    for kind, y in ((RandomForestRegressor, [0.0, 1.0, 2.0]), (RandomForestClassifier, [0, 1, 1])):
        forest = kind(**{**KEYED, "n_estimators": 1}, oob_score=True)
        with pytest.warns(UserWarning, match="never out of bag"):
            model = grow(forest, X, np.array(y), [1])
        n_in_bag.append(len(np.unique(model.estimators_samples_[0])))
        assert np.isnan(model.oob_score_) == (kind is RandomForestRegressor)
    assert n_in_bag == [2, 2]


class AnyOrder(LocalEngine):
    """Answers arrive, and are joined, as they come."""

    def __init__(self, random):
        super().__init__(1)
        self._random = random

    def reduce(self, function, join, *handles, common=()):
        items = list(zip(*handles, strict=True))
        answers = [function(*items[i], *common) for i in self._random.permutation(len(items))]
        while len(answers) > 1:
            two = [answers.pop(self._random.randint(len(answers))) for _ in range(2)]
            answers.append(join(*two))
        return answers[0]


@pytest.mark.parametrize("kind", [RandomForestClassifier, RandomForestRegressor])
@pytest.mark.parametrize("seed", range(3))
def test_any_order_of_arrival(kind, seed):
    X, random = make_table(seed, 900, 5, 0.05)
    X[:, 4] = random.randint(40, size=900)
    y = random.randint(3, size=900) + 2 * (X[:, 4] % 3 == 0)
    forest = kind(**KEYED, categorical_features=[4], oob_score=True)
    cuts = np.sort(random.randint(901, size=6))
    engine, parts = AnyOrder(random), (np.split(X, cuts), np.split(y, cuts))
    model = fit_together(forest, engine, *parts, 7, Size(small_rows=100))
    assert_same_forest(model, forest.fit(X, y))
    assert model.oob_score_ == pytest.approx(forest.oob_score_, rel=1e-12)


class Apart(LocalEngine):
    """Of two processes, as far as growth knows."""

    n_processes = 2


@pytest.mark.parametrize("held_bytes", [0, 1 << 20])
@pytest.mark.parametrize("kind", [RandomForestClassifier, RandomForestRegressor])
def test_codes_are_sent_or_held(held_bytes, kind, monkeypatch):
    """Rows of small nodes come with their codes, or where the codes are."""
    monkeypatch.setattr("forest.partitioned.small_nodes._ROWS_TAKEN", 150)
    X, random = make_table(10, 900, 5, 0.1)
    y = random.randint(3, size=900)
    forest, cuts = kind(**KEYED), [0, 350, 351, 351]
    parts = np.split(X, cuts), np.split(y, cuts)
    size = Size(small_rows=200, held_bytes=held_bytes)
    model = fit_together(forest, Apart(2), *parts, 5, size)
    assert_same_forest(model, forest.fit(X, fixed_point(y) if kind is RandomForestRegressor else y))


@given(seed=st.integers(0, 2**16), n_segments=st.integers(1, 6), most=st.sampled_from([3, 300]))
def test_lists_of_rows(seed, n_segments, most):
    """They say which rows are in some segments, wherever these begin, and if they are empty; steps
    of more than a byte, and weights of more than four bits, are among them."""
    random = np.random.RandomState(seed)
    n_rows = 70_000
    segments = [
        np.sort(random.choice(n_rows, random.randint(most), replace=False))
        for _ in range(n_segments)
    ]
    rows = np.concatenate(segments).astype(np.uint32)
    weight = random.choice([1, 2, 3, 14, 15, 16, 300], len(rows)).astype(np.uint16)
    opened = OpenRows(rows, weight, np.cumsum([0, *map(len, segments)]), 0)
    some = np.flatnonzero(random.rand(n_segments) < 0.7)
    some = some if len(some) else np.array([0])
    listed = list_rows(opened, some)
    for i, s in enumerate(some):
        span = slice(*listed.start[i : i + 2])
        np.testing.assert_array_equal(listed.rows[span], segments[s])
        np.testing.assert_array_equal(listed.weight[span], weight[slice(*opened.start[s : s + 2])])


def test_progress():
    X, random = make_table(8, 200, 3)
    told = []
    forest = RandomForestClassifier(**KEYED, callback=told.append)
    grow(forest, X, random.randint(2, size=200), [100])
    assert [progress.n_done for progress in told] == [1, 2, 3]


def test_it_is_an_ordinary_forest():
    X, _ = make_table(4, 400, 4)
    y = np.array(["no", "yes"])[(X[:, 0] > 0).astype(int)]
    forest = RandomForestClassifier(**KEYED)
    model, local = grow(forest, X, y, [100, 300]), forest.fit(X, y)
    np.testing.assert_array_equal(model.predict_proba(X), local.predict_proba(X))
    np.testing.assert_array_equal(model.classes_, local.classes_)
    np.testing.assert_array_equal(model.feature_importances_, local.feature_importances_)
    judged, expected = model.out_of_bag(X, y), local.out_of_bag(X, y)
    assert judged.loss == expected.loss


def test_importances_are_those_of_the_fit():
    """Parameters that were changed since are warned of, and not used; refits took them."""
    random = np.random.RandomState(0)
    X = random.randn(200, 3)
    forest = RandomForestClassifier(5, max_bins=16, feature_draw="keyed", random_state=0)
    model = grow(forest, X, X[:, 0] > 0.0, [80, 81])
    local = forest.fit(X, X[:, 0] > 0.0)
    assert model._grown_with == local._grown_with
    before = drop_column(model, X, X[:, 0] > 0.0, on=2)
    model.set_params(max_samples=0.1, bootstrap=False)
    with pytest.warns(UserWarning, match="were changed after the fit"):
        after = drop_column(model, X, X[:, 0] > 0.0, on=2)
    np.testing.assert_array_equal(before.values, after.values)


@pytest.mark.filterwarnings("error")
def test_targets_that_rounding_takes_are_warned_of():
    """Far from 0, as seconds since 1970 are, all may be rounded to one: trees were lone roots."""
    X = np.arange(300.0).reshape(-1, 1)
    model = RandomForestRegressor(2, max_bins=8, feature_draw="keyed")
    far = 1e9 + X[:, 0] / 300.0
    for call in (lambda: grow(model, X, far, [100, 200]), lambda: fixed_point(far)):
        with pytest.warns(UserWarning, match="multiples of 256, of which only 0.0039 lie"):
            call()
    grow(model, X, far - 1e9, [100, 200])
    grow(model, X, np.full(300, 1e9 + 0.1), [100, 200])  # of one value nothing is lost
    whole = 2000.0 + X[:, 0] % 25  # nor of multiples of a step
    np.testing.assert_array_equal(fixed_point(whole, 10**6), whole)
    assert len(fixed_point([])) == 0


def test_steps_keep_sums_of_squares_whole():
    for largest in (1e-30, 0.1, 1.0, 3.0, 1e6):
        for n_draws in (1, 10, 1000, 10**6, 10**9):
            step = step_of(largest, n_draws)
            assert n_draws * np.ceil(largest / step) ** 2 <= 2**53 * 1.01
            assert n_draws * np.ceil(largest / (step / 4)) ** 2 > 2**53
    np.testing.assert_array_equal(fixed_point([1.0, 2.0, 365.0], 1000), [1.0, 2.0, 365.0])
