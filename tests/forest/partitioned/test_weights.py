"""Weights of rows and classes over partitions: those of the whole table, bit for bit."""

import numpy as np
import pandas as pd
import pytest

from forest import RandomForestClassifier, RandomForestRegressor
from forest.partitioned.dask import fit
from forest.partitioned.fit import fit_together
from forest.partitioned.growth import Size
from forest.partitioned.table import in_bag
from forest.partitioned.table.targets import fixed_point
from tests.forest.partitioned.same import assert_same_forest
from tests.forest.partitioned.test_identity import KEYED, Apart

random = np.random.RandomState(0)
X = np.round(random.randn(600, 5), 3).astype(np.float32)
X[random.rand(600, 5) < 0.05] = np.nan
Y = np.array(["no", "yes", "perhaps"])[
    (np.nan_to_num(X[:, 0]) + random.randn(600) > 1).astype(int) + (random.rand(600) < 0.2)
]
FRACTIONS = random.rand(600) * (random.rand(600) < 0.8)
WHOLE = random.randint(4, size=600)
CUTS = [100, 100, 350]
SIZE = Size(small_rows=50)


def fit_pieces(forest, y, sample_weight=None):
    weights = None if sample_weight is None else np.split(sample_weight, CUTS)
    return fit(forest, np.split(X, CUTS), np.split(y, CUTS), sample_weight=weights, size=SIZE)


@pytest.mark.parametrize("sample_weight", [None, FRACTIONS, WHOLE], ids=["none", "some", "whole"])
@pytest.mark.parametrize("class_weight", [None, "balanced", {"no": 1, "yes": 2.5, "perhaps": 0}])
def test_draws_of_classes(sample_weight, class_weight):
    """They say how likely a row is drawn; so also who is out of bag."""
    params = {**KEYED, "n_estimators": 30, "oob_score": True, "class_weight": class_weight}
    forest = RandomForestClassifier(**params, n_jobs=2)
    model, local = fit_pieces(forest, Y, sample_weight), forest.fit(X, Y, sample_weight)
    assert_same_forest(model, local)
    assert model.oob_score_ == local.oob_score_
    for mine, theirs in zip(model.estimators_samples_, local.estimators_samples_, strict=True):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("max_samples", [None, 0.3, 200])
def test_draws_of_numbers(max_samples):
    y = np.nan_to_num(X[:, 0]) * 100 + random.randn(600)
    forest = RandomForestRegressor(**KEYED, max_samples=max_samples)
    model = fit_pieces(forest, y, FRACTIONS)
    y = fixed_point(y, model._bootstrap.n_draws)
    assert_same_forest(model, forest.fit(X, y, FRACTIONS))


@pytest.mark.parametrize("kind", [RandomForestClassifier, RandomForestRegressor])
def test_weights_inside_trees(kind):
    """Without a bootstrap rows count as often as they weigh; those of weight 0 not at all."""
    params = {**KEYED, "bootstrap": False, "min_weight_fraction_leaf": 0.01}
    if kind is RandomForestClassifier:
        forest = kind(**params, class_weight={"no": 1, "yes": 3, "perhaps": 2})
        y = Y
    else:
        forest, y = kind(**params), np.round(100 * np.nan_to_num(X[:, 0]))
    weight = 300 * WHOLE
    assert_same_forest(fit_pieces(forest, y, weight), forest.fit(X, y, weight))


@pytest.mark.parametrize("trees_kept", [1, 16])
def test_processes_that_hold_no_codes(trees_kept, monkeypatch):
    monkeypatch.setattr(in_bag, "_TREES_KEPT", trees_kept)
    parts = [np.split(table, CUTS) for table in (X, Y, FRACTIONS)]
    forest = RandomForestClassifier(**KEYED)
    size = Size(small_rows=50, held_bytes=8 * 600)
    model = fit_together(forest, Apart(2), *parts[:2], 4, size, weight_parts=parts[2])
    assert_same_forest(model, forest.fit(X, Y, FRACTIONS))
    size = size._replace(held_bytes=8 * 599)
    with pytest.raises(ValueError, match="Weights of 600 rows need more than 4,792 bytes"):
        fit_together(forest, Apart(2), *parts[:2], 4, size, weight_parts=parts[2])


def test_weights_in_files(tmp_path):
    for name, table in (("X", X), ("y", Y), ("w", FRACTIONS)):
        np.save(tmp_path / f"{name}.npy", table)
    forest = RandomForestClassifier(**KEYED)
    local = forest.fit(X, Y, FRACTIONS)
    size = Size(rows_at_once=250, small_rows=50)
    paths = tmp_path / "X.npy", tmp_path / "y.npy"
    for weight in (str(tmp_path / "w.npy"), FRACTIONS):
        assert_same_forest(fit(forest, *paths, sample_weight=weight, size=size), local)


def test_weights_in_parquet(tmp_path):
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    frame = pd.DataFrame(X, columns=list("abcde")).assign(y=Y, w=FRACTIONS)
    frame.to_parquet(tmp_path / "table.parquet", row_group_size=250)
    forest = RandomForestClassifier(**KEYED)
    model = fit(forest, tmp_path / "table.parquet", "y", sample_weight="w", size=SIZE)
    assert_same_forest(model, forest.fit(frame[list("abcde")], Y, FRACTIONS))
    with pytest.raises(ValueError, match="sample_weight must name a column"):
        fit(forest, tmp_path / "table.parquet", "y", sample_weight=FRACTIONS)


@pytest.mark.parametrize(
    ("params", "weight", "words"),
    [
        ({}, -FRACTIONS, "partition 0 has negative"),
        ({}, np.where(np.arange(600) == 400, np.inf, 1.0), "partition 3 has negative"),
        ({}, 0 * FRACTIONS, "Every row has weight 0"),
        ({"class_weight": {"no": -1}}, None, "class_weight"),
        ({"class_weight": "balanced_subsample"}, None, "balanced_subsample"),
        ({"class_weight": "balanced", "bootstrap_draw": "keyed"}, None, "bootstrap_draw"),
        ({"bootstrap_draw": "keyed"}, FRACTIONS, "bootstrap_draw"),
        ({"bootstrap": False}, FRACTIONS, "whole weights"),
        ({"bootstrap": False, "class_weight": "balanced"}, None, "whole weights"),
        ({"bootstrap": False}, np.full(600, 1e9), "divide them"),
    ],
)
def test_refusals(params, weight, words):
    with pytest.raises(ValueError, match=words):
        fit_pieces(RandomForestClassifier(**{**KEYED, **params}), Y, weight)


def test_weights_of_other_rows():
    forest, parts = RandomForestClassifier(**KEYED), (np.split(X, CUTS), np.split(Y, CUTS))
    with pytest.raises(ValueError, match="X has 4 partitions, but sample_weight has 3"):
        fit(forest, *parts, sample_weight=np.split(WHOLE, CUTS[:2]))
    with pytest.raises(ValueError, match="Partition 2 of X has 250 rows, but sample_weight"):
        fit(forest, *parts, sample_weight=np.split(WHOLE, [100, 100, 340]))
