"""What `forest.dask.fit` refuses, in words, before trees are grown; and what it reads."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.ensemble import RandomForestClassifier as PeerForest
from sklearn.exceptions import NotFittedError

from cart import DecisionTreeClassifier, export_text
from forest import ExtraTreesClassifier, RandomForestClassifier, RandomForestRegressor
from forest.growing.dask import fit_partitions
from forest.partitioned.dask import fit, predict
from forest.partitioned.growth import Size
from forest.partitioned.table.sources import empty_on_disk
from tests.forest.partitioned.same import assert_same_forest

KEYED = {"n_estimators": 2, "max_bins": 255, "feature_draw": "keyed", "random_state": 0}
random = np.random.RandomState(0)
X, y = random.randn(90, 3), random.randint(2, size=90)
X_PARTS, Y_PARTS = np.split(X, 3), np.split(y, 3)


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"n_estimators": 0}, "n_estimators"),
        ({"n_estimators": 2.5}, "n_estimators"),
        ({"n_estimators": "auto"}, "n_estimators"),
        ({"max_bins": None}, "max_bins=255"),
        ({"feature_draw": "sequence"}, "feature_draw"),
        ({"max_leaf_nodes": 5}, "max_leaf_nodes"),
        ({"monotonic_cst": [0, 1, 0]}, "monotonic_cst"),
        ({"class_weight": "balanced_subsample"}, "class_weight"),
        ({"oob_score": max}, "oob_score"),
        ({"warm_start": True}, "warm_start"),
        ({"replace": False}, "replace"),
        ({"stratify": True}, "stratify"),
        ({"criterion": "twoing"}, "criterion='twoing'"),
        ({"priors": [0.5, 0.5]}, "priors"),
        ({"loss": [[0, 1], [2, 0]]}, "loss"),
        ({"missing": "majority"}, "missing='majority'"),
        ({"surrogates": 1}, "surrogates"),
        ({"competitors": 1}, "competitors"),
        ({"voting": "stacked"}, "voting='stacked'"),
        ({"bootstrap_draw": "keyed", "class_weight": "balanced"}, "bootstrap_draw"),
        ({"bootstrap": False, "max_samples": 0.5}, "max_samples"),
    ],
)
def test_forests(params, words):
    with pytest.raises(ValueError, match=words):
        fit(RandomForestClassifier(**{**KEYED, **params}), X_PARTS, Y_PARTS)


def test_other_forests():
    for other in (DecisionTreeClassifier(max_bins=9), PeerForest(), RandomForestClassifier):
        with pytest.raises(TypeError, match=r"a forest of Cartwood, but got \w+; pass a"):
            fit(other, X_PARTS, Y_PARTS)
        with pytest.raises(TypeError, match="a forest of Cartwood"):
            fit_partitions(other, X_PARTS, Y_PARTS)
    with pytest.raises(ValueError, match="random forest"):
        fit(ExtraTreesClassifier(), X_PARTS, Y_PARTS)
    with pytest.raises(ValueError, match="poisson"):
        fit(RandomForestRegressor(**KEYED, criterion="poisson"), X_PARTS, Y_PARTS)
    with pytest.raises(ValueError, match="which regression does not have"):
        fit(RandomForestRegressor(**KEYED, voting="majority"), X_PARTS, Y_PARTS)


def test_partitions():
    forest = RandomForestClassifier(**KEYED)
    frames = [pd.DataFrame(part, columns=list("abc")) for part in X_PARTS]
    for strange, words in (
        (frames[2][list("cba")], "names in the same order"),
        (frames[2].rename(columns={"a": "x"}), "names in the same order"),
        (frames[2][["a", "b"]], "partition 2 has 2"),
        (frames[2].replace(frames[2].iloc[0, 0], np.inf), "partition 2"),
        (frames[2].assign(b="x"), "'x' in column 'b'; convert it to numbers, or list it"),
    ):
        with pytest.raises(ValueError, match=words):
            fit(forest, [*frames[:2], strange], Y_PARTS)
    with pytest.raises(ValueError, match="Partition 1 of X has 30 rows, but that of y has 29"):
        fit(forest, X_PARTS, [Y_PARTS[0], Y_PARTS[1][1:], Y_PARTS[2]])
    with pytest.raises(ValueError, match="3 partitions, but y has 2"):
        fit(forest, X_PARTS, Y_PARTS[:2])
    many = np.arange(70_000) + 0.5  # more than there may be classes
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        fit(forest, [many[:, np.newaxis]], [many])
    with pytest.raises(ValueError, match="2 outputs"):
        fit(forest, [X], [np.stack([y, y], axis=1)])
    with pytest.raises(ValueError, match="no rows"):
        fit(forest, [X[:0]], [y[:0]])
    with pytest.raises(ValueError, match="no partitions"):
        fit(forest, [], [])
    with pytest.raises(ValueError, match="NaN"):
        fit(RandomForestRegressor(**KEYED), [X], [np.where(y == 1, np.nan, 0.0)])
    with pytest.raises(ValueError, match="contains NaN"):
        fit(forest, [X], [np.where(y == 1, np.array(np.nan, object), "no")])
    with pytest.raises(TypeError, match="all input features have string names"):  # as locally
        fit(forest, [frame.rename(columns={"a": 0}) for frame in frames], Y_PARTS)
    for table, of_rows in ((csr_array(X), y), ([csr_array(part) for part in X_PARTS], Y_PARTS)):
        with pytest.raises(TypeError, match="The table is sparse"):
            fit(forest, table, of_rows)


def test_tables_of_dask_without_a_client():
    da = pytest.importorskip("dask.array")
    pytest.importorskip("distributed")
    with pytest.raises(ValueError, match=r"but there is none; create one, as by distributed.Cl"):
        fit(RandomForestClassifier(**KEYED), da.from_array(X, chunks=(30, 3)), da.from_array(y, 30))


@pytest.mark.parametrize("categories", [None, ["c"]])
def test_missing_values(categories):
    forest = RandomForestClassifier(**KEYED, missing="refuse", categorical_features=categories)
    frames = [pd.DataFrame(part, columns=list("abc")) for part in X_PARTS]
    fit(forest, frames, Y_PARTS)
    for name in ("b", "c"):
        frames[1].loc[3, name] = np.nan
        with pytest.raises(ValueError, match=r"missing values in .* column 'b', but missing=\"ref"):
            fit(forest, frames, Y_PARTS)
    frames[1].loc[3, "b"] = 0.0
    with pytest.raises(ValueError, match=r"in 1 column\(s\), first in column 'c'"):
        fit(forest, frames, Y_PARTS)


def test_what_is_no_reason_to_refuse():
    """Empty partitions, one class in a partition, columns of another type."""
    forest = RandomForestClassifier(**KEYED)
    order = np.argsort(y, kind="stable")
    whole = np.round(X[order] * 10)
    parts = [whole[:20].astype(np.int32), whole[:0], whole[20:].astype(np.float32)]
    model = fit(forest, parts, [y[order][:20], y[:0], y[order][20:]])
    assert_same_forest(model, forest.fit(whole, y[order]))


@pytest.mark.parametrize("kind", ["array", "npy"])
def test_tables_in_pieces(tmp_path, kind):
    forest = RandomForestClassifier(**KEYED, n_jobs=2)
    given = X, y
    if kind == "npy":
        np.save(tmp_path / "X.npy", X)
        np.save(tmp_path / "y.npy", y)
        given = tmp_path / "X.npy", tmp_path / "y.npy"
    model = fit(forest, *given, size=Size(rows_at_once=40, small_rows=10))
    assert_same_forest(model, forest.fit(X, y))


def test_folders_of_arrays(tmp_path):
    """Files follow one another in the order of their names; codes may be kept on disk."""
    for number, (X_part, y_part) in enumerate(zip(X_PARTS, Y_PARTS, strict=True)):
        for name, part in (("X", X_part), ("y", y_part)):
            (tmp_path / name).mkdir(exist_ok=True)
            np.save(tmp_path / name / f"{number}.npy", part)
    (tmp_path / "codes").mkdir()
    forest, given = RandomForestClassifier(**KEYED), (tmp_path / "X", str(tmp_path / "y"))
    size = Size(rows_at_once=20, small_rows=10)
    model = fit(forest, *given, size=size, local_directory=tmp_path / "codes")
    assert_same_forest(model, forest.fit(X, y))
    assert not list((tmp_path / "codes").iterdir())
    with pytest.raises(ValueError, match="folder of 3 files"):
        fit(forest, tmp_path / "X", y)
    with pytest.raises(FileNotFoundError, match="codes holds no"):
        fit(forest, tmp_path / "codes", y)
    (tmp_path / "X" / "9.parquet").touch()
    with pytest.raises(ValueError, match=r"both \.npy and \.parquet"):
        fit(forest, *given)
    with pytest.raises(FileNotFoundError):
        fit(forest, X, y, local_directory=tmp_path / "nowhere")


def test_codes_on_disk(tmp_path):
    """They are in a file of that folder, which has no name."""
    codes = empty_on_disk((3, 5), np.dtype(np.uint8), str(tmp_path))
    codes[:] = 7
    assert type(codes) is np.ndarray
    assert type(codes.base) is np.memmap
    assert not list(tmp_path.iterdir())
    assert empty_on_disk((3, 0), np.dtype(np.uint8), str(tmp_path)).shape == (3, 0)


def test_files_of_another_format(tmp_path):
    """The other package's error is that of a damaged file, or of pickles."""
    np.save(tmp_path / "X.npy", X)
    (tmp_path / "x.csv").write_text("a,b\n1,2\n")
    (tmp_path / "y.npy").write_text("0\n1\n")
    forest = RandomForestClassifier(**KEYED)
    for table, target, words in (
        ("x.csv", "b", r"x\.csv is not in the Parquet format\. Partitions are read from"),
        ("X.npy", tmp_path / "x.csv", r"x\.csv is not a file of numpy\.save"),
        ("X.npy", tmp_path / "y.npy", r"y\.npy is not a file of numpy\.save"),
    ):
        with pytest.raises(ValueError, match=words):
            fit(forest, tmp_path / table, target)


def test_parquet(tmp_path):
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    frame = pd.DataFrame(X, columns=list("abc"))
    table = frame.assign(label=y, name=np.array(["no", "yes"])[y])
    table.drop(columns="name").to_parquet(tmp_path / "table.parquet", row_group_size=40)
    forest = RandomForestClassifier(**KEYED)
    local = forest.fit(frame, y)
    model = fit(forest, tmp_path / "table.parquet", "label", local_directory=tmp_path)
    assert_same_forest(model, local)
    assert list(model.feature_names_in_) == list("abc")
    (tmp_path / "folder").mkdir()
    for number, part in enumerate((table[:50], table[50:])):
        part.drop(columns="label").to_parquet(tmp_path / "folder" / f"part.{number}.parquet")
    named = fit(forest, str(tmp_path / "folder"), "name")
    assert_same_forest(named, local)
    assert list(named.classes_) == ["no", "yes"]
    for target in ("other", y):
        with pytest.raises(ValueError, match="must name a column"):
            fit(forest, tmp_path / "table.parquet", target)


def test_a_forest_that_is_not_fitted_predicts_nothing():
    with pytest.raises(NotFittedError):
        predict(RandomForestClassifier(**KEYED), X)


def test_answers_that_are_no_array_are_refused():
    forest = RandomForestClassifier(2, random_state=0)
    table = pytest.importorskip("dask.array").from_array(X, chunks=(20, 3))
    with pytest.raises(ValueError, match="method='decision_path' of RandomForestClassifier"):
        predict(forest.fit(X, y), table, "decision_path")
    forest.fit(X, np.column_stack([y, y]))
    with pytest.raises(ValueError, match="one array with a row per row"):
        predict(forest, table, "predict_proba")


def test_categories_of_frames():
    """Known to one partition only; and columns that hold them in one partition only."""
    frame = pd.DataFrame({
        "colour": np.array(["red", "green", "blue", "grey"])[random.randint(3, size=90)],
        "size": random.randn(90),
    })  # fmt: skip
    frame.loc[:5, "colour"] = "grey"
    frame.loc[60:63, "colour"] = None
    forest = RandomForestClassifier(**KEYED, categorical_features="from_dtype")
    parts = [frame[:10], frame[10:10], frame[10:]]
    model = fit(forest, parts, [y[:10], y[:0], y[10:]], size=Size(small_rows=5))
    local = forest.fit(frame, y)
    assert_same_forest(model, local)
    assert list(model.categories_[0]) == list(local.categories_[0])
    np.testing.assert_array_equal(model.predict_proba(frame), local.predict_proba(frame))
    with pytest.raises(ValueError, match="Partition 2 holds categories in other columns"):
        fit(forest, [*parts[:2], parts[2].assign(colour=1.0)], [y[:10], y[:0], y[10:]])
    few = RandomForestClassifier(**KEYED, categorical_features=[0], min_samples_leaf=2)
    with pytest.raises(ValueError, match="min_samples_leaf"):
        fit(few, parts, [random.randint(3, size=len(part)) for part in parts])


def test_frames_without_categories():
    """Of "from_dtype" too, as one pipeline serves tables with and without."""
    forest = RandomForestClassifier(**KEYED, categorical_features="from_dtype")
    frame = pd.DataFrame(X, columns=list("abc"))
    model = fit(forest, [frame[:30], frame[30:30], frame[30:]], [y[:30], y[:0], y[30:]])
    assert_same_forest(model, forest.fit(frame, y))
    np.testing.assert_array_equal(model.predict_proba(frame), forest.predict_proba(frame))


def test_thresholds_of_dates_are_shown_as_dates():
    table = pd.DataFrame({"day": pd.date_range("2024-03-01", periods=len(X)), "a": X[:, 0]})
    forest = RandomForestClassifier(**KEYED, precision="float64")
    model = fit(forest, [table[:0], table[:8], table[8:]], [y[:0], y[:8], y[8:]])
    whole = forest.fit(table, y)
    shown = [export_text(tree) for tree in model]
    assert shown == [export_text(tree) for tree in whole]
    assert any("<= 2024-0" in text for text in shown)


@pytest.mark.parametrize("features", ["from_dtype", ["c", "d"]])
def test_partitions_of_polars_may_hold_categories(features):
    pl = pytest.importorskip("polars")
    table = pl.DataFrame(X, schema=list("abe")).with_columns(
        c=pl.Series([None if i % 7 == 0 else "uvw"[i % 3] for i in range(len(X))]),
        d=pl.Series(["pq"[i % 2] for i in range(len(X))], dtype=pl.Categorical),
    )
    forest = RandomForestClassifier(**KEYED, categorical_features=features)
    model = fit(forest, [table[:8], table[8:8], table[8:]], [y[:8], y[:0], y[8:]])
    assert_same_forest(model, forest.fit(table, y))
