"""`cartwood show` of dates, and of names that look like formulas."""

import re

import numpy as np
import pandas as pd

from cartwood.__main__ import main


def run(*words):
    return main([str(word) for word in words])


def test_show_has_dates_where_trees_have_seconds(tmp_path, capsys):
    days = pd.date_range("2020-01-01", periods=40, freq="D")
    frame = pd.DataFrame({"sold (day)": days, "y": np.repeat([0.0, 10.0], 20)})
    table, model, picture = (tmp_path / name for name in ("t.csv", "t.model", "t.svg"))
    frame.to_csv(table, index=False)
    options = ("--trees", 1, "--n-jobs", 1, "--save", model)
    assert run("fit", table, "--target", "y", *options) == 0
    capsys.readouterr()
    assert run("show", model) == 0
    first, *_, last = [line for line in capsys.readouterr().out.splitlines() if "sold" in line]
    assert re.fullmatch(r"\|--- sold \(day\) <= 2020-01-\d\d( 12:00:00)?", first)
    assert re.fullmatch(r"\|--- sold \(day\) >  2020-01-\d\d( 12:00:00)?", last)
    assert run("show", model, "--output", picture) == 0
    assert "2020-01-" in picture.read_text()


def test_show_draws_names_that_look_like_formulas(tmp_path):
    x = np.arange(40)
    frame = pd.DataFrame({r"$\bad{$": x, "y": np.where(x < 20, r"$\v{$", "n")})
    table, model, picture = (tmp_path / name for name in ("t.csv", "t.model", "t.png"))
    frame.to_csv(table, index=False)
    kept = ("--trees", 1, "--n-jobs", 1, "--save", model)
    assert run("fit", table, "--target", "y", *kept) == 0
    assert run("show", model, "--output", picture) == 0


def test_show_has_dates_in_the_splits_beside_a_split(tmp_path, capsys):
    days = pd.date_range("2020-01-01", periods=40, freq="D")
    rng = np.random.default_rng(0)
    y = np.repeat([0.0, 10.0], 20) + rng.random(40)
    frame = pd.DataFrame({"sold": days, "paid": rng.permutation(days), "x": y.round(), "y": y})
    table, model = tmp_path / "t.csv", tmp_path / "t.model"
    frame.to_csv(table, index=False)
    kept = ("--trees", 1, "--surrogates", 2, "--competitors", 2, "--save", model)
    assert run("fit", table, "--target", "y", "--n-jobs", 1, *kept) == 0
    capsys.readouterr()
    assert run("show", model, "--surrogates", 2, "--competitors", 2) == 0
    lines = capsys.readouterr().out.splitlines()
    beside = [line for line in lines if re.search("(surrogate|competitor): (sold|paid)", line)]
    assert beside
    assert all(re.search(r" 2020-0[12]-\d\d( 12:00:00)? \(", line) for line in beside)
