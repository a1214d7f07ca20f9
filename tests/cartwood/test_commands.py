"""The commands, on small tables: what they print, the pages, their exit codes."""

import io
import os
import re
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cartwood import RandomForestRegressor, interop, page
from cartwood.__main__ import COMMANDS, main
from cartwood.page import draw
from cartwood.terminal import UserError, print_table

ROOT = Path(__file__).resolve().parents[2]
N = 150


@pytest.fixture
def houses(tmp_path):
    """Prices by size and city, with what real tables have."""
    rng = np.random.default_rng(0)
    size = rng.uniform(40, 200, N)
    city = rng.choice(["Oslo", "Rome", "Pécs"], N)
    frame = pd.DataFrame({
        "size": np.where(rng.random(N) < 0.1, np.nan, size),
        "city": city,
        "<noise>": rng.normal(size=N),
        "price": size * np.where(city == "Oslo", 3.0, 1.0) + rng.normal(size=N),
    })  # fmt: skip
    frame.loc[0, "price"] = np.nan
    path = tmp_path / "houses.csv"
    frame.to_csv(path, index=False)
    return path


def run(*words):
    return main([str(word) for word in words])


def test_importance_prints_a_table_and_writes_a_page(houses, capsys):
    page = houses.with_name("page.html")
    options = ("--trees", 20, "--n-jobs", 1, "--output", page)
    assert run("importance", houses, "--target", "price", *options) == 0
    said = capsys.readouterr()
    rows = said.out.splitlines()
    assert rows[0].split() == ["column", "permutation", "unbiased", "MDI", "MDI"]
    assert [row.split()[0] for row in rows[1:]] == ["city", "size", "<noise>"]
    for words in (
        "149 rows (1 more have no price",
        "city 3",
        "left out",
        "city matters most for price",
    ):
        assert words in said.err
    text = page.read_text()
    lead = text.partition('<p class="lead">')[2]
    assert lead.startswith("city matters most for price")
    assert "&lt;noise&gt;" in text
    assert "<noise>" not in text
    for words in (
        "<b>149</b><span>rows</span>",
        "<b>20</b><span>trees</span>",
        "1 column of categories (city 3)",
    ):
        assert words in text
    assert not re.search(r'(src|href)="(?!#)|@import|url\((?!#)', text)  # needs no other file


def test_a_terminal_shows_the_first_rows_of_a_long_table(capsys, monkeypatch):
    rows = [[f"x{j}", "0"] for j in range(100)]
    print_table(["column", "MDI"], rows)
    assert len(capsys.readouterr().out.splitlines()) == 101
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    print_table(["column", "MDI"], rows)
    said = capsys.readouterr()
    assert [line.split()[0] for line in said.out.splitlines()] == [
        "column",
        *(f"x{j}" for j in range(40)),
    ]
    assert said.err == "60 more rows are on the page\n"


def test_a_terminal_shows_long_names_in_one_line(capsys, monkeypatch):
    rows = [["How much do you agree: " + "very " * 20 + end, "0.1 ± 0.2"] for end in ("a", "b")]
    print_table(["column", "MDI"], rows)
    assert rows[0][0] in capsys.readouterr().out
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    for width, shown in ((80, 69), (30, 24), (200, len(rows[0][0]))):
        monkeypatch.setenv("COLUMNS", str(width))
        print_table(["column", "MDI"], rows)
        _, first, second = capsys.readouterr().out.splitlines()
        assert len(first) == shown + 2 + 9
        assert first.startswith("How much do you")
        assert (first.split()[-4][-1], second.split()[-4][-1]) == ("a", "b")


def test_letters_that_no_font_has_are_text_in_pictures():
    pyplot = pytest.importorskip("matplotlib.pyplot")

    def plot(name):
        def drawn():
            figure, axes = pyplot.subplots()
            axes.set_title(name)
            warnings.warn("another", UserWarning, stacklevel=1)
            return figure

        return drawn

    with pytest.warns(UserWarning, match="another") as said:
        japanese, latin = (draw(plot(name)) for name in ("\u65e5\u672c", "latin"))
    assert "\u65e5\u672c</text>" in japanese
    assert "<text" not in latin
    assert {str(each.message) for each in said} == {"another"}


def test_refits_without_the_only_column_are_left_out(houses, capsys):
    options = ("--refits", "--drop", "city", "--drop", "<noise>", "--trees", 5, "--n-jobs", 1)
    page = houses.with_name("page.html")
    assert run("importance", houses, "--target", "price", *options, "--output", page) == 0
    said = capsys.readouterr()
    assert "left out: the table has only one column" in said.err
    assert "drop column" not in said.out


def test_importance_with_shap(houses, capsys):
    page = houses.with_name("page.html")
    options = ("--shap", "--trees", 20, "--n-jobs", 1, "--output", page)
    assert run("importance", houses, "--target", "price", *options) == 0
    rows = capsys.readouterr().out.splitlines()
    assert rows[0].split()[-7:] == ["mean", "|SHAP|", "mean", "|SHAP|", "out", "of", "bag"]
    assert [row.split()[0] for row in rows[1:]] == ["city", "size", "<noise>"]
    picture = page.read_text().partition("Mean |SHAP| by trees that have not seen the row")[2]
    assert "<svg" in picture.partition("</figure>")[0]


def test_rows_are_drawn_from_large_tables_and_that_is_said(houses, capsys, monkeypatch):
    """On standard error, below the finding, and where the measures are explained."""
    monkeypatch.setattr("cartwood.commands.judging.MAX_ROWS", 20)
    page = houses.with_name("page.html")
    words = "20 out-of-bag rows, drawn at random"
    options = ("--trees", 20, "--n-jobs", 1, "--without", "pictures", "--output", page)
    assert run("importance", houses, "--target", "price", *options) == 0
    said = capsys.readouterr().err
    assert f"each tree is judged on {words}; --exact uses all" in said
    assert page.read_text().count(words) == 2
    assert run("importance", houses, "--target", "price", "--exact", *options) == 0
    assert "drawn at random" not in capsys.readouterr().err
    assert "drawn at random" not in page.read_text()


def test_parts_are_left_out_by_name(houses, capsys):
    page = houses.with_name("page.html")
    without = [word for part in ("unbiased_mdi", "mdi", "jointly", "pictures")
               for word in ("--without", part)]  # fmt: skip
    options = ("--trees", 20, "--n-jobs", 1, *without, "--output", page)
    assert run("importance", houses, "--target", "price", *options) == 0
    said = capsys.readouterr()
    assert said.out.splitlines()[0].split() == ["column", "permutation"]
    for part in ("unbiased_mdi", "mdi", "jointly", "pictures"):
        verb = "are" if part == "pictures" else "is"
        assert f"{part} {verb} left out (--without {part})" in said.err
    assert "<svg" not in page.read_text()
    with pytest.raises(SystemExit, match="2"):
        run("importance", houses, "--target", "price", "--without", "permutation")


def test_every_phase_has_its_progress(houses, capsys):
    options = ("--trees", 20, "--n-jobs", 1, "--output", houses.with_name("page.html"))
    assert run("importance", houses, "--target", "price", "--refits", "--shap", *options) == 0
    said = capsys.readouterr().err
    phases = (
        *("growing 20 trees", "permuting columns out of bag", "judging splits out of bag"),
        *("growing the forest again without each column", "explaining rows (SHAP)"),
    )
    for phase in phases:
        assert f"{phase} ..." in said
        assert f"{phase}: " in said


def test_one_tree_is_not_several(houses, capsys):
    model = houses.with_name("one.model")
    options = ("--trees", 1, "--n-jobs", 1, "--save", model)
    assert run("fit", houses, "--target", "price", *options) == 0
    assert "growing 1 tree ..." in capsys.readouterr().err
    assert run("show", model, "--tree", 5) == 2
    assert "the model has 1 tree, numbered from 0" in capsys.readouterr().err


def test_compare_has_both_sides(houses, capsys):
    page = houses.with_name("page.html")
    options = ("--trees", 10, "--n-jobs", 1, "--output", page)
    assert run("compare", houses, "--target", "price", *options) == 0
    said = capsys.readouterr()
    assert "permutation, scikit-learn" in said.out.splitlines()[0]
    assert "scikit-learn needs numbers: its forest gets codes for city" in said.err
    assert "by permutation, city comes first in both" in said.err
    text = page.read_text()
    assert "On houses, Cartwood fits in" in text
    assert "one standard error, over data for Cartwood and over permutations for" in text
    assert text.count('class="error"') == 6  # lines of three columns, on both sides


def test_scikit_learn_gets_codes_of_categories():
    """Sorted; a category that was not in training is missing, as a gap is."""
    train = pd.DataFrame({"city": ["b", "a", "c"], "size": [1.0, 2.0, 3.0]})
    new = pd.DataFrame({"city": ["c", "d", "a", None], "size": 4.0})
    found = interop.encode(new, ["city"], train)
    np.testing.assert_array_equal(found["city"], [2.0, np.nan, 0.0, np.nan])
    assert (found["size"] == 4.0).all()


@pytest.mark.parametrize(
    ("value", "said"), [(61.5, "61.5 s"), (0.25, "250 ms"), (0.0021, "2.10 ms"), (4e-5, "40.0 µs")]
)
def test_times_have_a_suitable_unit(value, said):
    assert page.seconds(value) == said


@pytest.fixture
def saved(houses):
    """A model of the prices, under a name of any kind."""
    path = houses.with_name("houses.model")
    options = ("--trees", 10, "--n-jobs", 1, "--save", path)
    assert run("fit", houses, "--target", "price", *options) == 0
    return path


def test_a_saved_model_predicts_as_it_was_fitted(houses, saved, capsys):
    capsys.readouterr()
    assert run("predict", saved, houses) == 0
    found = pd.read_csv(io.StringIO(capsys.readouterr().out))
    table = pd.read_csv(houses)
    assert list(found.columns) == ["price"]
    assert np.corrcoef(found["price"][1:], table["price"][1:])[0, 1] > 0.95
    out = houses.with_name("out.csv")
    table.drop(columns="price").assign(city="Bergen").to_csv(houses.with_name("new.csv"))
    assert run("predict", saved, houses.with_name("new.csv"), "--output", out) == 0
    assert "city: 150 rows have a value that training did not have" in capsys.readouterr().err
    assert len(pd.read_csv(out)) == N


def test_categories_that_look_like_numbers_are_known_again(tmp_path, capsys):
    """Of "1", "2" and "x" new rows have "1", "2" and a gap: pandas alone would read 1.0 and 2.0."""
    table, new, model = (tmp_path / name for name in ("t.csv", "new.csv", "m.safetensors"))
    table.write_text("a,y\n" + "1,0.5\n2,10.5\nx,20.5\n" * 20)
    new.write_text("a\n1\n2\nNA\n")
    assert run("fit", table, "--target", "y", "--trees", 5, "--n-jobs", 1, "--save", model) == 0
    capsys.readouterr()
    assert run("predict", model, new) == 0
    said = capsys.readouterr()
    assert said.out.split()[1:3] == ["0.5", "10.5"]
    assert not said.err


def test_units_are_known_again(tmp_path, capsys):
    table, new, model = (tmp_path / name for name in ("t.csv", "new.csv", "m.safetensors"))
    table.write_text("a;y\n" + "1,5 kg;$1,000\n2,5 kg;$2,000\n" * 20)
    new.write_text("a;b\n1,5 kg;\n2,5 kg;\n")
    words = ("--target", "y", "--task", "regression", "--trees", 5, "--n-jobs", 1)
    assert run("fit", table, *words, "--save", model) == 0
    assert "units removed: a kg" in capsys.readouterr().err
    assert run("predict", model, new) == 0
    assert capsys.readouterr().out.split()[1:] == ["1000.0", "2000.0"]
    new.write_text("a;b\n1500 g;\n")
    assert run("predict", model, new) == 2
    assert "column 'a' should hold a written number: '1500 g' is not a number in 'kg'" in (
        capsys.readouterr().err
    )


def test_values_of_new_rows_that_are_not_read_are_named(tmp_path, capsys):
    """As those of training are: words among numbers, infinities, days that may be first."""
    table, new, model = (tmp_path / name for name in ("t.csv", "new.csv", "m.safetensors"))
    rows = [f"{j}.5,{j},2020-01-{j % 28 + 1:02},{j}\n" for j in range(60)]
    table.write_text("a,b,c,y\n" + "".join(["n.a.,1,2020-02-01,1\n", *rows]))
    new.write_text("a,b,c\n1.5 m,inf,01/02/2020\n2.5,3,03/02/2020\n")
    assert run("fit", table, "--target", "y", "--trees", 2, "--n-jobs", 1, "--save", model) == 0
    capsys.readouterr()
    assert run("predict", model, new) == 0
    assert capsys.readouterr().err.splitlines() == [
        'a: 1 value that is not a number ("1.5 m") counts as missing',
        "b: infinite values (1) count as missing",
        'c: "01/02/2020" is read as 2020-01-02, month first; if the day is first, write dates as '
        "YYYY-MM-DD",
    ]
    new.write_text("a,b,c\n,,\n2.5,3,2020-01-02\n")
    assert run("predict", model, new) == 0
    assert capsys.readouterr().err == ""


def test_classes_come_with_their_shares(houses, capsys):
    path = houses.with_name("city.model")
    options = ("--trees", 10, "--n-jobs", 1, "--save", path)
    assert run("fit", houses, "--target", "city", *options) == 0
    capsys.readouterr()
    assert run("predict", path, houses) == 0
    found = pd.read_csv(io.StringIO(capsys.readouterr().out))
    assert list(found.columns) == ["city", "city=Oslo", "city=Pécs", "city=Rome"]
    np.testing.assert_allclose(found.iloc[:, 1:].sum(axis=1), 1.0)


def test_show_prints_and_draws_a_tree(saved, capsys):
    assert run("show", saved, "--depth", 1) == 0
    text = capsys.readouterr().out
    assert "city" in text or "size" in text
    picture = saved.with_name("tree.svg")
    assert run("show", saved, "--tree", 3, "--output", picture) == 0
    assert "<svg" in picture.read_text()
    assert run("show", saved, "--tree", 10) == 2
    assert "the model has 10 trees" in capsys.readouterr().err


def test_compare_names_numbers_that_scikit_learn_does_not_take(tmp_path, capsys):
    frame = pd.DataFrame(
        {"x": np.arange(40), "huge": np.linspace(-1e300, 1.0, 40), "y": [0, 1] * 20}
    )
    frame.to_csv(tmp_path / "t.csv", index=False)
    assert run("compare", tmp_path / "t.csv", "--target", "y", "--trees", 2) == 2
    assert "column 'huge' has numbers above 3.4e38" in capsys.readouterr().err


def test_show_prints_the_splits_beside_a_split(houses, capsys):
    path = houses.with_name("kept.model")
    kept = ("--trees", 2, "--n-jobs", 1, "--surrogates", 2, "--competitors", 1, "--save", path)
    assert run("fit", houses, "--target", "price", *kept) == 0
    capsys.readouterr()
    assert run("show", path, "--depth", 1, "--surrogates", 1, "--competitors", 1) == 0
    text = capsys.readouterr().out
    assert "|   surrogate: " in text
    assert "|   competitor: " in text
    assert run("show", path, "--surrogates", 1, "--output", houses.with_name("tree.svg")) == 2
    assert "pictures do not show surrogates; omit --output" in capsys.readouterr().err


def test_show_says_what_a_model_did_not_keep(saved, capsys):
    capsys.readouterr()
    assert run("show", saved, "--competitors", 2) == 2
    assert "fit it with --competitors 2" in capsys.readouterr().err


def test_what_is_no_model_is_refused(houses, saved, capsys):
    assert run("predict", houses, houses) == 2
    assert "is not a model file" in capsys.readouterr().err
    assert run("predict", houses.with_name("none.model"), houses) == 2
    assert "cannot read" in capsys.readouterr().err
    RandomForestRegressor(1).fit([[1.0], [2.0]], [1.0, 2.0]).save(houses.with_name("other.model"))
    assert run("predict", houses.with_name("other.model"), houses) == 2
    assert "was not saved by `cartwood fit --save`" in capsys.readouterr().err
    houses.with_name("few.csv").write_text("size\n3\n")
    assert run("predict", saved, houses.with_name("few.csv")) == 2
    assert "there is no column 'city'" in capsys.readouterr().err


def test_warnings_are_lines_without_code(tmp_path, capsys):
    table = tmp_path / "t.csv"
    classes = [f"class {j}" for j in range(20)]
    pd.DataFrame({"x": np.arange(32.0), "y": classes + classes[:12]}).to_csv(table, index=False)
    assert run("importance", table, "--target", "y", "--trees", 5, "--without", "pictures",
               "--output", tmp_path / "page.html", "--n-jobs", 1) == 0  # fmt: skip
    said = capsys.readouterr().err
    assert "! The number of unique classes is greater than 50%" in said
    assert ".py:" not in said


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--target", "prize"], "has no column 'prize'; did you mean price"),
        (["--target", "price", "--drop", "citi"], "has no column 'citi'; did you mean city"),
        (
            ["--target", "price", "--drop", "price"],
            "--drop price: this is the target, which cannot be left out.",
        ),
    ],
)
def test_misspelt_columns(houses, words, says, capsys):
    assert run("importance", houses, *words) == 2
    said = capsys.readouterr()
    assert says in said.err
    assert len(said.err.splitlines()) == 1
    assert said.out == ""


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "a b\n1 2\n",
            "no column 'b'; the columns are a b. Column names must be separated by commas, semi",
        ),
        ("b\n" + "1\n2\n" * 9, "left to predict from: the table has only the target."),
    ],
)
def test_one_column_is_too_few(text, says, tmp_path, capsys):
    (tmp_path / "t.csv").write_text(text)
    assert run("importance", tmp_path / "t.csv", "--target", "b") == 2
    assert says in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (
            ["fit", "--trees", "0", "--target", "a", "--save", "m", "t"],
            "--trees: must be at least 1",
        ),
        (["fit", "--seed=-1", "--target", "a", "--save", "m", "t"], "--seed: must be at least 0"),
        (["fit", "--seed", 2**32, "--target", "a", "--save", "m", "t"], "--seed: must be below"),
        (["show", "--depth=-1", "m"], "--depth: must be at least 0"),
    ],
)
def test_numbers_out_of_range(words, says, capsys):
    with pytest.raises(SystemExit):
        run(*words)
    assert says in capsys.readouterr().err


def test_missing_pandas_is_one_line(houses, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert run("importance", houses, "--target", "price") == 2
    assert capsys.readouterr().err == (
        'cartwood importance: pandas is not installed; pip install "cartwood[frame]" brings it.\n'
    )


def test_pages_do_without_matplotlib(houses, monkeypatch, capsys):
    monkeypatch.setattr("cartwood.page.has_pictures", lambda: False)
    page = houses.with_name("page.html")
    options = ("--trees", 20, "--n-jobs", 1, "--output", page)
    assert run("importance", houses, "--target", "price", *options) == 0
    text = page.read_text()
    assert "<svg" not in text
    assert "cartwood[plot]" in text


def test_a_place_that_cannot_be_written_is_refused_before_the_fit(houses, capsys):
    for path, words in ((houses.parent, "is a folder"), (houses / "x.model", "there is no folder")):
        for command, option in (("fit", "--save"), ("importance", "--output")):
            assert run(command, houses, "--target", "price", option, path) == 2
            said = capsys.readouterr().err
            assert words in said
            assert len(said.splitlines()) == 1


def test_points_that_may_part_thousands_are_doubted(tmp_path, capsys):
    path = tmp_path / "prices.csv"
    rows = [f"{i},{999 if i % 3 else '12.340'},{i / 7}" for i in range(20)]
    path.write_text("\n".join(["size,price,other", *rows]))
    assert run("fit", path, "--target", "size", "--trees", 2, "--save", tmp_path / "model") == 0
    assert 'price: "12.340" is read as 12.34, beside "999"; ' in capsys.readouterr().err


NEEDS_A_USER = pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root")


NO_SYSTEM = pytest.mark.skipif(not Path("/proc/self").exists(), reason="no /proc")


@pytest.fixture(
    params=[
        pytest.param("a folder", marks=NEEDS_A_USER),
        pytest.param("a file", marks=NEEDS_A_USER),
        pytest.param("the system", marks=NO_SYSTEM),
    ]
)
def locked(request, tmp_path):
    """A path that cannot be written: what is locked is its folder, a file there, or all."""
    if request.param == "the system":
        yield Path("/proc/page.html")
        return
    path = tmp_path / "locked" / "page.html"
    path.parent.mkdir()
    place = path.parent
    if request.param == "a file":
        path.write_text("old")
        place = path
    place.chmod(0o555)
    yield path
    place.chmod(0o755)


def test_a_place_that_is_locked_is_refused_before_the_fit(houses, locked, capsys, monkeypatch):
    monkeypatch.setattr("cartwood.commands.fitting.load", lambda args: pytest.fail("is read"))
    for command, option in (("fit", "--save"), ("importance", "--output"), ("compare", "--output")):
        if command == "fit" and locked.exists():  # is replaced, which its folder allows
            continue
        assert run(command, houses, "--target", "price", option, locked) == 2
        said = capsys.readouterr().err
        assert said.startswith(f"cartwood {command}: cannot write {locked}: ")
        assert len(said.splitlines()) == 1


def test_the_place_of_a_page_without_a_name_is_tried_too(houses, locked, capsys, monkeypatch):
    if locked.exists():
        pytest.skip("its folder may be written to")
    monkeypatch.chdir(locked.parent)
    for command in ("importance", "compare"):
        assert run(command, houses, "--target", "price") == 2
        said = capsys.readouterr().err
        assert f"cannot write {command}-houses.html: " in said
        assert len(said.splitlines()) == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no full disk to offer")
def test_a_full_disk_is_named(houses, tmp_path, capsys):
    model = tmp_path / "houses.model"
    assert run("fit", houses, "--target", "price", "--save", model) == 0
    capsys.readouterr()
    for words in (("predict", model, houses), ("importance", houses, "--target", "price")):
        assert run(*words, "--output", "/dev/full") == 2
        said = capsys.readouterr().err.splitlines()[-1]
        assert said == f"cartwood {words[0]}: cannot write /dev/full: No space left on device"


def test_a_place_that_is_tried_stays_as_it_is(houses, monkeypatch):
    def stop(args):
        raise UserError("no further")

    monkeypatch.setattr("cartwood.commands.fitting.load", stop)
    new, old = houses.with_name("new"), houses.with_name("old")
    old.write_text("old")
    before = sorted(houses.parent.iterdir())
    for path in (new, old):
        assert run("fit", houses, "--target", "price", "--save", path) == 2
        assert run("importance", houses, "--target", "price", "--output", path) == 2
    assert sorted(houses.parent.iterdir()) == before
    assert old.read_text() == "old"


def test_what_is_read_is_not_written_over(houses, saved, capsys):
    before = houses.read_bytes(), saved.read_bytes()
    again = houses.parent / ".." / houses.parent.name / houses.name
    for words in (
        ("fit", houses, "--target", "price", "--save", again),
        ("importance", houses, "--target", "price", "--output", houses),
        ("predict", saved, houses, "--output", houses),
        ("predict", saved, houses, "--output", saved),
        ("show", saved, "--output", saved),
    ):
        capsys.readouterr()
        assert run(*words) == 2
        assert "is an input file and would be overwritten" in capsys.readouterr().err
    assert (houses.read_bytes(), saved.read_bytes()) == before


def test_what_the_system_refuses_is_one_line(houses, capsys, monkeypatch):
    def refuse(*args, **kwargs):
        raise PermissionError(13, "Permission denied", "page.html")

    monkeypatch.setattr("cartwood.commands.fitting.load", refuse)
    assert run("importance", houses, "--target", "price") == 2
    assert capsys.readouterr().err == (
        "cartwood importance: [Errno 13] Permission denied: 'page.html'\n"
    )


@pytest.mark.filterwarnings("error")
def test_ids_are_named(tmp_path, capsys):
    path, rng = tmp_path / "t.csv", np.random.default_rng(0)
    ids, price = rng.permutation(60) + 10**15, rng.random(60)
    pd.DataFrame({"id": ids, "rooms": ids % 5, "price": price}).to_csv(path, index=False)
    assert run("fit", path, "--target", "price", "--trees", 2, "--save", tmp_path / "m") == 0
    said = capsys.readouterr().err
    assert '--drop "id"' in said
    assert "rooms:" not in said
    page = tmp_path / "page.html"
    options = ("--trees", 2, "--n-jobs", 1, "--without", "pictures", "--output", page)
    assert run("importance", path, "--target", "price", *options) == 0
    assert "<li>id: all values are distinct whole numbers" in page.read_text()


def test_help_keeps_capitals(capsys):
    with pytest.raises(SystemExit):
        run("predict", "--help")
    assert "Predict the rows of a table with a saved model, as CSV." in capsys.readouterr().out


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_examples(command, capsys):
    with pytest.raises(SystemExit) as ended:
        run(command, "--help")
    assert ended.value.code == 0
    assert f"examples:\n  cartwood {command}" in capsys.readouterr().out


def test_a_reader_that_has_enough_is_no_error(houses, saved):
    words = [sys.executable, "-m", "cartwood", "predict", str(saved), str(houses)]
    with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as done:
        done.stdout.close()  # as `head` does
        said = done.stderr.read().decode()
    assert "Traceback" not in said
    assert "BrokenPipe" not in said
    assert done.returncode == 141


def test_help_and_slips_wait_for_nothing():
    """What is slow to import, numba and all that needs it, comes with the work."""
    code = (
        "import sys, cartwood.__main__ as door; door._parser(); "
        "print([name for name in ('numba', 'sklearn', 'pandas') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


def test_it_runs_as_a_module():
    done = subprocess.run(
        [sys.executable, "-m", "cartwood", "importance", "none.csv", "--target", "y"],
        cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr == "cartwood importance: there is no file none.csv.\n"


def test_fit_and_compare_name_copies_of_rows(houses, tmp_path, capsys):
    table, path = pd.read_csv(houses)[1:], tmp_path / "copies.csv"  # the first has no price
    pd.concat([table, table[:50]]).to_csv(path, index=False)
    run("fit", path, "--target", "price", "--save", tmp_path / "model")
    assert "\n100 of 199 rows equal another row" in capsys.readouterr().err
    quick = ("--no-permutation", "--trees", 5, "--output", tmp_path / "page.html")
    run("compare", path, "--target", "price", *quick)
    assert re.search(r"\n\d\d of 1\d\d rows equal another", capsys.readouterr().err)
