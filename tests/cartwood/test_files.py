"""How the commands read files, and which they refuse."""

import warnings
from decimal import Decimal
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest

from cartwood.table import Recipe, Task, read
from cartwood.table.thousands import doubts_on_points
from cartwood.terminal import UserError


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_zeros_before_whole_numbers_make_codes(tmp_path, encoding):
    """As "01" beside "n.a." does; pandas reads 1."""
    path = tmp_path / "t.csv"
    rows = "01003,007,05,00.5,01\r\n36000,,5,1.5,02\r\n"
    path.write_text(f"zip,gap,month,amount,y\r\n{2 * rows}", encoding=encoding, newline="")
    frame = read(path)
    assert frame["zip"].tolist() == 2 * ["01003", "36000"]
    assert frame["gap"].dropna().tolist() == 2 * ["007"]
    assert frame["month"].tolist() == 4 * [5]  # here zeros say nothing
    assert frame["amount"].tolist() == 2 * [0.5, 1.5]
    assert Task.of(frame["y"]).y.tolist() == 2 * ["01", "02"]
    assert Task.of(frame["y"], "regression").y.tolist() == 2 * [1.0, 2.0]


def test_infinity_beside_points_is_no_warning(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("price\ninf\n12.345\n1.250\n999\n")
    with warnings.catch_warnings(action="error"):
        assert not list(doubts_on_points(path, read(path)))


def test_points_of_parquet_part_no_thousands(tmp_path):
    frame = pd.DataFrame({"price": [12.345, 999.0, 1.25]})
    assert not list(doubts_on_points(tmp_path / "table.parquet", frame))


def test_commas_as_decimals(tmp_path):
    """As spreadsheets write them where a comma is the decimal sign; targets, too."""
    path = tmp_path / "t.csv"
    table = pd.DataFrame({"a": np.arange(60) / 7, "y": np.arange(60) / 3 + 0.1})
    table.to_csv(path, sep=";", decimal=",", index=False)
    found = read(path)
    assert Recipe.of(found).kinds["a"] == "written number"
    np.testing.assert_allclose(Recipe.of(found).apply(found)["a"], table["a"])
    task = Task.of(found["y"])
    assert task.kind == "regression"
    np.testing.assert_allclose(task.y, table["y"])


def test_decimal_commas_of_one_column(tmp_path):
    """They are not taken for what parts columns; where a comma stands in a word, it is."""
    path = tmp_path / "t.csv"
    path.write_text("a\n1,5\nn.a.\n-12,25 %\n1.000,5\n")
    assert read(path)["a"].tolist() == ["1,5", "n.a.", "-12,25 %", "1.000,5"]
    path.write_text("a\n1,5\nOslo,3\n")
    with pytest.raises(UserError, match="more fields than its first line"):
        read(path)


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_text_with_any_separator(separator, name, tmp_path):
    path = tmp_path / name
    pd.DataFrame({"a": [1, 2], "b": [3, 4]}).to_csv(path, sep=separator, index=False)
    assert read(path).shape == (2, 2)


def test_lines_that_end_with_a_separator(tmp_path):
    """pandas alone would take the first field of a row for its name, and shift the others."""
    (tmp_path / "t.csv").write_text("\n\na;b\n1;2;\n3;4;\n")
    assert read(tmp_path / "t.csv").to_dict("list") == {"a": [1, 3], "b": [2, 4]}


def test_a_second_line_of_names_is_refused(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,x\n2,b\na,b\n3,x\n")
    with pytest.raises(UserError, match="row 3 repeats the header, as in concatenated files"):
        read(tmp_path / "t.csv")
    (tmp_path / "t.csv").write_text("a,b\n1,x\n2,b\na,c\n3,x\n")
    assert len(read(tmp_path / "t.csv")) == 4


def test_names_of_several_lines_and_none(tmp_path):
    (tmp_path / "t.csv").write_text('"a\nb, c",,d\n1,2,3\n')
    assert list(read(tmp_path / "t.csv").columns) == ["a b, c", "Unnamed: 1", "d"]


def test_columns_that_stay_text(tmp_path):
    """New rows of a column of categories may have numbers alone, and some of them missing."""
    (tmp_path / "t.csv").write_text("a,b\n1,1\n,02\nNA,3\n")
    found = read(tmp_path / "t.csv", texts=["a", "b", "not there"])
    assert found["b"].tolist() == ["1", "02", "3"]
    assert found["a"][0] == "1"
    assert found["a"].isna().tolist() == [False, True, True]


def test_decimals_of_parquet_are_numbers(tmp_path, monkeypatch):
    """pandas reads them as objects."""
    prices = pd.Series([None, *(Decimal(cents) / 100 for cents in range(5))], dtype=object)
    frame = pd.DataFrame({"price": prices, "word": list("abcabc")})
    monkeypatch.setattr(pd, "read_parquet", Mock(return_value=frame))
    (tmp_path / "t.parquet").write_bytes(b"PAR1")
    found = read(tmp_path / "t.parquet")
    assert Recipe.of(found).kinds == {"price": "number", "word": "category"}
    assert found["price"].dtype == np.float64
    assert found["price"].tolist()[1:] == [0.0, 0.01, 0.02, 0.03, 0.04]


@pytest.mark.parametrize("error", [ImportError, NotImplementedError])
def test_parquet_columns_that_numpy_has_no_type_for(tmp_path, monkeypatch, error):
    """Decimals and wide integers, which pyarrow lacks, are numbers; records and arrays, texts."""
    polars = pytest.importorskip("polars")
    monkeypatch.setattr(pd, "read_parquet", Mock(side_effect=error))
    cents = polars.Series(range(6))
    columns = {
        "price": (cents / 4).cast(polars.Decimal(10, 2)), "wide": cents.cast(polars.Int128),
        "record": [{"a": k % 2} for k in range(6)],
        "pair": polars.Series([[k % 2, 1] for k in range(6)], dtype=polars.Array(polars.Int64, 2)),
    }  # fmt: skip
    polars.DataFrame(columns).write_parquet(tmp_path / "t.parquet")
    found = read(tmp_path / "t.parquet")
    kinds = {"price": "number", "wide": "number", "record": "category", "pair": "category"}
    assert Recipe.of(found).kinds == kinds
    X = Recipe.of(found).apply(found)
    assert X["price"].tolist() == [k / 4 for k in range(6)]
    assert X["record"].tolist() == ["{'a': 0}", "{'a': 1}"] * 3


@pytest.mark.parametrize(
    ("error", "said"),
    [(ImportError, "need pyarrow or polars"), (NotImplementedError("int128"), "int128")],
)
def test_what_reads_parquet_is_named(tmp_path, monkeypatch, error, said):
    """Of what is missing, and of what pyarrow cannot read without the help of polars."""
    monkeypatch.setattr(pd, "read_parquet", Mock(side_effect=error))
    monkeypatch.setattr("cartwood.table.files.find_spec", lambda name: None)
    (tmp_path / "t.parquet").write_bytes(b"PAR1")
    with pytest.raises(UserError, match=said):
        read(tmp_path / "t.parquet")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_text_in_any_encoding(encoding, tmp_path):
    """With blanks around names, and ? for what is missing."""
    text = "Größe; offen ;Preis\n1,5;?;3\n?;ja;7\n"
    (tmp_path / "t.csv").write_text(text, encoding=encoding)
    found = read(tmp_path / "t.csv")
    assert list(found.columns) == ["Größe", "offen", "Preis"]
    assert found.isna().to_numpy().tolist() == [[False, True, False], [True, False, False]]


@pytest.mark.parametrize("content", [b"\x81\x8f\x90\n", "a,y\n1,2\n".encode("utf-16-le")])
def test_what_is_no_text_is_refused_in_words(content, tmp_path):
    path = tmp_path / "table.csv"
    path.write_bytes(content)
    with pytest.raises(UserError, match="is not text in a known encoding; save the table as CSV"):
        read(path)


def test_files_that_are_refused(tmp_path):
    for name, text, words in (
        ("houses.csv", "price,price\n1,2\n", "two columns named 'price'; rename one"),
        ("house.csv", None, r"did you mean houses\.csv"),
        ("none.csv", "a,b\n", "has no rows"),
        ("empty.csv", "\n", r"empty\.csv is empty"),
        ("broken.csv", "a,b\n1,2\n1,2,3,4\n", r"broken\.csv: line 3 has 4 fields, the lines"),
        (
            "notes.csv",
            "# sold\n# 2024\na,b,c\n1,2,3\n",
            "line 3 has 3 fields, the lines above it have 1; the",
        ),
        ("title.csv", "My table\na,b\n1,2\n", "more fields than its first line, 'My table'"),
        ("rows.csv", "a,b\n0,1,2\n1,3,4\n", "more fields than its first line, 'a,b'"),
        ("book.xlsx", "PK", "a spreadsheet; save it as CSV"),
    ):
        if text is not None:
            (tmp_path / name).write_text(text)
        with pytest.raises(UserError, match=words):
            read(tmp_path / name)
    with pytest.raises(UserError, match="there is no file"):
        read(Path("nowhere/at/all.csv"))
