"""The benchmark suite: every side is asked for the same work, and what it says is what it did."""

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier

from benchmarks import tables
from benchmarks.harness import results
from benchmarks.suite import run as suite
from benchmarks.suite.cases import CASES, QUICK, SCALING, Case
from benchmarks.suite.peers import environment, models
from benchmarks.suite.peers.registry import BY_NAME, OURS, PEERS, REFERENCE

IRIS = Case(
    "iris", "iris", "classification",
    {"model": "forest", "n_estimators": 5, "criterion": "gini", "max_features": "sqrt",
     "max_bins": None},
)  # fmt: skip


def test_every_peer_that_is_installed_has_a_file_that_says_how():
    folder = Path(environment.__file__).parent / "environments"
    assert {path.stem for path in folder.glob("*.txt")} == {p.name for p in PEERS if p.installs}


def test_no_two_cases_have_one_name():
    names = [case.name for case in (*CASES, *SCALING)]
    assert len(set(names)) == len(names)
    assert {case.name for case in QUICK} & set(names) == {"iris", "breast_cancer", "digits"}


def test_a_measurement_of_both_sides():
    commands, absent = suite._commands([OURS, REFERENCE], is_quick=True)
    assert not absent
    row = suite._measure(IRIS, commands, n_rounds=1)
    X, X_test, y, y_test = IRIS.load()
    peer = RandomForestClassifier(5, random_state=0).fit(X, y)
    for name in (OURS, REFERENCE):
        side = row["sides"][name]
        assert side["score"] == peer.score(X_test, y_test)
        assert side["nodes"] == sum(tree.tree_.node_count for tree in peer.estimators_)
        assert min(side["fit"], side["predict"], side["one_row"], side["pickle"]) > 0
    assert row["identity"]["identical_trees"] == row["identity"]["trees"] == 5
    assert not row["wrong"]


def test_how_time_grows_is_asked_of_sides_that_are_measured_again():
    commands = dict.fromkeys(BY_NAME)
    assert list(suite._asked(SCALING[0], commands)) == [OURS, REFERENCE, "scikit-learn-intelex"]
    assert suite._asked(CASES[0], commands) == commands


def test_how_time_grows_needs_no_predictions():
    commands, _ = suite._commands([OURS, REFERENCE], is_quick=True)
    row = suite._measure(IRIS._replace(is_scaling=True), commands, n_rounds=1)
    for name in (OURS, REFERENCE):
        side = row["sides"][name]
        assert side["fit"] > 0
        assert set(side["fit_by_jobs"]) == {"1", "2"}
        assert not {"predict", "pickle", "one_row"} & side.keys()
    assert row["identity"]["identical_trees"] == 5


def test_a_slow_peer_is_stopped(monkeypatch):
    """Once it has taken so much longer than scikit-learn; scikit-learn itself is waited for."""
    monkeypatch.setattr(suite, "NOT_BEFORE", 0.0)
    monkeypatch.setattr(suite, "TOO_SLOW", 0.01)
    (reference,) = suite._commands([REFERENCE], is_quick=True)[0].values()
    waits = [sys.executable, "-c", "import time; time.sleep(1000)"]
    row = suite._measure(IRIS, {REFERENCE: reference, "lightgbm": waits}, n_rounds=1)
    assert "fit" in row["sides"][REFERENCE]
    assert row["sides"]["lightgbm"]["why"].startswith("over ")


def test_other_trees_are_told(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "models", models)  # as in the process that measures
    worker = import_module("benchmarks.suite.peers.worker")
    X, y = load_iris(return_X_y=True)
    for seed, name in enumerate((OURS, REFERENCE)):
        forest = RandomForestClassifier(2, random_state=seed).fit(X, y)
        worker._keep(worker._trees_of(forest), tmp_path / f"{name}.npz")
    assert suite._compare(IRIS, tmp_path)["wrong"]


@pytest.mark.parametrize("library", ["lightgbm", "xgboost", "ydf", "scikit-learn-intelex"])
def test_what_a_library_does_not_have_is_told_before_it_is_imported(library):
    params = IRIS.params | {"criterion": "entropy"}
    with pytest.raises(models.Unsupported, match="entropy"):
        models.create(library, "classification", params, (100, 4), n_jobs=1)


@pytest.mark.parametrize("peer", ["ranger", "randomForest"])
def test_packages_of_r_have_no_bins(peer, tmp_path):
    binned = IRIS._replace(params=IRIS.params | {"max_bins": 255})
    with pytest.raises(suite._Failed, match="no bins"):
        suite._launch(binned, peer, ["false"], 1, tmp_path, 4, 1.0)


def test_a_peer_that_is_not_there_is_left_out_with_its_reason(monkeypatch, tmp_path):
    monkeypatch.setattr(environment, "ENVIRONMENTS", tmp_path)
    monkeypatch.setattr(environment.shutil, "which", lambda name: None)
    commands, absent = suite._commands(list(BY_NAME), is_quick=True)
    assert set(commands) == {OURS, REFERENCE}
    assert absent["ranger"] == "R is not installed"
    assert "not installed" in absent["lightgbm"]
    assert "compiles" in absent["wildwood"]


def test_an_installation_that_fails_is_a_reason(monkeypatch, tmp_path):
    monkeypatch.setattr(environment, "ENVIRONMENTS", tmp_path)

    def fail(*args, **kwargs):
        raise subprocess.CalledProcessError(1, "pip", stderr="ERROR: no such thing\n\n")

    monkeypatch.setattr(environment.subprocess, "run", fail)
    with pytest.raises(environment.NotInstalled, match="no such thing"):
        environment.command(BY_NAME["lightgbm"])


def test_ratios_and_bars_stand_in_the_table():
    case = CASES[0]
    side = {"fit": 1.0, "predict": 1.0, "score": 0.9, "memory": 1e6, "pickle": 1e6}
    row = {
        "case": case.name,
        "sides": {OURS: side, REFERENCE: {**side, "fit": 10.0, "predict": 4.0}},
        "identity": {"identical_trees": 9, "trees": 10},
    }
    cells = suite.table({"rows": [row]}).rows[0]
    assert cells[3:] == ["10.0x", "10.0x", "yes", "4.00x", "5.00x", "no", "90.00 %"]


def test_documents_show_the_results_that_are_kept():
    assert tables.page() == tables.PAGE.read_text()
    readme = tables.README.read_text()
    assert tables.with_figures(readme, results.load("suite")) == readme


def test_figures_stand_between_their_marks():
    case = CASES[0]
    side = {"fit": 1.0, "predict": 1.0}
    row = {"case": case.name, "sides": {OURS: side, REFERENCE: {"fit": 10.0, "predict": 4.0}}}
    text = f"before\n{tables.BEGIN}old\n{tables.END}after\n"
    found = tables.with_figures(text, {"rows": [row]})
    assert f"| {case.name} | 1.00 s | 10.0 s | 10.0x | 4.00x |" in found
    assert found.startswith("before\n")
    assert found.endswith("after\n")
    assert "old" not in found
    assert tables.with_figures(found, {"rows": [row]}) == found


def test_rows_measured_again_replace_their_results(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "RESULTS", tmp_path)
    results.save("x", {"rows": [{"kind": k, "ours": 1.0, "trees": "10 tie"} for k in "ab"]})
    again = {"rows": [{"kind": "b", "ours": 2.0, "trees": "9 tie, 1 pure"}]}
    results.save("x", again, only="b")
    rows = results.load("x")["rows"]
    assert [(row["kind"], row["ours"]) for row in rows] == [("a", 1.0), ("b", 2.0)]
