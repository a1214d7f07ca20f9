"""The first sentence of importance and compare: what matters most, as far as errors tell."""

import re
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from cartwood.__main__ import main
from cartwood.commands.compare import Side, finding

N = 150


def run(*words):
    return main([str(word) for word in words])


def test_no_column_is_said_to_matter_most_where_none_is_clear_of_0(tmp_path, capsys):
    rng = np.random.RandomState(2)
    frame = pd.DataFrame(rng.normal(size=(20, 4)), columns=list("abcd"))
    path, page = tmp_path / "noise.csv", tmp_path / "page.html"
    frame.assign(y=rng.normal(size=20) + 0.25 * frame["a"]).to_csv(path, index=False)
    options = ("--trees", 20, "--n-jobs", 1, "--without", "pictures", "--output", page)
    assert run("importance", path, "--target", "y", *options) == 0
    said = capsys.readouterr().err
    assert "Which column matters most for y is unknown" in said
    assert "a matters most" not in said
    assert "may matter as much" not in said  # of a column that may not matter at all


def test_columns_within_the_errors_of_the_first_may_matter_as_much(tmp_path, capsys):
    rng = np.random.RandomState(0)
    frame = pd.DataFrame(rng.normal(size=(60, 3)), columns=list("abc"))
    path, page = tmp_path / "alike.csv", tmp_path / "page.html"
    frame.assign(y=frame["a"] + frame["b"]).to_csv(path, index=False)
    options = ("--trees", 20, "--n-jobs", 1, "--without", "pictures", "--output", page)
    assert run("importance", path, "--target", "y", *options) == 0
    said = capsys.readouterr().err
    rivals = "Within these errors, [ab] may matter as much"
    assert re.search(rf"([ab]) comes first for y, .* {rivals}", said)


def test_importance_says_when_nothing_predicts(tmp_path, capsys):
    rng = np.random.default_rng(1)
    path = tmp_path / "noise.csv"
    columns = {"a": rng.normal(size=N), "b": rng.normal(size=N), "y": rng.normal(size=N)}
    pd.DataFrame(columns).to_csv(path, index=False)
    options = ("--trees", 20, "--n-jobs", 1, "--output", tmp_path / "page.html")
    assert run("importance", path, "--target", "y", *options) == 0
    said = "The forest finds nothing in this table that predicts y: out of bag"
    assert said in capsys.readouterr().err


def test_a_rare_class_may_be_told_without_being_said(tmp_path, capsys):
    """The most frequent class is right more often, and its share is no finding."""
    rng = np.random.RandomState(3)
    frame = pd.DataFrame(rng.normal(size=(2000, 2)), columns=list("ab"))
    path = tmp_path / "churn.csv"
    chance = 1.0 / (1.0 + np.exp(4.2 - 2.0 * frame["a"]))
    frame.assign(y=np.where(rng.rand(2000) < chance, "go", "stay")).to_csv(path, index=False)
    options = ("--target", "y", "--trees", 100, "--n-jobs", 1, "--output", tmp_path / "page.html")
    assert run("importance", path, *options, "--without", "pictures") == 0
    said = capsys.readouterr().err
    right, frequent = map(float, re.findall(r"right in ([\d.]+)%", said))
    assert right < frequent
    assert "a matters most for y" in said
    assert run("compare", path, *options, "--no-permutation") == 0
    assert "by MDI, a comes first in both" in capsys.readouterr().err


def test_a_forest_that_predicts_nothing_may_have_a_column_that_says_something(tmp_path, capsys):
    rng = np.random.RandomState(9)
    a = rng.normal(size=300)
    frame = pd.DataFrame({"a": a, "b": rng.normal(size=300), "y": rng.poisson(np.exp(a))})
    path = tmp_path / "counts.csv"
    frame.to_csv(path, index=False)
    options = ("--trees", 20, "--n-jobs", 1, "--output", tmp_path / "page.html")
    assert run("importance", path, "--target", "y", *options) == 0
    said = capsys.readouterr().err
    assert "predicts y no better than the shares of its classes, though a helps" in said


@pytest.mark.parametrize("option", [(), ("--no-permutation",)])
def test_compare_does_not_agree_on_noise(tmp_path, capsys, option):
    path, page = tmp_path / "noise.csv", tmp_path / "page.html"
    pd.DataFrame(np.random.RandomState(0).normal(size=(40, 3)), columns=list("aby")).to_csv(path)
    options = ("--trees", 5, "--n-jobs", 1, "--output", page)
    assert run("compare", path, "--target", "y", *options, *option) == 0
    assert "which column matters most is unknown" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("ours", "peer", "said"),
    [
        ([2.0, 1.0], [5.0, 3.0], "by permutation, a comes first in both"),
        ([1.0, 2.0], [5.0, 3.0], "b comes first in Cartwood's forest, a in scikit-learn's"),
        ([0.3, 0.1], [5.0, 3.0], "Cartwood's largest importance is not clearly above 0"),
        ([2.0, 1.0], [0.1, 0.3], "scikit-learn's largest importance is not clearly above 0"),
    ],
)
def test_compare_says_which_columns_come_first(ours, peer, said):
    """Each with an error of 0.2."""
    names = ("Cartwood", "scikit-learn")
    sides = (
        Side(name, None, 0.5, 1.0, 2.0, False, np.ones(2), np.array(values), np.full(2, 0.2))
        for name, values in zip(names, (ours, peer), strict=True)
    )
    task = SimpleNamespace(kind="regression")
    training = SimpleNamespace(name="houses", X=pd.DataFrame(columns=["a", "b"]), task=task)
    text = finding(*sides, training, 12)
    assert text.startswith("On houses, Cartwood fits in 1.00 s and scikit-learn in 1.00 s; on 12 ")
    assert said in text


def test_bars_without_an_error_are_drawn(tmp_path, capsys):
    """Of one tree no error is known."""
    frame = pd.DataFrame(np.random.RandomState(0).normal(size=(60, 3)), columns=list("aby"))
    path, page = tmp_path / "one.csv", tmp_path / "page.html"
    frame.to_csv(path, index=False)
    options = ("--trees", 1, "--n-jobs", 1, "--without", "pictures", "--output", page)
    assert run("importance", path, "--target", "y", *options) == 0
    assert "± nan" in capsys.readouterr().out
    assert "nan%" not in page.read_text()
    assert page.read_text().count('class="bar"') == 2
