"""Rows that belong together are judged together; of which new rows a finding says nothing."""

import numpy as np
import pandas as pd
import pytest

import forest
from cartwood.__main__ import main


def run(*words):
    return main([str(word) for word in words])


@pytest.fixture
def visits(tmp_path):
    """Eight rows of each of 40 patients: y is of the patient, and x names him without meaning."""
    rng = np.random.default_rng(0)
    patient = np.repeat(np.arange(40), 8)
    frame = pd.DataFrame({
        "patient": [f"P{k}" for k in patient],
        "x": rng.normal(size=40).round(3)[patient],
        "dose": rng.normal(size=320),
    })  # fmt: skip
    frame["y"] = 2.0 * rng.normal(size=40)[patient] + frame["dose"] + 0.5 * rng.normal(size=320)
    path = tmp_path / "visits.csv"
    frame.to_csv(path, index=False)
    return path


def test_rows_of_a_group_are_out_of_bag_together(visits, capsys):
    words = ("importance", visits, "--target", "y", "--output", visits.with_name("page.html"))

    def first_and_said(*more):
        assert run(*words, *more) == 0
        said = capsys.readouterr()
        return said.out.splitlines()[1].split()[0], said.err

    first, said = first_and_said()
    assert first == "patient"
    assert (
        "What the trees learn from patient holds only for its 40 values; --groups patient judges"
        in said
    )
    first, said = first_and_said("--drop", "patient")
    assert first == "x"
    assert "holds only for" not in said  # numbers are no names
    first, said = first_and_said("--groups", "patient")
    assert first == "dose"
    assert "rows with the same patient are in or out of bag together: 40 groups" in said
    assert "1 of 2 features cannot be told from noise" in said


def test_a_date_that_leads_says_nothing_of_later_rows(tmp_path, capsys):
    rng, days = np.random.default_rng(0), pd.date_range("1969-01-01", periods=200)
    path = tmp_path / "walk.csv"
    pd.DataFrame({
        "day": days, "x": rng.normal(size=200), "y": np.cumsum(rng.normal(size=200))
    }).to_csv(path, index=False)  # fmt: skip
    assert run("importance", path, "--target", "y", "--output", tmp_path / "page.html") == 0
    words = " What the trees learn from day holds up to 1969-07-19: they treat later"
    assert words in capsys.readouterr().err
    assert days[-1] == pd.Timestamp("1969-07-19")


def test_groups_of_large_tables_are_drawn_by_their_share(visits, capsys, monkeypatch):
    monkeypatch.setattr("cartwood.commands.fitting.MOST_ROWS", 80)
    page, words = visits.with_name("page.html"), ("--target", "y", "--groups", "patient")
    assert run("importance", visits, *words, "--output", page) == 0
    assert "every tree is grown on its own draw of about 80 rows" in capsys.readouterr().err
    assert "each on its own draw of about 80 rows" in page.read_text()
    assert run("fit", visits, *words, "--save", visits.with_name("model")) == 0
    trees = forest.load(visits.with_name("model")).estimators_
    assert np.mean([tree.tree_.n_node_samples[0] for tree in trees]) < 80  # distinct ones of 80


def test_columns_that_make_no_groups_are_refused(visits, capsys):
    table = pd.read_csv(visits).assign(half=[1, 2] * 160)
    table.loc[3, "patient"] = None
    table.to_csv(visits, index=False)
    for column, words in (
        ("patient", "--groups patient: the column is empty in 1 row;"),
        ("dose", "--groups dose: every row has a value of its own"),
        ("half", "--groups half: the column divides the rows into 2 groups; at least 8"),
        ("y", "--groups y: this is the target"),
        ("patiens", "no column 'patiens'; did you mean patient?"),
    ):
        model = visits.with_name("model")
        assert run("fit", visits, "--target", "y", "--groups", column, "--save", model) == 2
        assert words in capsys.readouterr().err
        assert not model.exists()
