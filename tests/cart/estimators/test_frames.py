"""DataFrames are checked as scikit-learn checks them, also where ours does not ask it to."""

import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn.tree

import cart

NAMES = ["a", "b", "c"]
VALUES = np.random.default_rng(0).normal(size=(60, 3)).round(2)
LABELS = VALUES[:, 0] + VALUES[:, 1] > 0


def frame(values=VALUES, columns=NAMES, **dtypes):
    return pd.DataFrame(values, columns=columns).astype(dtypes)


def with_item(value):
    table = frame()
    table.loc[7, "a"] = value
    return table


def with_both():
    table = with_item(np.inf)
    table.loc[9, "b"] = np.nan
    return table


FRAMES = {
    "doubles": frame(),
    "single precision": frame(a="f4", b="f4", c="f4"),
    "mixed precision": frame(b="f4"),
    "half precision": frame(a="f2", b="f2", c="f2"),
    "whole numbers": frame(10 * VALUES, a=int, b="i2", c="i1"),
    "some whole numbers": frame(10 * VALUES, b=int),
    "columns of their own": pd.DataFrame({name: VALUES[:, k] for k, name in enumerate(NAMES)}),
    "bools": frame(VALUES > 0),
    "some bools": frame(a=bool),
    "bools and whole numbers": frame(10 * VALUES, a=bool, b=int, c="i2"),
    "bools and single precision": frame(a=bool, b="f4", c="f4"),
    "bools and objects": frame(a=bool, b=object),
    "nullable": frame(a="Float64", b="Float64"),
    "objects": frame().astype(object),
    "categories": frame(a="category"),
    "sparse": frame().astype(pd.SparseDtype(float, 0.0)),
    "missing": with_item(np.nan),
    "infinite": with_item(np.inf),
    "missing and infinite": with_both(),
    "missing, single precision": with_item(np.nan).astype("f4"),
    "infinite, single precision": with_item(np.inf).astype("f4"),
    "missing and infinite, single precision": with_both().astype("f4"),
    "too large": with_item(1e39),
    "complex": frame().astype(complex),
    "columns in another order": frame(VALUES[:, ::-1], NAMES[::-1]),
    "a column less": frame().drop(columns="c"),
    "a column more": frame().assign(d=0.0),
    "another name": frame(columns=["a", "b", "x"]),
    "the same name twice": frame(columns=["a", "b", "b"]),
    "numbers for names": frame(columns=[0, 1, 2]),
    "some numbers for names": frame(columns=["a", "b", 2]),
    "names of two levels": frame(columns=pd.MultiIndex.from_product([["a"], NAMES])),
    "no rows": frame()[:0],
    "an array": VALUES,
    "an array of whole numbers": (10 * VALUES).astype(int),
    "an array of bools": VALUES > 0,
    "an array with missing values": with_item(np.nan).to_numpy("f4"),
    "an array with infinite values": with_both().to_numpy("f4"),
}


def outcome(work):
    """What a function of an estimator gives, or says."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            result = work()
        except (TypeError, ValueError) as error:
            return type(error).__name__, str(error)
    return result, [str(each.message) for each in said if "distinct values" not in str(each)]


@pytest.mark.parametrize("name", FRAMES)
def test_fits_and_predictions_are_those_of_scikit_learn(name):
    """Trees, names, warnings and errors, of a first fit, of a second, and of predictions."""
    X, y = FRAMES[name], pd.Series(LABELS[: len(FRAMES[name])])
    ours = cart.DecisionTreeClassifier(random_state=0)
    theirs = sklearn.tree.DecisionTreeClassifier(random_state=0)

    def fitted(tree):
        tree.fit(X, y)
        names = getattr(tree, "feature_names_in_", np.empty(0)).tolist()
        counts = tree.tree_.n_node_samples.tolist()
        return names, tree.n_features_in_, tree.tree_.feature.tolist(), counts

    for before in (None, frame(), VALUES):
        if before is not None:
            ours.fit(before, LABELS)
            theirs.fit(before, LABELS)
            found = outcome(lambda: ours.predict_proba(X).tolist())
            assert found == outcome(lambda: theirs.predict_proba(X).tolist())
        assert outcome(lambda: fitted(ours)) == outcome(lambda: fitted(theirs))


TEXT = np.where(LABELS, "yes", "no")
TARGETS = {
    "bools": LABELS,
    "a Series of bools": pd.Series(LABELS),
    "another index": pd.Series(LABELS, index=np.arange(60)[::-1]),
    "text": TEXT,
    "a Series of text": pd.Series(TEXT),
    "objects": TEXT.astype(object),
    "objects in a column": TEXT.astype(object)[:, np.newaxis],
    "objects of two outputs": np.column_stack((TEXT, TEXT[::-1])).astype(object),
    "a text for every row": np.array([f"{row:02}" for row in range(60)][::-1], object),
    "one text": np.full(60, "yes", object),
    "text of two types": np.array([*TEXT[:30].tolist(), *TEXT[30:]], object),
    "text and numbers": np.array([*TEXT[:30].tolist(), *range(30)], object),
    "numbers as objects": LABELS.astype(int).astype(object),
    "categories": pd.Series(TEXT, dtype="category"),
    "nullable": pd.Series(LABELS.astype(int), dtype="Int64"),
    "a list": LABELS.tolist(),
    "a column": LABELS[:, np.newaxis],
    "a DataFrame": pd.DataFrame({"y": LABELS}),
    "two outputs": np.column_stack((LABELS, ~LABELS)),
    "a number": 1.0,
    "none": None,
    "missing": np.where(LABELS, np.nan, 1.0),
    "missing text": pd.Series(np.where(LABELS, None, "no")),
    "infinite": np.where(LABELS, np.inf, 1.0),
    "fractions": VALUES[:, 0],
    "three axes": np.zeros((60, 1, 1)),
}


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("X", [VALUES, frame()], ids=["array", "frame"])
def test_targets_are_checked_as_by_scikit_learn(X, name):
    def fitted(tree):
        tree.fit(X, TARGETS[name])
        predicted = tree.predict(X)
        return tree.tree_.feature.tolist(), predicted.tolist(), predicted.dtype

    ours, theirs = (
        outcome(lambda kind=kind: fitted(kind.DecisionTreeClassifier(random_state=0)))
        for kind in (cart, sklearn.tree)
    )
    assert ours == theirs
