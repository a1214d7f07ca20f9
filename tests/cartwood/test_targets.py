"""What is predicted: numbers or classes, what is refused, and what may be meant otherwise."""

import numpy as np
import pandas as pd
import pytest

from cart import DecisionTreeClassifier
from cartwood.table import Task
from cartwood.terminal import UserError


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["a", "b", None, "a"], "classification"),
        ([1, 2, 3, 1], "classification"),
        ([True, False, True, False], "classification"),
        ([0.5, 1.5, None, 3.5], "regression"),
        (range(30), "regression"),
    ],
)
def test_the_target_says_the_task(values, kind):
    task = Task.of(pd.Series(values, name="y"))
    assert task.kind == kind
    assert len(task.y) == task.has_target.sum()


@pytest.mark.parametrize(
    ("values", "classes"),
    [
        ([0.5, 1.0, np.nan, 0.5], ["0.5", "1.0"]),
        ([1.0, np.inf, 1.0], ["1.0", "inf"]),
        ([1.0, 2.0, 1.0], [1.0, 2.0]),
        ([1, np.nan, 2], [1, 2]),
    ],
)
def test_numbers_are_classes_where_that_is_asked(values, classes):
    task = Task.of(pd.Series(values, name="y"), "classification")
    model = DecisionTreeClassifier().fit(np.ones((len(task.y), 1)), task.y)
    assert repr(model.classes_.tolist()) == repr(classes)


def test_a_word_among_classes_that_are_numbers_is_named():
    def doubts(*values):
        return list(Task.of(pd.Series(values, name="y")).doubts())

    said = '"n.a." is a class among numbers; leave cells empty if this means "missing"'
    assert doubts("0", "1", "n.a.", "1") == [said]
    assert doubts("0", "a", "b", "0") == doubts("0", "1", None, "1") == doubts(True, False) == []


def test_a_value_far_from_all_others_is_named():
    """The total below a table, or a number that means that there is none."""
    values = [0.5 * k for k in range(1, 31)]

    def doubts(*all_values):
        return list(Task.of(pd.Series(all_values, name="y")).doubts())

    assert doubts(*values) == doubts(*values, 50.0) == doubts(0, 1, 2, 0) == doubts(4, 6, 8) == []
    assert doubts(0, 1, 0, 5.5) == doubts(True, False) == []
    assert doubts(None, *values, sum(values)) == [
        "232.5 in row 32 is far from all others; if it is a total or a typing error, remove the row"
    ]
    said = '-99 in 2 rows is far from all others; if it means "missing", leave these '
    for others in (values, range(1, 4)):
        assert doubts(*others, -99, -99) == [said + "cells empty"]


def test_a_scale_of_whole_numbers_may_be_meant():
    column = pd.Series([*range(11)] * 3, name="y")
    (said,) = Task.of(column).doubts()
    assert said.startswith("11 whole numbers are taken as classes; if they measure something")
    assert not [*Task.of(column, "classification").doubts()]
    assert not [*Task.of(column % 3).doubts()]


@pytest.mark.parametrize(
    ("values", "kind", "words"),
    [
        ([1.0, 1.0], None, "has only one value:"),
        ([1.0, None, None], None, "only one value, missing in 2 rows: there is nothing"),
        ([1.5, 1e200], None, "numbers above 1e.150, whose squares are too large"),
        ([1.5e-9, 2.5e-9, -3e-9], None, "differ by less than 0.000001, .*; multiply it"),
        ([None, None], None, "no values"),
        (["a", "b"], "regression", "is not numeric"),
        ([0.5, np.inf], None, "infinite"),
        (["2020-01-02", "2020-01-03"] * 2, None, "holds dates; convert them to numbers"),
        (pd.to_datetime(["2020-01-02", "2020-01-03"]), None, "holds dates"),
        (["a1", "a2", "a3"], None, "a different class in every row, such as .*if these are num"),
        (["26:10", "5:20", None], None, "holds durations; convert them to numbers, such as hours"),
        (["9:30", "17:05"], None, "holds times of day; convert"),
        ([f"n{j}" for j in range(300)], None,
         "300 classes such as 'n0'; .* choose one with fewer; if these are numbers"),
        (range(300), "classification", "300 classes; the maximum is 200; try --task regression"),
    ],
)  # fmt: skip
def test_targets_that_are_refused(values, kind, words):
    with pytest.raises(UserError, match=words):
        Task.of(pd.Series(values, name="y"), kind)
