"""The compare command shows what `importance.compare` says of our forest."""

import html
import json

import numpy as np
import pandas as pd
import pytest

from benchmarks.compare import all_measures, measures, report
from benchmarks.compare.run import NEVER_OUT_OF_BAG
from benchmarks.compare.run import compare as run_compare
from benchmarks.harness import files
from benchmarks.harness.datasets import Dataset
from benchmarks.harness.errors import DataError
from benchmarks.harness.timing import n_runs
from forest import RandomForestRegressor
from importance import compare

NAMES = ["x", "its $a^$ twin", "<noise>"]  # neither formulas nor tags
MEASURES = ["mdi", "unbiased_mdi", "oob_permutation", "drop_column"]
N_PICTURES = 6
pytestmark = pytest.mark.filterwarnings(f"ignore:{NEVER_OUT_OF_BAG}")


@pytest.fixture(scope="module")
def data():
    """x decides, its twin says the same."""
    rng = np.random.RandomState(0)
    x = rng.normal(size=200)
    X = np.column_stack((x, x + 0.01 * rng.normal(size=200), rng.normal(size=200)))
    return Dataset("twins", "regression", X, x + 0.1 * rng.normal(size=200), NAMES)


@pytest.fixture(scope="module")
def steps():
    return []


@pytest.fixture(scope="module")
def result(data, steps):
    return run_compare(data, 20, 0, 1, 1, lambda name=None: steps.append(name))


@pytest.fixture(scope="module")
def expected(data):
    """The same forest, of a table with names."""
    X, _, y, _ = data.split(0)
    frame = pd.DataFrame(X, columns=NAMES)
    forest = RandomForestRegressor(20, random_state=0).fit(frame, y)
    return compare(forest, frame, y, measures=MEASURES)


def test_every_measure_of_the_fitted_forest(result, expected):
    found = result["all_measures"].comparison
    pd.testing.assert_frame_equal(found.to_frame()[MEASURES], expected.to_frame(), rtol=1e-12)
    assert found.warnings == expected.warnings
    assert any("x and its $a^$ twin share their importance" in text for text in found.warnings)


def test_the_table_has_values_errors_and_ranks(result):
    table = all_measures.table(result["all_measures"])
    column = table.columns.index("oob_permutation")
    assert table.columns[column + 1] == "rank"
    assert [row[column + 1] for row in table.rows] == ["1", "2", "3"]
    best = result["all_measures"].comparison.results["oob_permutation"].values.max()
    value, error = table.rows[0][column].split(" ±")
    assert float(value) == pytest.approx(best, rel=0.01)
    assert float(error) > 0.0
    assert len(all_measures.table(result["all_measures"], top=2).rows) == 2


def test_the_terminal_shows_warnings(result, expected, capsys):
    report.show(result)
    shown = capsys.readouterr().out
    assert "unbiased_mdi" in shown
    for warning in expected.warnings:
        assert f"- {warning}" in shown


def test_the_report_holds_table_warnings_and_pictures(result, expected, tmp_path):
    page, numbers = report.write(result, tmp_path)
    text = page.read_text()
    for warning in expected.warnings:
        assert f"<li>{html.escape(warning)}</li>" in text
    assert text.count("<svg") == 1 + N_PICTURES
    assert "<noise>" not in text
    found = json.loads(numbers.read_text())["all_measures"]
    assert found["warnings"] == expected.warnings
    for name in MEASURES:
        values = pd.Series(found["measures"][name]["importance"], found["features"])
        np.testing.assert_allclose(values[NAMES], expected.results[name].values, rtol=1e-12)


def test_both_sides_show_the_same_values_of_ours(result):
    ours = {each["name"]: each for each in result["importances"] if each["side"] == "Cartwood"}
    comparison = result["all_measures"].comparison
    assert list(ours) == ["mdi", "oob_permutation", "drop_column"]
    for name, each in ours.items():
        np.testing.assert_array_equal(each["values"], comparison.results[name].values)
    timed = {row["work"]: row["ours"] for row in result["seconds"]}
    assert timed["drop_column / drop-column loop"] == comparison.seconds["drop_column"]


def test_progress_reaches_its_end(result, steps):
    assert steps.count(None) == 4 * n_runs(1) + measures.n_steps(len(NAMES))


def test_files_are_read_as_by_the_commands(tmp_path):
    """No field is taken for a row's name, and no column of two equal names for another."""
    path = tmp_path / "t.csv"
    path.write_text("a,y\n" + "".join(f"{j},{j / 2},\n" for j in range(9)))
    task, X, y, names = files.read(path, "y", None)
    assert (task, names) == ("regression", ["a"])
    np.testing.assert_array_equal(np.column_stack((X, 2 * y)).T, [np.arange(9)] * 2)
    path.write_text("a,a,y\n1,2,3\n")
    with pytest.raises(DataError, match="two columns named 'a'"):
        files.read(path, "y", None)
