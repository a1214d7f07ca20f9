"""Double precision keeps all doubles apart; single precision says what it merges."""

import warnings
from importlib.util import find_spec

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import cart
import forest
from forest.interop.bridge import to_sklearn
from importance import drop_column, mdi, oob_permutation
from tests.agreement.same import trees_of
from tests.oracles import forests

MODELS = [
    cart.DecisionTreeClassifier,
    cart.DecisionTreeRegressor,
    cart.ExtraTreeClassifier,
    cart.ExtraTreeRegressor,
    forest.RandomForestClassifier,
    forest.RandomForestRegressor,
    forest.ExtraTreesClassifier,
    forest.ExtraTreesRegressor,
]
EACH_MODEL = pytest.mark.parametrize("kind", MODELS, ids=lambda kind: kind.__name__)

# Neighbours among doubles, whole numbers that are one in single precision, the ends of the range.
CLOSE = [
    *(1.0 + np.arange(6) * np.finfo(float).eps),
    *(2.0**24 + np.arange(6)),
    *(np.arange(-4, 5) * 5e-324),
    *(0.1, 0.1 + 1e-9, -1e39, 1e39, -np.finfo(float).max, np.finfo(float).max),
]


def draw_table(rng, n, n_features, missing=False):
    """Doubles that collide in single precision, and few of them."""
    X = rng.choice(CLOSE, (n, n_features))
    if missing:
        X[rng.random(X.shape) < 0.2] = np.nan
    return X


def ranks(X):
    """Every known value as its rank among those of its column: small whole numbers."""
    codes = np.full(X.shape, np.nan)
    for column, values in zip(codes.T, X.T, strict=True):
        known = ~np.isnan(values)
        column[known] = np.unique(values[known], return_inverse=True)[1]
    return codes


def params_for(kind, **params):
    few = {"n_estimators": 4} if issubclass(kind, forest.estimators.base.BaseForest) else {}
    return {"random_state": 0, **few, **params}


seeds = st.integers(0, 2**32 - 1)


# ------------------------------------------------------------------------------------- trees


@EACH_MODEL
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")  # scikit-learn's sum of X
@pytest.mark.filterwarnings("ignore:The number of unique classes:UserWarning")
@pytest.mark.parametrize(
    "values",
    [
        2**24 + np.arange(40),
        1_700_000_000.0 + np.arange(40),
        12_345_678_901 + np.arange(40),
        1.0 + np.arange(40) * np.finfo(float).eps,
        1e-9 * np.arange(40),
        np.arange(40) * 5e-324,
        np.linspace(-1, 1, 40) * np.finfo(float).max,
    ],
    ids=["2**24", "seconds", "ids", "neighbours", "below 1e-7", "subnormal", "huge"],
)
def test_every_value_is_told_apart(kind, values):
    """In trees on all rows: each row has its own leaf."""
    y = np.arange(40)
    params = {"bootstrap": False} if kind.__name__.startswith("RandomForest") else {}
    model = kind(**params_for(kind, precision="float64", **params)).fit(values[:, None], y)
    np.testing.assert_array_equal(model.predict(values[:, None]), y)


@given(seeds, st.sampled_from(["Classifier", "Regressor"]), st.booleans(), st.none() | st.just(6))
def test_the_tree_of_the_ranks(seed, task, missing, max_leaf_nodes):
    """Small whole numbers are exact in single precision: the same nodes, cut between the same
    values."""
    rng = np.random.default_rng(seed)
    X = draw_table(rng, rng.integers(2, 60), rng.integers(1, 4), missing)
    y, weight = rng.integers(0, 3, len(X)), rng.random(len(X)) + 0.1
    params = {"random_state": 0, "max_leaf_nodes": max_leaf_nodes}
    kind = getattr(cart, f"DecisionTree{task}")
    model = kind(precision="float64", **params).fit(X, y, weight)
    twin = kind(**params).fit(ranks(X), y, weight)
    for name in ("children_left", "feature", "n_node_samples", "missing_go_to_left", "value"):
        np.testing.assert_array_equal(getattr(model.tree_, name), getattr(twin.tree_, name))
    np.testing.assert_array_equal(model.apply(X), twin.apply(ranks(X)))


@given(seeds, st.sampled_from(["best", "random"]), st.booleans(), st.booleans())
def test_rows_go_where_the_thresholds_say(seed, splitter, missing, sparse):
    """Unseen rows too, one step from the thresholds."""
    rng = np.random.default_rng(seed)
    X = draw_table(rng, 50, 3, missing and not sparse)
    y = rng.integers(0, 3, len(X))
    model = cart.DecisionTreeClassifier(splitter=splitter, precision="float64", random_state=0)
    tree = model.fit(sp.csc_matrix(X) if sparse else X, y).tree_
    cuts = np.append(tree.threshold[np.isfinite(tree.threshold)], 0.0)
    new = rng.choice(np.concatenate((cuts, np.nextafter(cuts, np.inf))), (40, 3))
    for rows in (X, new):
        leaves = [forests.leaf(tree, row, np.float64) for row in rows]
        form = sp.csr_matrix(rows) if sparse else rows
        np.testing.assert_array_equal(model.apply(form), leaves)
        np.testing.assert_array_equal(model.predict(form), tree.value[leaves, 0].argmax(axis=1))
        np.testing.assert_array_equal(tree.apply(form), leaves)
        np.testing.assert_array_equal(tree.predict(form), tree.value[leaves, 0])
        path = model.decision_path(form)
        np.testing.assert_array_equal([row.indices.max() for row in path], leaves)
    in_leaf = np.bincount(model.apply(X), minlength=tree.node_count)
    is_leaf = tree.children_left < 0
    np.testing.assert_array_equal(in_leaf[is_leaf], tree.n_node_samples[is_leaf])


# ----------------------------------------------------------------------- forests, importances


@pytest.mark.parametrize("task", ["Classifier", "Regressor"])
def test_forests_and_importances_of_the_ranks(task):
    """Out-of-bag rows meet cuts between values that single precision takes for one."""
    codes = np.random.default_rng(0).integers(0, 30, (120, 4))  # evenly spaced: cuts in the middle
    X = np.array([2.0**24, 12_345_678_901, 1.0, 0.0]) + codes * [1.0, 1.0, 2.0**-51, 1e-323]
    y = (codes[:, 0] + codes[:, 1] > 30).astype(int) + (codes[:, 2] + codes[:, 3] > 35)
    kind = getattr(forest, f"RandomForest{task}")
    params = {"n_estimators": 15, "random_state": 0, "oob_score": True}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # rows never out of bag
        model = kind(precision="float64", **params).fit(X, y)
        twin = kind(**params).fit(codes, y)
    assert model.oob_score_ == twin.oob_score_ > 0.3
    np.testing.assert_array_equal(model.predict(X), twin.predict(codes))
    np.testing.assert_array_equal(model.apply(X), twin.apply(codes))
    assert (model.decision_path(X)[0] != twin.decision_path(codes)[0]).nnz == 0
    for measure in (
        mdi,
        lambda forest, X: oob_permutation(forest, X, y),
        lambda forest, X: oob_permutation(forest, X, y, n_repeats=2, random_state=0),
        lambda forest, X: drop_column(forest, X, y),
    ):
        if measure is mdi:
            ours, expected = mdi(model), mdi(twin)
        else:
            ours, expected = measure(model, X), measure(twin, codes)
        np.testing.assert_array_equal(ours.per_tree, expected.per_tree)
        np.testing.assert_array_equal(ours.values, expected.values)


# -------------------------------------------------------------------------------- the warning


def count(X):
    """Distinct values less those left in single precision, with a sort."""
    return [len(np.unique(c[c == c])) - len(np.unique(np.float32(c[c == c]))) for c in X.T]


def in_more_bits(X):
    """Doubles in more bits than they need."""
    return X.astype(np.longdouble) if X.dtype == np.float64 else X


def as_frame(X):
    """A DataFrame of several types, whose columns do not lie together."""
    import pandas as pd

    frame = pd.DataFrame(X, columns=list("abc"))
    return frame.assign(d=np.arange(len(X), dtype=np.int8))[["d", *"abc"]]


def as_nullable_frame(X):
    """A DataFrame of pandas' own types, the last column of another one."""
    import pandas as pd

    name = X.dtype.name.replace("uint", "UInt").replace("int", "Int").replace("float", "Float")
    return pd.DataFrame(X).astype({0: name, 1: name})


FORMS = [np.ascontiguousarray, np.asfortranarray, list, in_more_bits]
FORMS += [as_frame, as_nullable_frame] if find_spec("pandas") else []


@given(
    seeds,
    st.booleans(),
    st.booleans(),
    st.sampled_from([np.float64, np.int64, np.uint64]),
    st.sampled_from([cart.DecisionTreeRegressor, cart.ExtraTreeRegressor]),
    st.sampled_from(FORMS),
)
def test_merged_values_are_counted(seed, missing, mostly_alone, dtype, kind, form):
    rng = np.random.default_rng(seed)
    if dtype == np.float64:
        X = rng.choice(CLOSE[:-4], (80, 3)) + rng.choice([0.0, 1e-9, 1.0], (80, 3))
        X = np.where(rng.random(X.shape) < 0.9 * mostly_alone, rng.normal(size=X.shape), X)
        X[rng.random(X.shape) < 0.2 * missing] = np.nan
    else:
        X = rng.integers(0, 400 if mostly_alone else 60, (80, 3), dtype)
        X += dtype(2**24 if missing else 2**60)
    model = kind(max_depth=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(form(X), rng.random(80))
    assert model.n_merged_values_[-3:].tolist() == count(X)


@pytest.mark.parametrize("kind", [forest.RandomForestRegressor, forest.ExtraTreesRegressor])
@pytest.mark.parametrize("frame", [False, True])
def test_merged_values_are_the_same_for_every_number_of_threads(kind, frame, monkeypatch):
    """Columns of many values and of few, with gaps, and one that loses nothing."""
    rng = np.random.default_rng(0)
    X = np.c_[
        12_345_678_901 + np.arange(100.0), draw_table(rng, 100, 3, missing=True).clip(-1e38, 1e38),
        1.0 + rng.integers(0, 4, 100) * 1e-9, np.arange(100), rng.random(100),
    ]  # fmt: skip
    table = pytest.importorskip("pandas").DataFrame(X, columns=list("abcdefg")) if frame else X
    for name in ("_MIN_ROWS", "_VALUES_TAKEN"):
        monkeypatch.setattr(f"cart.table.merged_values.{name}", 1)
    told = []
    for n_jobs in (1, 2, 4):
        model = kind(n_estimators=1, random_state=0, n_jobs=n_jobs)
        told.append(warnings_of(model, table, X[:, -1]))
        assert model.n_merged_values_.tolist() == count(X)
    assert told[0] == told[1] == told[2]
    assert len(told[0]) == 1


def test_numbers_beside_texts_in_an_array_of_objects_are_counted():
    numbers = 1.0 + np.arange(40) * 1e-9
    X = np.array([*zip("ab" * 20, numbers, 2**25 + np.arange(40), strict=True)], object)
    model = cart.DecisionTreeRegressor(categorical_features=[0], max_depth=1)
    with pytest.warns(UserWarning, match="Distinct values of X become equal"):
        model.fit(X, numbers)
    assert model.n_merged_values_.tolist() == [0, *count(X[:, 1:].astype(float))]


def test_large_whole_numbers_of_a_sparse_table_merge():
    X = sp.csr_matrix(2**60 + np.arange(80).reshape(40, 2))
    model = cart.DecisionTreeRegressor(max_depth=1)
    with pytest.warns(UserWarning, match="Distinct values of X become equal"):
        model.fit(X, np.arange(40))
    assert model.n_merged_values_.tolist() == count(X.toarray())


def in_halves(X):
    """A sparse table in which each value is the sum of two."""
    X = sp.csc_matrix(X)
    return sp.csc_matrix((np.repeat(X.data / 2, 2), np.repeat(X.indices, 2), 2 * X.indptr), X.shape)


@given(seeds, st.booleans(), st.sampled_from([cart.DecisionTreeRegressor, cart.ExtraTreeRegressor]))
def test_merged_values_of_a_sparse_table_are_counted(seed, is_full, kind):
    """Zeros count as a value, and doubles that underflow to zero merge into it."""
    rng = np.random.default_rng(seed)
    some = [1.0, 1.0 + 1e-9, 1e-60, 0.1, 0.1 + 1e-12]
    X = rng.choice(some if is_full else [0.0] * 60 + some, (rng.integers(2, 40), 3))
    model = kind(max_depth=1)
    for form in (sp.csr_matrix, sp.coo_matrix, sp.csc_array, in_halves):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(form(X), np.arange(len(X)))
        assert model.n_merged_values_.tolist() == count(X)


@pytest.mark.parametrize("kind", [cart.DecisionTreeRegressor, cart.ExtraTreeRegressor])
@pytest.mark.parametrize(
    "column", [[0.0, -0.0, 1e-60, 1.0], -(2**25) - np.arange(4)], ids=["zeros", "whole"]
)
def test_zeros_of_both_signs_are_one_value_and_whole_numbers_are_no_doubles(kind, column):
    X = np.array(column)[:, np.newaxis]
    model = kind(max_depth=1)
    with pytest.warns(UserWarning, match="Distinct values of X become equal"):
        model.fit(X, np.arange(4))
    assert model.n_merged_values_.tolist() == count(X)


def test_merged_values_of_a_wide_table_are_counted():
    X = np.random.default_rng(0).random((5, 10_000))
    X[:, [70, 9_000]] = 1.0
    X[0, 70] = X[4, 9_000] = 1.0 + 1e-9
    model = cart.DecisionTreeRegressor(max_depth=1)
    with pytest.warns(UserWarning, match='Set precision="float64" to keep them apart.'):
        model.fit(X, np.arange(5))
    assert np.flatnonzero(model.n_merged_values_).tolist() == [70, 9_000]


def warnings_of(model, X, y):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y)
    return [str(w.message) for w in caught if "Distinct values of X" in str(w.message)]


@EACH_MODEL
def test_one_warning_names_the_columns_and_the_remedy(kind):
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame(
        {
            "id": 12_345_678_901 + np.arange(100),
            "small": np.arange(100),
            "seen": pd.date_range("2024-01-01", periods=100, freq="s"),
            "share": np.append(np.arange(99.0), 1.0 + 1e-9),  # 1 of 100 merges: not more than 1 %
            "shares": np.append(np.arange(98.0), [1.0 + 1e-9, 2.0 + 1e-9]),
            "null": pd.array([None, *(2**24 + np.arange(99))], dtype="Int64"),
        }
    )
    y = np.arange(100) % 3
    model = kind(**params_for(kind))
    (message,) = warnings_of(model, table, y)
    for name in ("id", "seen", "shares", "null"):
        assert f"{name} (" in message
    assert 'precision="float64"' in message
    assert "small" not in message
    assert "share " not in message
    assert model.n_merged_values_.tolist()[1::2] == [0, 1, 49]
    model.set_params(precision="float64")
    assert warnings_of(model, table, y) == []
    assert model.n_merged_values_.tolist() == [0] * 6


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_dates_and_integers_that_merge_are_named_in_any_frame(kind):
    pd, module = pytest.importorskip("pandas"), pytest.importorskip(kind)
    whole = np.append([2**24, 2**24 + 1], np.arange(98))  # 1 of 100 merges: not more than 1 %
    seen = pd.date_range("2024-01-01", periods=100, freq="s")
    table = pd.DataFrame({"seen": seen, "whole": whole, "share": whole / 3})
    if kind != "pandas":
        table = module.from_pandas(table) if kind == "polars" else module.Table.from_pandas(table)
    (message,) = warnings_of(cart.DecisionTreeClassifier(), table, whole % 3)
    assert "seen (98 of 100), whole (1 of 100). " in message


@pytest.mark.parametrize("form", [*FORMS, sp.csr_matrix])
def test_values_that_rounding_has_split_are_not_warned_of(form):
    """Means of equal numbers, added up in another order, as imputers make them."""
    rng = np.random.default_rng(0)
    tens = rng.integers(-9, 10, (60, 5)) / 10
    X = np.c_[np.r_[tens.mean(axis=1), tens[:, ::-1].mean(axis=1)], np.arange(120), np.ones(120)]
    model = cart.DecisionTreeRegressor()
    assert warnings_of(model, form(X), X[:, 1]) == []
    assert model.n_merged_values_[-3:].tolist() == count(X)
    assert count(X)[0] > 0.02 * len(np.unique(X[:, 0]))
    X[:4, 2] += 1e-9 * np.arange(4)
    (message,) = warnings_of(model, form(X), X[:, 1])
    assert "(3 of 4)." in message


def test_rounding_before_a_column_is_centred_is_none_of_its_values():
    """A scaler subtracts the mean, so that what was rounding stands out beside values near 0."""
    rng = np.random.default_rng(0)
    tens = rng.integers(-9, 10, (60, 5)) / 10 + 9.0
    X = np.r_[tens.mean(axis=1), tens[:, ::-1].mean(axis=1)][:, np.newaxis]
    X -= X.mean()
    model, y = cart.DecisionTreeRegressor(), np.arange(120)
    values = np.unique(X)
    gap, size = np.diff(values), np.abs(values[1:])
    assert np.any((gap < 1e-14) & (gap > 2.0**-46 * size))
    assert warnings_of(model, X, y) == []
    assert count(X)[0] > 0.02 * len(values)
    X[0] = 1e20  # a code for missing values is not what the others are measured by
    X[1:9, 0] = 1.0 + 1e-9 * np.arange(8)
    assert len(warnings_of(model, X, y)) == 1
    X[:, 0] = np.r_[10.0 ** -np.arange(50.0, 80.0), np.linspace(0.1, 1.0, 90)]
    assert len(warnings_of(model, X, y)) == 1  # float32 has no numbers so small


@pytest.mark.parametrize("form", ["array", "frame", "sparse", "sparse frame"])
@EACH_MODEL
def test_whole_numbers_beyond_doubles_are_not_said_to_be_kept_apart(kind, form):
    X = np.c_[2**60 + np.arange(40), 2**53 - np.arange(40)]
    if form == "sparse":
        X = sp.csr_matrix(X)
    if form == "sparse frame":
        X = (
            pytest.importorskip("pandas")
            .DataFrame(X)
            .astype("Sparse[int]")
            .set_axis([*"01"], axis=1)
        )
    if form == "frame":
        X = pytest.importorskip("pandas").DataFrame(X, columns=["0", "1"]).assign(half=0.5)
    for dtype, words, merged in (("float32", "single", [0, 1]), ("float64", "double", [0])):
        model = kind(**params_for(kind)).set_params(precision=dtype)
        (message,) = warnings_of(model, X, np.arange(40) % 3)
        assert f"equal in {words} precision" in message
        assert "Doubles represent integers exactly only up to 2**53" in message
        assert np.flatnonzero(model.n_merged_values_).tolist() == merged


@pytest.mark.parametrize("form", ["array", "frame", "sparse"])
@pytest.mark.parametrize("sign", [1, -1])
def test_the_first_whole_number_beyond_doubles_is_seen(form, sign):
    X = sign * np.r_[2**53 + np.arange(2), np.arange(38)][:, np.newaxis]
    X = pytest.importorskip("pandas").DataFrame(X, columns=["0"]) if form == "frame" else X
    X = sp.csc_array(X) if form == "sparse" else X
    model = cart.DecisionTreeRegressor(max_depth=1, precision="float64")
    (message,) = warnings_of(model, X, np.arange(40))
    assert "0 (1 of 40). Doubles represent integers exactly only up to 2**53" in message


def test_columns_without_names_are_numbered():
    X = np.c_[np.arange(10), 2**24 + np.arange(10)]
    (message,) = warnings_of(cart.DecisionTreeRegressor(), X, X[:, 0])
    assert "): 1 (4 of 10)." in message or "): 1 (5 of 10)." in message
    (message,) = warnings_of(cart.DecisionTreeRegressor(), sp.csc_matrix(X), X[:, 0])
    assert "): 1 (" in message
    (message,) = warnings_of(cart.DecisionTreeRegressor(), X.tolist(), X[:, 0])
    assert "): 1 (" in message


def test_what_fits_costs_nothing(monkeypatch):
    """No look at the values of a table that comes in single precision, or in less."""
    monkeypatch.delattr("cart.table.merged_values._find_differing")
    for dtype in (np.float32, np.int16, np.uint8, bool):
        X = np.arange(20).reshape(10, 2).astype(dtype)
        assert warnings_of(cart.DecisionTreeRegressor(), X, np.arange(10)) == []


# --------------------------------------------------------------------------------------- dates


@pytest.mark.parametrize("kind", [cart.DecisionTreeRegressor, forest.RandomForestRegressor])
def test_dates_are_seconds(kind):
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    seconds = 1.7e9 + rng.integers(0, 1000, 60)
    lasted = rng.integers(0, 1000, 60) / 8
    dates = pd.Series(pd.to_datetime(seconds, unit="s"))
    gaps = np.arange(60) == 7
    table = pd.DataFrame(
        {
            "x": rng.random(60),
            "date": dates.mask(gaps),
            "there": dates.dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo"),
            "lasted": pd.to_timedelta(lasted, unit="s"),
        }
    )
    plain = table.assign(date=np.where(gaps, np.nan, seconds), there=seconds, lasted=lasted)
    before = table.copy()
    y = seconds % 7 + lasted
    model = kind(**params_for(kind, precision="float64")).fit(table, y)
    twin = kind(**params_for(kind, precision="float64")).fit(plain, y)
    for mine, theirs in zip(trees_of(model), trees_of(twin), strict=True):
        np.testing.assert_array_equal(mine.threshold, theirs.threshold)
    np.testing.assert_array_equal(model.predict(table), twin.predict(plain))
    pd.testing.assert_frame_equal(table, before)
    array = np.c_[dates.mask(gaps).to_numpy("M8[ms]"), dates.to_numpy("M8[ms]")]
    model.fit(array, y)
    np.testing.assert_array_equal(
        model.predict(array), twin.fit(plain[["date", "there"]].to_numpy(), y).predict(array)
    )


def test_dates_are_seconds_in_any_container():
    """Polars frames, alone or beside numbers, and lists, in units of their own: a tree of a pandas
    frame is theirs, and predicts for them."""
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    rng = np.random.default_rng(0)
    days = np.datetime64("2020-01-01") + rng.integers(0, 300, 60)
    lasted, x = (days - days[0]).astype("m8[ms]"), rng.random(60)
    y = days.astype(int) % 7 > 2
    gaps = np.where(np.arange(60) == 7, np.datetime64("NaT"), days)
    of_polars = pl.DataFrame({"day": gaps, "lasted": lasted})
    there = pl.col("day").cast(pl.Datetime("ms", "UTC")).dt.convert_time_zone("Asia/Tokyo")
    for numbers in ({}, {"x": x}):
        frame = pd.DataFrame({"day": gaps, "lasted": lasted, **numbers})
        tree = cart.DecisionTreeClassifier(random_state=0).fit(frame, y)
        in_polars = of_polars.with_columns(pl.Series(name, v) for name, v in numbers.items())
        for table in (in_polars, in_polars.with_columns(there)):
            twin = cart.DecisionTreeClassifier(random_state=0).fit(table, y)
            np.testing.assert_array_equal(twin.tree_.threshold, tree.tree_.threshold)
            np.testing.assert_array_equal(tree.predict(table), y)
        listed = [list(row) for row in zip(gaps, lasted, *numbers.values(), strict=True)]
        twin.fit(listed, y)
        np.testing.assert_array_equal(twin.tree_.threshold, tree.tree_.threshold)
        np.testing.assert_array_equal(twin.predict(listed), y)
        by_day = cart.DecisionTreeClassifier(categorical_features=[0]).fit(listed, y)
        assert len(by_day.categories_[0]) == len(np.unique(gaps[~np.isnat(gaps)]))
        listed[0][0] = np.nan  # what comes below is a date all the same
        np.testing.assert_array_equal(twin.predict(listed)[1:], y[1:])


def test_dates_that_are_categories_are_counted():
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame({"day": pd.to_datetime(["2020-01-01", "2020-01-02", None] * 5)})
    tree = cart.DecisionTreeClassifier(categorical_features=["day"]).fit(table, [0, 1, 0] * 5)
    assert cart.count_unseen(tree, table).tolist() == [0]
    assert cart.count_unseen(tree, table + pd.Timedelta(days=1)).tolist() == [5]


# ------------------------------------------------------------------------------------ refusals


@EACH_MODEL
def test_refusals(kind):
    X, y = np.arange(20.0).reshape(10, 2), np.arange(10) % 2
    with pytest.raises(ValueError, match="'precision' parameter"):
        kind(precision="double").fit(X, y)
    with pytest.raises(ValueError, match="too large for dtype\\('float32'\\)"):
        kind().fit(X * 1e39, y)
    model = kind(**params_for(kind, precision="float64")).fit(X * 1e39, y)
    with pytest.raises(ValueError, match=f"{kind.__name__}.*precision='float64'"):
        to_sklearn(model)


def test_exports_show_thresholds_in_double_precision():
    X, y = np.array([[16_777_216.0], [16_777_217.0]]), [0, 1]
    tree = cart.DecisionTreeRegressor(precision="float64").fit(X, y)
    assert "<= 16777216.50\n" in cart.export_text(tree)
    assert "<= 16777216.5\n" in cart.plot_tree(tree, precision=1)[0].get_text()
    assert "<= 16777216.5\\n" in cart.export_graphviz(tree, precision=1)
