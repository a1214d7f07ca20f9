"""Bad input gets the exception type that scikit-learn gives, and a message that names the problem.

Each case: what to do to a model, and a pattern of what we say.
"""

import re
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import sklearn.ensemble
import sklearn.tree
from scipy.sparse import csc_array, csr_array
from sklearn.datasets import load_iris
from sklearn.exceptions import DataConversionWarning, NotFittedError

import cart
import forest

ROOT = Path(__file__).resolve().parents[1]
PAIRS = [
    (cart.DecisionTreeClassifier, sklearn.tree.DecisionTreeClassifier),
    (cart.DecisionTreeRegressor, sklearn.tree.DecisionTreeRegressor),
    (forest.RandomForestClassifier, sklearn.ensemble.RandomForestClassifier),
    (forest.RandomForestRegressor, sklearn.ensemble.RandomForestRegressor),
]
FORESTS, CLASSIFIERS = PAIRS[2:], PAIRS[::2]
NAMES = {pair: pair[0].__name__ for pair in PAIRS}

X = np.arange(20.0).reshape(10, 2)
Y = np.arange(10) % 3


def with_cell(value, dtype=float):
    table = X.astype(dtype)
    table[3, 1] = value
    return table


def y_with(value):
    y = Y.astype(float)
    y[3] = value
    return y


def same_error(pair, act):
    """The message of the exception that both models raise, of the same type."""
    ours, theirs = (kind() for kind in pair)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(Exception) as expected:  # noqa: PT011
            act(theirs)
        with pytest.raises(Exception) as raised:  # noqa: PT011
            act(ours)
    assert isinstance(raised.value, expected.type)
    return str(raised.value)


def cases(pairs, table):
    """Every case for every pair of models."""
    return pytest.mark.parametrize(
        ("pair", "act", "says"),
        [
            pytest.param(pair, act, says, id=f"{NAMES[pair]}-{name}")
            for pair in pairs
            for name, (act, says) in table.items()
        ],
    )


DATA = {
    "one dimension": (lambda m: m.fit(X[:, 0], Y), "2D array"),
    "three dimensions": (lambda m: m.fit(X[None], Y), "dim 3"),
    "scalar": (lambda m: m.fit(3, Y), "2D array"),
    "lengths differ": (lambda m: m.fit(X, Y[:-1]), "samples"),
    "no rows": (lambda m: m.fit(X[:0], Y[:0]), "0 sample"),
    "no columns": (lambda m: m.fit(X[:, :0], Y), "0 feature"),
    "infinity in X": (lambda m: m.fit(with_cell(np.inf), Y), "infinity"),
    "too large for float32": (lambda m: m.fit(with_cell(1e39), Y), "too large"),
    "string in X": (lambda m: m.fit(with_cell("a", object), Y), "could not convert"),
    "complex X": (lambda m: m.fit(X + 1j, Y), "[Cc]omplex"),
    "ragged X": (lambda m: m.fit([[1, 2], [3]], [0, 1]), "inhomogeneous|sequence"),
    "NaN in y": (lambda m: m.fit(X, y_with(np.nan)), "NaN"),
    "infinity in y": (lambda m: m.fit(X, y_with(np.inf)), "infinity"),
    "no y": (lambda m: m.fit(X, None), "requires y"),
    "three dimensions of y": (lambda m: m.fit(X, np.zeros((10, 2, 2))), "dim 3"),
    "weights too few": (lambda m: m.fit(X, Y, np.ones(9)), "sample_weight"),
    "weights of two columns": (lambda m: m.fit(X, Y, np.ones((10, 2))), "[Ss]ample.weight"),
    "NaN in weights": (lambda m: m.fit(X, Y, y_with(np.nan)), "sample_weight contains NaN"),
    "infinite weight": (lambda m: m.fit(X, Y, y_with(np.inf)), "infinity"),
    "all weights zero": (lambda m: m.fit(X, Y, np.zeros(10)), "[Ww]eight"),
    "unfitted": (lambda m: m.predict(X), "not fitted"),
    "unfitted apply": (lambda m: m.apply(X), "not fitted"),
    "unfitted paths": (lambda m: m.decision_path(X), "not fitted"),
    "unfitted importances": (lambda m: m.feature_importances_, "not fitted"),
    "features at predict": (lambda m: m.fit(X, Y).predict(X[:, :1]), "1 feature.*2 feature"),
    "NaN at predict": (lambda m: m.fit(X, Y).predict(with_cell(np.inf)), "infinity"),
    "one dimension at predict": (lambda m: m.fit(X, Y).predict(X[0]), "2D array"),
    "no rows at predict": (lambda m: m.fit(X, Y).predict(X[:0]), "0 sample"),
}


@cases(PAIRS, DATA)
def test_data(pair, act, says):
    message = same_error(pair, act)
    assert re.search(says, message), message


PARAMETERS = {
    "max_depth": [0, -1, 1.5, "deep"],
    "min_samples_split": [1, 0.0, 1.5, "2"],
    "min_samples_leaf": [0, 0.0, 1.0, None],
    "min_weight_fraction_leaf": [-0.1, 0.6],
    "max_features": [0, 0.0, 1.5, "all"],
    "max_leaf_nodes": [0, 1, 2.5],
    "min_impurity_decrease": [-0.1, None],
    "criterion": ["mse", None, 3],
    "random_state": ["a", -1],
    "ccp_alpha": [-1.0],
}


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in PARAMETERS.items() for value in values]
)
@pytest.mark.parametrize("pair", PAIRS, ids=NAMES.get)
def test_impossible_parameter(pair, name, value):
    message = same_error(pair, lambda model: model.set_params(**{name: value}).fit(X, Y))
    assert name in message or "seed" in message.lower()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_estimators", 0),
        ("n_estimators", 2.5),
        ("max_samples", 0),
        ("max_samples", -0.5),
        ("bootstrap", "yes"),
        ("oob_score", "accuracy"),
        ("n_jobs", 1.5),
        ("warm_start", 2),
    ],
)
@pytest.mark.parametrize("pair", FORESTS, ids=NAMES.get)
def test_impossible_parameter_of_a_forest(pair, name, value):
    assert name in same_error(pair, lambda model: model.set_params(**{name: value}).fit(X, Y))


@pytest.mark.parametrize(
    ("params", "says"),
    [
        ({"bootstrap": False, "oob_score": True}, "oob_score"),
        ({"bootstrap": False, "max_samples": 0.5}, "max_samples"),
    ],
    ids=["oob_score", "max_samples"],
)
@pytest.mark.parametrize("pair", FORESTS, ids=NAMES.get)
def test_contradiction(pair, params, says):
    assert says in same_error(pair, lambda model: model.set_params(**params).fit(X, Y))


@pytest.mark.parametrize("pair", FORESTS, ids=NAMES.get)
def test_fewer_trees_than_a_warm_start_has(pair):
    def shrink(model):
        model.set_params(n_estimators=3, warm_start=True).fit(X, Y)
        model.set_params(n_estimators=2).fit(X, Y)

    assert "n_estimators" in same_error(pair, shrink)


@pytest.mark.parametrize(
    "value",
    ["heavy", {7: 1.0}, [{0: 1}, {0: 1}]],
    ids=["name", "unknown class", "two outputs"],
)
@pytest.mark.parametrize("pair", CLASSIFIERS, ids=NAMES.get)
def test_class_weight(pair, value):
    message = same_error(pair, lambda model: model.set_params(class_weight=value).fit(X, Y))
    assert "class_weight" in message


@pytest.mark.parametrize("pair", CLASSIFIERS, ids=NAMES.get)
def test_numbers_are_not_classes(pair):
    message = same_error(pair, lambda model: model.fit(X, X[:, 0] + 0.5))
    assert "continuous" in message


@pytest.mark.parametrize("pair", PAIRS[1::2], ids=NAMES.get)
def test_labels_are_not_numbers(pair):
    message = same_error(pair, lambda model: model.fit(X, np.array(["a", "b"])[Y % 2]))
    assert "could not convert" in message


@pytest.mark.parametrize("weight", [-1.0, np.inf, np.nan, "heavy", [1.0], None])
def test_a_weight_of_a_class_is_named(weight):
    for kind in (cart.DecisionTreeClassifier, forest.RandomForestClassifier):
        with pytest.raises(ValueError, match="class_weight gives class 0 the weight"):
            kind(class_weight={0: weight}).fit(X, Y)


@pytest.mark.parametrize("pair", PAIRS, ids=NAMES.get)
def test_a_column_of_text_is_named(pair):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=["a", "b"])
    text = frame.assign(b="x")
    message = same_error(pair, lambda model: model.fit(text, Y))
    assert re.search("float: 'x' in column 'b'; .* in categorical_features .*from_dtype", message)
    assert message.endswith("; for dates use pandas.to_datetime.")
    message = same_error(pair, lambda model: model.fit(frame, Y).predict(text))
    assert "in column 'b'; the model was fitted on numbers there" in message
    text = frame.assign(a=True, b=pd.Categorical(["u", "v"] * 5))  # pandas' own error
    message = same_error(pair, lambda model: model.fit(text, Y))
    assert "in column 'b'; convert it to numbers" in message
    unknown = frame.astype({"b": object})
    unknown.loc[3, "b"] = pd.NA
    message = same_error(pair, lambda model: model.fit(unknown, Y))
    assert "'NAType' in column 'b'; convert it to numbers" in message
    text = frame.assign(a=pd.array([True, pd.NA] * 5, "boolean"), b="x")  # a is fine
    message = same_error(pair, lambda model: model.fit(text, Y))
    assert "in column 'b'; convert it to numbers" in message
    both = frame.assign(a=["u", "v"] * 5, b="x")
    with pytest.raises(ValueError, match="in column 'b'"):
        pair[0](categorical_features=["a"]).fit(both, Y)


@pytest.mark.parametrize("pair", PAIRS, ids=NAMES.get)
def test_a_column_of_text_in_an_array_is_named_by_its_number(pair):
    pd = pytest.importorskip("pandas")
    table = np.column_stack([X.astype(object), ["x"] * len(X)])
    dates = pd.DataFrame({"a": X[:, 0], "b": pd.Timestamp("2020-01-01")}).to_numpy()
    for rows, value, number in ((table, "x", 2), (table.tolist(), "x", 2), (dates, "Timestamp", 1)):
        with pytest.raises((TypeError, ValueError), match=f"'{value}' in column {number}; convert"):
            pair[0]().fit(rows, Y)
    model = pair[0](categorical_features=[0]).fit(X, Y)
    with pytest.raises(ValueError, match="'x' in column 1; the model was fitted on numbers there"):
        model.predict([["new", "x"]])


@pytest.mark.parametrize("pair", PAIRS, ids=NAMES.get)
def test_a_single_row_for_a_model_with_categories(pair):
    """It was said not to contain any features, and a dict ended in a KeyError."""
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": X[:, 0], "city": ["Oslo", "Rome"] * 5})
    model = pair[0](categorical_features=["city"]).fit(frame, Y)
    for row in (frame.iloc[0], [1.0, "Oslo"], {"a": 1.0, "city": "Oslo"}):
        for ask in (model.predict, lambda X, model=model: cart.count_unseen(model, X)):
            with pytest.raises(ValueError, match=r"Expected 2D array, got [01]D array"):
                ask(row)


@pytest.mark.parametrize("pair", PAIRS, ids=NAMES.get)
def test_other_column_names_at_predict(pair):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=["a", "b"])
    renamed = frame.rename(columns={"b": "c"})
    message = same_error(pair, lambda model: model.fit(frame, Y).predict(renamed))
    assert "feature names" in message


# ------------------------------------------------------- refused here, allowed in scikit-learn


def test_negative_weights_are_refused():
    for ours, _ in PAIRS:
        with pytest.raises(ValueError, match=r"[Nn]egative"):
            ours().fit(X, Y, y_with(-1.0))


@pytest.mark.parametrize("value", [-1.0, np.nan, np.inf, -1, "-1"])
@pytest.mark.parametrize("bags", [False, True])
@pytest.mark.parametrize(
    "kind",
    [
        cart.DecisionTreeClassifier, cart.ExtraTreeClassifier,
        forest.RandomForestClassifier, forest.ExtraTreesClassifier,
    ],
)  # fmt: skip
def test_class_weights_that_are_no_weights_are_refused(kind, bags, value):
    """A negative one ended the interpreter."""
    of_one = {0: 1.0, 1: value, 2: 1.0}
    for class_weight, y in ((of_one, Y), ([{0: 1.0, 1: 1.0, 2: 1.0}, of_one], np.c_[Y, Y])):
        model = kind(class_weight=class_weight)
        if bags and y.ndim == 1:
            model = forest.BaggingClassifier(model, n_estimators=2)
        with pytest.raises(ValueError, match=rf"class 1 the weight {value!r}; .*negative"):
            model.fit(X, y)


@pytest.mark.parametrize("kind", [*(pair[0] for pair in PAIRS), forest.BaggingClassifier])
def test_weights_without_a_finite_sum_are_refused(kind):
    with pytest.raises(ValueError, match="no finite sum"):
        kind().fit(X, Y, np.full(len(Y), 1e308))
    with pytest.raises(ValueError, match="weights of the rows contain NaN"):
        kind().fit(X, Y, np.nan)


@pytest.mark.parametrize("kind", ["RandomForestClassifier", "BaggingRegressor"])
def test_a_truth_is_no_number_of_rows(kind):
    """One row a tree would be meant by hardly anyone; scikit-learn fails in the draw."""
    with pytest.raises(ValueError, match="max_samples=True is neither"):
        getattr(forest, kind)(max_samples=True).fit(X, Y)


@pytest.mark.parametrize("pair", CLASSIFIERS, ids=NAMES.get)
def test_class_weights_of_zero_are_refused(pair):
    with pytest.raises(ValueError, match="weight 0"):
        pair[0](class_weight={0: 0, 1: 0, 2: 0}).fit(X, Y)


# --------------------------------------------------------------------- refused by both


@pytest.mark.parametrize("pair", PAIRS, ids=NAMES.get)
@pytest.mark.parametrize(
    ("constraints", "y", "says"),
    [
        ([0, 1, 0], Y % 2, "monotonic_cst has shape"),
        ([0, 2], Y % 2, "-1, 0 or 1"),
        ([0, 1], np.c_[Y, Y] % 2, "multiple outputs"),
    ],
    ids=["wrong length", "not a sign", "two outputs"],
)
def test_monotonic_constraints_that_cannot_be(pair, constraints, y, says):
    for model in pair:
        with pytest.raises(ValueError, match=says):
            model(monotonic_cst=constraints).fit(X, y)


@pytest.mark.parametrize("pair", CLASSIFIERS, ids=NAMES.get)
def test_monotonic_constraints_need_two_classes(pair):
    for model in pair:
        with pytest.raises(ValueError, match="multiclass"):
            model(monotonic_cst=[0, 1]).fit(X, Y)


@pytest.mark.parametrize("pair", PAIRS[1::2], ids=NAMES.get)
def test_poisson_needs_positive_targets(pair):
    for model in pair:
        with pytest.raises(ValueError, match="negative"):
            model(criterion="poisson").fit(X, y_with(-1.0))
        with pytest.raises(ValueError, match=r"not (strictly )?positive"):
            model(criterion="poisson").fit(X, np.zeros(len(Y)))


@pytest.mark.parametrize("pair", PAIRS[1::2], ids=NAMES.get)
def test_friedman_mse_is_deprecated(pair):
    for model in pair:
        with pytest.warns(FutureWarning, match="friedman_mse"):
            assert model(criterion="friedman_mse").criterion == "squared_error"


@pytest.mark.parametrize("pair", PAIRS, ids=NAMES.get)
def test_a_failed_fit_leaves_the_model_as_it_was(pair):
    model = pair[0](random_state=0).fit(X, Y)
    before = model.predict(X)
    with pytest.raises(ValueError, match="sample_weight"):
        model.fit(X[:, [1]], Y % 2, np.ones(9))
    np.testing.assert_array_equal(model.predict(X), before)
    assert model.n_features_in_ == 2


@pytest.mark.parametrize("pair", PAIRS, ids=NAMES.get)
def test_unfitted_is_not_fitted_error(pair):
    model = pair[0]()
    with pytest.raises(NotFittedError, match=pair[0].__name__):
        model.predict(X)
    for name in ("get_depth", "get_n_leaves", "estimators_samples_", "feature_importances_"):
        if hasattr(pair[0], name):
            with pytest.raises(NotFittedError):
                getattr(model, name)()


@pytest.mark.parametrize("pair", PAIRS[2:], ids=NAMES.get)
def test_column_vector_warns(pair):
    with pytest.warns(DataConversionWarning, match="column-vector"):
        pair[0]().fit(X, Y[:, None])


@pytest.mark.filterwarnings("ignore:overflow encountered in cast")  # numpy, of 1e300
@pytest.mark.parametrize("kind", [pair[0] for pair in FORESTS])
def test_a_few_plain_rows_say_what_checked_rows_say(kind):
    """Arrays that need no check skip the checks; lists never do, nor do rows with a fault."""
    table, y = load_iris(return_X_y=True)
    model = kind(5, random_state=0).fit(table, y)
    plain = (table[:1], table[40:60], table[:9].astype(np.float32), np.asfortranarray(table[:9]))
    for rows in (*plain, table[:9, ::-1]):
        np.testing.assert_array_equal(model.predict(rows), model.predict(rows.tolist()))
    for fault, words in (
        (table[:1, :3], "features"),
        (table[0], "2D array"),
        (np.full((1, 4), np.inf), "infinity"),
        (np.full((1, 4), 1e300), "infinity"),
        (table[:0], "minimum of 1"),
    ):
        with pytest.raises(ValueError, match=words):
            model.predict(fault)
    model.feature_names_in_ = np.array(["a", "b", "c", "d"], dtype=object)
    with pytest.warns(UserWarning, match="valid feature names"):
        model.predict(table[:1])


PLAIN = {
    "fine": (X, Y),
    "a missing value": (with_cell(np.nan), Y),
    "infinite": (with_cell(np.inf), Y),
    "too large for single precision": (with_cell(1e300), Y),
    "too large for a sum": (np.where(X > 3, 1e308, X), Y),
    "y missing": (X, y_with(np.nan)),
    "y infinite": (X, y_with(np.inf)),
    "y too short": (X, Y[1:]),
    "two outputs": (X, np.c_[Y, Y]),
    "a row": (X[0], Y),
    "no rows": (X[:0], Y[:0]),
    "no columns": (X[:, :0], Y),
    "complex": (X.astype(complex), Y),
}


@pytest.mark.filterwarnings("ignore:A column-vector")
@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("what", PLAIN)
@pytest.mark.parametrize("ours", [pair[0] for pair in PAIRS])
def test_a_plain_table_is_judged_as_any_other(ours, what, precision):
    """Most checks are passed over for arrays; what they would find is found."""

    def outcome(X, y):
        model = ours(precision=precision, random_state=0)
        try:
            return model.fit(X, y).predict(np.ones((1, 2))).tolist(), model.n_features_in_
        except (ValueError, TypeError) as error:
            return type(error), str(error).replace("float64", "float32")  # which was looked at

    table, y = PLAIN[what]

    class Other(np.ndarray):
        pass

    assert outcome(table, y) == outcome(table.view(Other), y.view(Other))


def test_a_plain_table_after_one_with_names():
    frame = pytest.importorskip("pandas").DataFrame(X, columns=["a", "b"])
    model = cart.DecisionTreeClassifier().fit(frame, Y)
    assert hasattr(model, "feature_names_in_")
    model.fit(X, Y)
    assert not hasattr(model, "feature_names_in_")


LIMITS = ["max_depth", "min_samples_split", "min_samples_leaf", "max_leaf_nodes"]


@pytest.mark.parametrize("name", [*LIMITS, "n_estimators"])
@pytest.mark.parametrize("kind", [pair[0] for pair in PAIRS])
def test_integers_beyond_64_bits_are_refused(kind, name):
    if name in kind().get_params():
        with pytest.raises(ValueError, match=f"'{name}' parameter of .* must be"):
            kind(**{name: 2**63}).fit(X, Y)
    if name in LIMITS:
        kind(**{name: 2**63 - 1}).fit(X, Y)


@pytest.mark.parametrize("shape", [(2**30 + 1, 1), (1, 2**31)])
@pytest.mark.parametrize(
    "kind", [cart.ExtraTreeRegressor, forest.RandomForestClassifier, forest.BaggingRegressor]
)
def test_more_rows_or_columns_than_can_be_numbered_are_refused(kind, shape):
    """Before any work; no more memory than a number is taken."""
    number = np.zeros((), np.float32)
    empty = csr_array(shape) if shape[0] == 1 else csc_array(shape)
    for table in (np.broadcast_to(number, shape), empty):
        with pytest.raises(ValueError, match=rf"X has {max(shape):,} (rows|columns), but at most"):
            kind().fit(table, np.broadcast_to(number, shape[:1]))


MANY_CLASSES = """
import resource
import numpy as np
import cart

X = np.arange(2.0**16)[:, np.newaxis]
resource.setrlimit(resource.RLIMIT_AS, (8 * 2**30,) * 2)
model = cart.DecisionTreeClassifier()
try:
    model.fit(X, np.arange(2**16))
except MemoryError as error:
    print(error)
print(model.fit(X[:50], np.arange(50) % 3).predict(X[:3]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="address space is limited")
def test_more_classes_than_memory_has_room_for():
    """A node holds a number for each; the error says how much, and the estimator can be used."""
    command = [sys.executable, "-W", "ignore", "-c", MANY_CLASSES]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    error, predicted = ran.stdout.splitlines()
    assert "Unable to allocate 64.0 GiB" in error
    assert predicted == "[0 1 2]"
