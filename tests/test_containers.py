"""Containers that scikit-learn's checks would misread: lazy, masked, wrapped, sparse flags."""

import sys
from threading import Lock

import narwhals
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import cart
import forest
import importance
from cart.estimators.category_encoder import find_categorical

RNG = np.random.default_rng(0)
NUMBERS = RNG.normal(size=(60, 2)).round(2)
WEIGHTS = NUMBERS.sum(axis=1)
LABELS = WEIGHTS > 0
MODELS = [
    cart.DecisionTreeClassifier(random_state=0),
    forest.RandomForestClassifier(3, random_state=0),
    forest.BaggingClassifier(cart.DecisionTreeClassifier(random_state=0), 3, random_state=0),
]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("column", [NUMBERS[:, 1], RNG.integers(0, 3, 60), NUMBERS[:, 1] > 0])
def test_sparse_truth_values_count_as_0_and_1(model, column):
    """Of `pandas.get_dummies(sparse=True)`, alone or beside sparse numbers."""
    dense = pd.DataFrame({"a": NUMBERS[:, 0] > 0, "b": column}).astype(float)
    zero = column.dtype.type(0)
    sparse = {"a": pd.arrays.SparseArray(NUMBERS[:, 0] > 0)}
    sparse = pd.DataFrame({**sparse, "b": pd.arrays.SparseArray(column, fill_value=zero)})
    expected = model.fit(dense, LABELS).predict_proba(dense)
    np.testing.assert_array_equal(model.fit(sparse, LABELS).predict_proba(sparse), expected)


def test_blocks_of_sparse_dummies_are_found():
    dummies = pd.get_dummies(pd.DataFrame({"city": ["Oslo", "Rome", "Oslo"]}), sparse=True)
    assert importance.one_hot_groups(dummies) == {"city": ["city_Oslo", "city_Rome"]}
    with pytest.raises(ValueError, match=r"give it X\.sparse\.to_dense\(\)"):
        importance.correlation_groups(dummies)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_masked_values_are_refused(model):
    """Numbers lie under the mask, and would be taken for values."""
    mask = np.zeros(NUMBERS.shape, bool)
    mask[[3, 5], [0, 1]] = True
    X = np.ma.masked_array(NUMBERS, mask)
    with pytest.raises(ValueError, match="X has 2 masked value"):
        model.fit(X, LABELS)
    with pytest.raises(ValueError, match=r"y has missing values in 1 row.*first in row 3"):
        model.fit(NUMBERS, np.ma.masked_array(LABELS, mask[:, 0]))
    with pytest.raises(ValueError, match="X has 2 masked value"):
        model.fit(NUMBERS, LABELS).predict(X)
    with pytest.raises(ValueError, match=r"sample_weight has missing values in 1 row.*row 3"):
        model.fit(NUMBERS, LABELS, sample_weight=np.ma.masked_array(np.ones(60), mask[:, 0]))
    unmasked = np.ma.masked_array(NUMBERS), np.ma.masked_array(LABELS)
    expected = model.predict_proba(NUMBERS)
    np.testing.assert_array_equal(model.fit(*unmasked).predict_proba(unmasked[0]), expected)


@pytest.mark.parametrize("fill", [0.0, np.nan])
def test_sparse_columns_of_a_dataframe_stand_beside_categories(fill):
    """As from get_dummies(sparse=True) with a column of text, or with nan between the values."""
    dense = pd.DataFrame({"a": np.maximum(NUMBERS[:, 0], 0.0), "b": NUMBERS[:, 1] > 1})
    dense = dense.replace({"a": {0.0: fill}}).assign(c=np.tile(list("uvw"), 20))
    sparse = dense.astype({"a": pd.SparseDtype(float, fill), "b": pd.SparseDtype(bool)})
    for columns in (["a", "b", "c"], ["a", "c"]):
        model = clone(MODELS[1]).set_params(categorical_features="from_dtype")
        expected = model.fit(dense[columns], LABELS).predict_proba(dense[columns])
        np.testing.assert_array_equal(model.predict_proba(sparse[columns]), expected)
        model.fit(sparse[columns], LABELS)
        np.testing.assert_array_equal(model.predict_proba(sparse[columns]), expected)
    for find in (importance.correlation_groups, importance.one_hot_groups):
        assert find(sparse) == find(dense)


@pytest.mark.parametrize("name", ["schema", "to_dicts", "to_frame", "sparse", "with_columns"])
def test_columns_may_be_named_as_attributes_of_other_frames(name):
    """pandas gives its columns as attributes, by which another kind of frame might be told."""
    X = pd.DataFrame(NUMBERS, columns=["a", name])
    model = forest.RandomForestClassifier(5, random_state=0).fit(X, LABELS)
    assert importance.shap_values(model, X).table().shape == X.shape
    assert len(cart.explain_path(model[0], X.iloc[[0]].to_numpy()).steps) > 1
    tree = cart.DecisionTreeClassifier(random_state=0).fit(X, LABELS)
    assert cart.explain_path(tree, X.iloc[[0]]) == cart.explain_path(tree, X.iloc[0])
    selector = importance.FeatureSelector(model, n_rounds=19, random_state=0)
    kept = selector.set_output(transform="pandas").fit_transform(X, LABELS)
    assert isinstance(kept, pd.DataFrame)


def test_masked_counts_and_targets_of_held_out_rows_are_refused():
    X, y = NUMBERS, np.arange(60.0)
    in_bag = np.ma.masked_equal(np.tile(np.arange(60) % 4, (2, 1)), 3)
    with pytest.raises(ValueError, match="in_bag has masked values; write 0"):
        forest.RandomForestRegressor(2).fit(X, y, in_bag=in_bag)
    model = forest.RandomForestRegressor(2).fit(X, y, in_bag=in_bag.filled(0))
    with pytest.raises(ValueError, match=r"y has missing values in 15 row\(s\), first in row 3"):
        importance.held_out_permutation(model, X + 0.01, np.ma.masked_array(y, in_bag.mask[0]))


def test_masked_groups_are_refused():
    groups = np.ma.masked_array(np.arange(60) % 5, np.arange(60) == 4)
    with pytest.raises(ValueError, match=r"groups has 1 missing value.*first in row 4"):
        MODELS[1].fit(NUMBERS, LABELS, groups=groups)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_a_frame_of_narwhals_is_the_frame_that_it_wraps(model):
    """Its dates are seconds, too, and its columns have names."""
    X = pd.DataFrame({"when": pd.date_range("2020", periods=60), "a": NUMBERS[:, 0]})
    wrapped = narwhals.from_native(X)
    expected = model.fit(X, LABELS).predict_proba(X)
    np.testing.assert_array_equal(model.predict_proba(wrapped), expected)
    model.fit(wrapped, LABELS)
    np.testing.assert_array_equal(model.predict_proba(X), expected)
    assert model.feature_names_in_.tolist() == ["when", "a"]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("kind", ["numbers", "dates", "words"])
def test_attrs_of_a_frame_are_not_copied(model, kind):
    """pandas copies them, in depth, with every column: a fit took minutes, or could not copy."""
    others = {
        "numbers": NUMBERS[:, 1],
        "dates": pd.date_range("2020", periods=60),
        "words": np.where(LABELS, "yes", "no"),
    }
    X = pd.DataFrame({"a": NUMBERS[:, 0], "b": others[kind]})
    tagged = X.copy()
    tagged.attrs["lock"] = Lock()
    if kind == "words":
        name = "categorical_features"
        name = name if name in model.get_params() else f"estimator__{name}"
        model = clone(model).set_params(**{name: "from_dtype"})
    expected = model.fit(X, LABELS).predict_proba(X)
    np.testing.assert_array_equal(model.fit(tagged, LABELS).predict_proba(tagged), expected)
    assert "lock" in tagged.attrs
    if hasattr(model, "bootstrap_draw"):
        grown = clone(model).set_params(n_estimators=20).fit(tagged, LABELS)
        assert importance.compare(grown, tagged, LABELS).feature_names.tolist() == ["a", "b"]


def test_importances_of_a_frame_of_narwhals():
    X = pd.DataFrame(NUMBERS, columns=["a", "b"])
    wrapped = narwhals.from_native(X)
    model = forest.RandomForestRegressor(20, random_state=0).fit(X, WEIGHTS)
    for measure in (importance.compare, importance.over_data):
        options = {"n_subsamples": 3, "random_state": 0} if measure is importance.over_data else {}
        assert str(measure(model, wrapped, WEIGHTS, **options)) == str(
            measure(model, X, WEIGHTS, **options)
        )


def test_dates_of_any_array_are_seconds():
    array = pytest.importorskip("dask.array")
    dates = pd.date_range("2020", periods=60).to_numpy()[:, np.newaxis]
    tree = cart.DecisionTreeRegressor(random_state=0, precision="float64")
    expected = tree.fit(dates, WEIGHTS).tree_.threshold
    found = tree.fit(array.from_array(dates, chunks=20), WEIGHTS).tree_.threshold
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("categories", [None, "from_dtype", [0]])
def test_lazy_tables_are_refused(categories):
    frame = pytest.importorskip("polars").DataFrame({"a": NUMBERS[:, 0], "b": NUMBERS[:, 1]})
    tree = cart.DecisionTreeClassifier(categorical_features=categories)
    with pytest.raises(TypeError, match=r"X is a lazy table.*pass X\.collect\(\)"):
        tree.fit(frame.lazy(), LABELS)
    with pytest.raises(TypeError, match=r"pass X\.collect\(\)"):
        tree.fit(frame, LABELS).predict(frame.lazy())


def test_categories_in_numpys_own_strings():
    words = np.where(LABELS, "yes", "no")[:, np.newaxis]
    tree = cart.DecisionTreeClassifier(categorical_features=[0])
    tree.fit(words.astype(np.dtypes.StringDType()), LABELS)
    assert tree.categories_[0].tolist() == ["no", "yes"]
    assert tree.score(words, LABELS) == 1.0


class Shown:
    """A dtype that is written so."""

    kind = "U"

    def __init__(self, text):
        self.text = text

    def __str__(self):
        return self.text


class Texts:
    """A column that NumPy takes for objects though its dtype is one of texts, as Arrow's are."""

    dtype = Shown("string[pyarrow]")

    def __init__(self, values):
        self.values = values

    def __len__(self):
        return len(self.values)

    def __array__(self, dtype=None, copy=None):
        return np.array(self.values, object)


class FrameOf(dict):
    """Columns by name, of which only the dtypes are known."""

    columns = property(list)
    shape = property(lambda self: (0, len(self)))


def test_texts_and_dictionaries_of_arrow_are_categories():
    """By the names of their dtypes, whether or not pyarrow is installed."""
    texts = "string", "large_string", "dictionary<values=string, indices=int32, ordered=0>"
    frame = FrameOf({name: Texts([]) for name in (*texts, "double", "timestamp[ns]")})
    for name, column in frame.items():
        column.dtype = Shown(f"{name}[pyarrow]")
    assert find_categorical("from_dtype", frame).tolist() == [True] * 3 + [False] * 2


def test_a_missing_text_of_arrow_is_no_label():
    y = Texts(["yes", "no", pd.NA, "no"])
    with pytest.raises(ValueError, match=r"y has missing values in 1 row.*first in row 2"):
        MODELS[0].fit(np.eye(4), y)


def _arrow_forms(frame):
    """A frame in Arrow's types: as pandas reads it, with a dictionary, and a table of Arrow."""
    pa = pytest.importorskip("pyarrow", reason="pyarrow is an optional package")
    texts = frame.convert_dtypes(dtype_backend="pyarrow")
    table = pa.Table.from_pandas(texts)
    place = table.schema.get_field_index("colour")
    coded = table.set_column(place, "colour", table["colour"].dictionary_encode())
    return texts, coded.to_pandas(types_mapper=pd.ArrowDtype), table, coded


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("others", [["number"], ["is_new"], ["when"], ["number", "is_new", "when"]])
def test_tables_of_arrow_count_as_those_of_numpy(model, others):
    """Texts, dictionaries, truth values and dates, with and without missing values."""
    name = "categorical_features"
    name = name if name in model.get_params() else f"estimator__{name}"
    model = clone(model).set_params(**{name: "from_dtype"})
    frame = pd.DataFrame(
        {
            "colour": np.where(LABELS, "red", np.where(NUMBERS[:, 0] > 0, "blue", None)),
            "number": np.where(NUMBERS[:, 0] > 1, np.nan, NUMBERS[:, 1]),
            "is_new": NUMBERS[:, 1] > 0,
            "when": pd.date_range("2020", periods=60),
        }
    )[["colour", *others]]
    expected = model.fit(frame, LABELS).predict_proba(frame)
    y = pd.Series(np.where(LABELS, "yes", "no"))
    for form in _arrow_forms(frame):
        np.testing.assert_array_equal(model.predict_proba(form), expected)
        model.fit(form, y.astype("string[pyarrow]"))
        np.testing.assert_array_equal(model.predict_proba(form), expected)
        assert model.classes_.tolist() == ["no", "yes"]
        model.fit(frame, LABELS)


def test_numbers_of_a_table_of_arrow_need_no_pandas(monkeypatch):
    pa = pytest.importorskip("pyarrow", reason="pyarrow is an optional package")
    table = pa.table({"a": NUMBERS[:, 0], "b": NUMBERS[:, 1]})
    expected = MODELS[0].fit(NUMBERS, LABELS).predict_proba(NUMBERS)
    monkeypatch.setitem(sys.modules, "pandas", None)
    np.testing.assert_array_equal(MODELS[0].fit(table, LABELS).predict_proba(table), expected)


def test_importances_of_a_table_of_arrow():
    frame = pd.DataFrame({"colour": np.where(LABELS, "red", "blue"), "a": NUMBERS[:, 0]})
    grown = clone(MODELS[1]).set_params(n_estimators=20, categorical_features="from_dtype")
    expected = str(importance.compare(grown.fit(frame, LABELS), frame, LABELS))
    groups = importance.correlation_groups(frame)
    for form in _arrow_forms(frame):
        assert str(importance.compare(grown.fit(form, LABELS), form, LABELS)) == expected
        assert importance.correlation_groups(form) == groups
