"""What the commands make of a table's columns, and of new rows."""

import re

import numpy as np
import pandas as pd
import pytest

from cart import DecisionTreeRegressor
from cartwood.table import Recipe, Task, read
from cartwood.table.columns import doubts_on_numbers
from cartwood.table.thousands import doubts_on_points
from cartwood.terminal import UserError, nearest

N = 120


@pytest.fixture
def frame():
    """A column of every kind."""
    rng = np.random.default_rng(0)
    days = pd.date_range("2020-02-01", periods=N, freq="12h")
    return pd.DataFrame({
        "size": np.where(np.arange(N) == 3, np.nan, rng.normal(size=N)),
        "count": pd.array([None, *range(1, N)], dtype="Int64"),
        "new": rng.random(N) > 0.5,
        "sold": np.where(rng.random(N) > 0.5, True, None),
        "city": rng.choice(["Oslo", "Rome"], N),
        "grade": pd.Categorical(rng.choice(list("abc"), N)),
        "seen": days,
        "written": days.strftime("%m/%d/%Y"),
        "code": [f"N{j:05d}" for j in range(N)],
        "empty": np.nan,
        "same": 7,
    })  # fmt: skip


@pytest.mark.parametrize("is_from_file", [False, True])
def test_each_kind_of_column(frame, is_from_file, tmp_path):
    if is_from_file:
        frame.to_csv(tmp_path / "table.csv", index=False)
        frame = read(tmp_path / "table.csv")
    recipe = Recipe.of(frame)
    assert recipe.kinds == {
        "size": "number", "count": "number", "new": "boolean", "sold": "boolean",
        "city": "category", "grade": "category", "seen": "date", "written": "date",
    }  # fmt: skip
    assert recipe.left_out == {"code": "name", "empty": "empty", "same": "constant"}
    X = recipe.apply(frame)
    assert np.isnan(X["size"][3])
    assert np.isnan(X["count"][0])
    assert {*X["new"]} == {0.0, 1.0}
    assert X["sold"].isna().sum() == frame["sold"].isna().sum()
    assert X["seen"][1] - X["seen"][0] == 12 * 3600
    assert X["written"][0] == X["seen"][0] == pd.Timestamp("2020-02-01").timestamp()


def test_one_line_says_what_was_done(frame):
    recipe = Recipe.of(frame)
    words = recipe.in_words(recipe.apply(frame))
    assert "\n" not in words
    distinct = "left out, nearly all values distinct: code"
    for part in ("city 2, grade 3", "size 1, count 1", distinct):
        assert part in words


@pytest.mark.parametrize(
    ("values", "kind", "first"),
    [
        (["3,5", "12", "-0,25", None], "written number", 3.5),
        (["12 %", "7%", "100%"], "written number", 12.0),
        (["13/02/2021", "03/12/2021"], "date, day first", pd.Timestamp("2021-02-13").timestamp()),
        (["02/13/2021", "03/12/2021"], "date", pd.Timestamp("2021-02-13").timestamp()),
        (["03/12/2021", "13/02/2021"], "date, day first", pd.Timestamp("2021-12-03").timestamp()),
        (["3/24/24", "12/1/24", None], "date", pd.Timestamp("2024-03-24").timestamp()),
        (["24.3.99", "1.12.68"], "date, day first", pd.Timestamp("1999-03-24").timestamp()),
        (["01-Mar-24", "12-Apr-24"], "date", pd.Timestamp("2024-03-01").timestamp()),
        (["03/24/2024 06:13:12 PM", "04/01/2024 12:05:00 AM", None], "date",
         pd.Timestamp("2024-03-24 18:13:12").timestamp()),
        (["24/3/24 12:05 am", "1/3/24 1:05 p.m."], "date, day first",
         pd.Timestamp("2024-03-24 00:05").timestamp()),
        (["2024/05/01 9:00:00 PM GMT+2", "2024/12/31 9:00:00 AM GMT+1"], "date",
         pd.Timestamp("2024-05-01 19:00").timestamp()),
        (["2024-05-01 09:00 UTC", "2024-05-02 09:00 UTC", None], "date",
         pd.Timestamp("2024-05-01 09:00").timestamp()),
        (["05/2024", "11/2023", None], "date", pd.Timestamp("2024-05-01").timestamp()),
        (["Jan 2024", "December 2023"], "date", pd.Timestamp("2024-01-01").timestamp()),
        (["2024Q3", "2023-Q1"], "date", pd.Timestamp("2024-07-01").timestamp()),
        (["Q3 2024", "Q1/2023"], "date", pd.Timestamp("2024-07-01").timestamp()),
        (["Class 2024", "Class 2025"], "category", "Class 2024"),
        (["Marketing 2024", "March 2024"], "category", "Marketing 2024"),
        (["Q3 2024", "total"], "category", "Q3 2024"),
        (["24-03-01", "24-04-01"], "category", "24-03-01"),  # which is the year?
        (["12:30 PM", "1:05 AM", None], "time of day", 12.5 * 3600),
        (["13:30 PM", "1:05 AM"], "category", "13:30 PM"),
        (["4h 53m", "53m", None], "duration", 4 * 3600 + 53 * 60),
        (["1 day, 02:03:04", "2d 3h"], "duration", 86400 + 2 * 3600 + 184),
        (["PT36M54S", "PT2H"], "duration", 36 * 60 + 54),
        (["26:10:00", "1:00:30"], "duration", 26 * 3600 + 600),
        (["5 m", "7 m"], "number", 5.0),  # metres or minutes
        (["5 m", "4h 3 m", "4 x"], "category", "5 m"),
        (["09:30", "17:05", None], "time of day", 9.5 * 3600),
        (["9:30:15", "17:05:00"], "time of day", 9.5 * 3600 + 15),
        (["1,234.5", "7,5"], "category", "1,234.5"),
        (["1.2M", "850k", "3", None], "number, K, M or B behind it", 1.2e6),
        (["€110,5M", "€500K"], "number, K, M or B behind it", 110.5e6),
        (["5 MB", "7 MB"], "number", 5.0),
        (["5M", "7L"], "category", "5M"),
        (["(86.27)", "12.50", "3"], "written number", -86.27),
        (["86,27-", "3,5"], "written number", -86.27),
        (["\u22125.5", "3", None], "written number", -5.5),
        (["(12 %)", "5%"], "written number", -12.0),
        (["(1,234.50)", "999"], "number, commas for thousands", -1234.5),
        (["($1,200)", "$3.50"], "number, commas for thousands", -1200.0),
        (["(877) 458", "(919) 723"], "category", "(877) 458"),
        (["5-", "3+"], "category", "5-"),
        (["<0.5", "0.5", "12", None], "written number", 0.5 * (1 - 1e-5)),
        ([">90", "85,5"], "written number", 90 * (1 + 1e-5)),
        (["<= 3", "\u22655"], "written number", 3.0),
        (["65+", "18"], "written number", 65.0),
        (["10,000+", "500+"], "number, commas for thousands", 10000.0),
        (["<5 mg", "7 mg"], "written number", 5 * (1 - 1e-5)),
        (["18-25", "50+"], "category", "18-25"),
        (["<a", "b>"], "category", "<a"),
        (["(a)", "(b)"], "category", "(a)"),
        (["1,234", "999", "-1,000,000"], "number, commas for thousands", 1234.0),
        (["1,234.5", "7.25"], "number, commas for thousands", 1234.5),
        (["1,234", "0,123", "2,5"], "written number", 1.234),
        (["7,5", "1.234,5", None], "number, points for thousands", 7.5),
        (["2020-02-01 12:00", "2020-02-02"], "date", pd.Timestamp("2020-02-01 12:00").timestamp()),
        (["007", "042"], "category", "007"),
        (["25:00", "17:05", None], "duration, hours and minutes", 25 * 3600),
        (["25:00", "1:17:05"], "category", "25:00"),  # minutes and seconds, perhaps
        (["5 cm", "7 cm", None], "number", 5.0),
        (["$1,200.50", "-$7"], "number, commas for thousands", 1200.5),
        (["1.200 €", "900 €", "-3,5 €"], "number, points for thousands", 1200.0),
        (["1 234,5", "999", "-12 000"], "number, spaces for thousands", 1234.5),
        (["1'234.5", "9"], "number, spaces for thousands", 1234.5),
        (["1\u202f234 €", "9\u00a0€", None], "number, spaces for thousands", 1234.0),
        (["1 23", "9"], "category", "1 23"),
        (["0 123", "9"], "category", "0 123"),
        (["US$ .5", "US$ 1.25"], "number", 0.5),
        ([f"{j} m2" for j in range(40)], "number", 0.0),
        (["3,5 km/h", "4 km/h"], "written number", 3.5),
        (["USD 1,200", "USD 900"], "number, commas for thousands", 1200.0),
        (["Rs. 500", "Rs. 75"], "number", 500.0),
        (["CHF 1'200", "CHF 900"], "number, spaces for thousands", 1200.0),
        (["2 years", "1 year", None], "number", 2.0),
        (["1 bath", "3 baths"], "number", 1.0),
        (["5 m", "7 ms"], "category", "5 m"),
        (["55\"", "43.5\""], "number", 55.0),
        (["5'11\"", "6'1\""], "category", "5'11\""),
        (["~500", "600"], "written number", 500.0),
        (["10K+", "1M+", "500+"], "number, K, M or B behind it", 1e4),
        (["5.3 / 10", "7 / 10"], "number", 5.3),
        (["7/15", "12/15"], "number", 7.0),
        (["3 out of 5", "4 out of 5"], "number", 3.0),
        (["3/4", "4/5"], "category", "3/4"),
        (["5 cm", "7 m"], "category", "5 cm"),  # two units
        (["5 cm", "7"], "category", "5 cm"),
        (["T1", "T2"], "category", "T1"),  # letters before a number make a code
        (["1.2.3 kg", "4 kg"], "category", "1.2.3 kg"),
    ],
)  # fmt: skip
def test_what_texts_hold(values, kind, first):
    frame = pd.DataFrame({"text": values * 3})
    recipe = Recipe.of(frame)
    assert recipe.kinds == {"text": kind}
    X = recipe.apply(frame)
    assert X["text"][0] == first
    assert X["text"].isna().sum() == frame["text"].isna().sum()


@pytest.mark.parametrize(
    ("values", "kind", "says"),
    [
        ([*map(str, range(100)), "n.a.", "-", "n.a."], "number among words", "3 values"),
        ([*(f"{j},5 %" for j in range(100)), "n.a."], "number among words", "1 value that is not"),
        ([*map(str, range(100)), "a", "b", "c", "d"], "name", "100 of 104"),  # four words
        ([*map(str, range(100)), *["n.a."] * 30], "category", "100 of 130"),  # too many
        ([*(f"{j},000" for j in range(1, 100)), "n.a."], "name", "99 of 100"),  # 1, or 1000
        ([*map(str, range(9)), "n.a."] * 9, "category", ""),  # nine classes
        ([f"{j:03}" for j in range(100)] + ["n.a."], "name", ""),  # codes
    ],
)
def test_words_among_numbers(values, kind, says):
    frame = pd.DataFrame({"text": values, "x": range(len(values))})
    recipe = Recipe.of(frame)
    assert {**recipe.kinds, **recipe.left_out}["text"] == kind
    said = "".join(text for text in recipe.doubts(frame) if text.startswith("text:"))
    assert says in said
    if kind == "number among words":
        n_words = sum(value in ("n.a.", "-") for value in values)
        assert np.isnan(recipe.apply(frame)["text"]).sum() == n_words
        assert f'not {"numbers" if n_words > 1 else "a number"} ("n.a."' in said
        task = Task.of(frame["text"])
        assert (task.kind, task.has_target.sum()) == ("regression", len(values) - n_words)
    else:
        assert ("leave these cells empty" in said) == bool(says)


@pytest.mark.parametrize(
    ("values", "says"),
    [
        (["12,345", "1234", "7"], '"12,345" is read as 12.345; if commas separate thousands'),
        (["12,345", "1234", "7,5"], ""),
        (["0,123", "1234"], ""),
    ],
)
def test_commas_that_may_part_thousands_are_doubted(values, says):
    """Beside a number of four digits without one, they count as decimal commas."""
    frame = pd.DataFrame({"text": values * 3, "x": 1.5})
    assert Recipe.of(frame).kinds == {"text": "written number"}
    said = "".join(Recipe.of(frame).doubts(frame))
    assert says in said
    assert bool(says) == bool(said)


def test_days_stay_first_where_new_rows_could_be_read_otherwise():
    recipe = Recipe.of(pd.DataFrame({"day": ["13/02/2021", "03/12/2021"]}))
    X = recipe.apply(pd.DataFrame({"day": ["01/02/2021"]}))
    assert X["day"][0] == pd.Timestamp("2021-02-01").timestamp()


def test_what_may_be_meant_otherwise_is_said():
    """Thousands, an order of day and month that either half would fit, infinity."""
    frame = pd.DataFrame({
        "price": ["1,234", "999"],
        "day": ["01/02/2020", "01/03/2020"],
        "iso": ["2020-01-02", "2020-01-03"],
        "us": ["01/13/2020", "02/01/2020"],
        "short": ["1/13/20", "2/1/20"],
        "shorter": ["1/12/20", "2/1/20"],
        "first": ["13.1.20", "1.2.20"],
        "profit": ["1,234", "(86)"],
        "worth": ["3", "1.2M"],
        "balance": ["(86.5)", "2"],
        "ratio": [np.inf, 1.0],
        "id": [2**60, 2**60 + 1],
    })  # fmt: skip
    said = list(Recipe.of(frame).doubts(frame))
    or_day_first = "month first; if the day is first, write dates as YYYY-MM-DD"
    assert said == [
        'price: "1,234" is read as 1234',
        f'day: "01/02/2020" is read as 2020-01-02, {or_day_first}',
        'short: "1/13/20" is read as 2020-01-13',
        f'shorter: "1/12/20" is read as 2020-01-12, {or_day_first}',
        'first: "13.1.20" is read as 2020-01-13',
        'profit: "(86)" is read as -86',
        'profit: "1,234" is read as 1234',
        'worth: "1.2M" is read as 1200000',
        'balance: "(86.5)" is read as -86.5',
        "ratio: infinite values (1) count as missing",
        "id: 1 of 2 numbers become equal to others: floats hold whole numbers exactly only up to "
        "2**53; subtract the smallest",
    ]
    assert list(doubts_on_numbers(frame["price"])) == said[:1]
    assert not list(doubts_on_numbers(frame["day"]))
    assert Task.of(frame["price"]).y.tolist() == [1234.0, 999.0]


def test_names_that_differ_by_their_spelling_are_said():
    names = ["Bonn", "Köln ", "köln", "Ulm", "ULM", " Ulm"] * 3
    frame = pd.DataFrame({"city": names, "x": range(18)})
    says = (
        '"Köln " and "köln" (and 3 more) differ only in spaces or capitals; spell them the same '
        "if they are one"
    )
    assert [*Recipe.of(frame).doubts(frame)] == [f"city: {says}"]
    assert "differ only in spaces or capitals" in "".join(Task.of(frame["city"]).doubts())
    assert not [*Task.of(frame["city"].str.strip().str.title()).doubts()]


@pytest.mark.parametrize(
    ("texts", "new", "number", "other"),
    [
        (["1,234", "999"], "12,000", 12000.0, "12,5"),
        (["1.234,5", "999"], "12.000", 12000.0, "12.5"),
    ],
)
def test_thousands_of_new_rows(texts, new, number, other, tmp_path):
    """A file of new rows may have "12.000" alone, which pandas would take for 12."""
    recipe = Recipe.of(pd.DataFrame({"price": texts}))
    (tmp_path / "new.csv").write_text(f"price;x\n{new};1\n1500;1\n;1\n")
    found = recipe.apply(read(tmp_path / "new.csv", recipe.texts))["price"]
    np.testing.assert_array_equal(found, [number, 1500.0, np.nan])
    with pytest.raises(UserError, match=f"'price' should hold a number, .*: '{other}' is not"):
        recipe.apply(pd.DataFrame({"price": [other]}))


@pytest.mark.parametrize(
    ("texts", "first"),
    [
        (["12.345", "999", "1.250", ""], "1.250"),
        (["-7.500", "0", "12.345"], "-7.500"),
        (["12.345", "999"], None),  # decimals may have no zeros at their ends by chance
        (["12.340", "999.000"], None),
        (["12.340", "7.125"], None),
        (["12.340", "0.125", "1"], None),
        (["1.250", "2.5", "3"], None),
        (["1.250", "2.5000", "3"], None),
        (["12.340", "1500"], None),
        (["0.500", "2"], None),
        (["5", "7"], None),
        (["", "7.500"], None),
    ],
    ids=str,
)
def test_points_that_may_part_thousands_are_said(texts, first, tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("\n".join(["a;price", *(f"{i};{text}" for i, text in enumerate(texts))]))
    frame = read(path)
    said = list(doubts_on_points(path, frame))
    assert len(said) == (first is not None)
    for sentence in said:
        assert sentence.startswith(f'price: "{first}" is read as {float(first):g}, beside ')
    assert not list(doubts_on_points(path, frame[["a"]]))


@pytest.mark.parametrize(
    ("values", "others"),
    [
        (["3,5", "12,1"], None),
        ([*map(str, range(100)), "n.a."], None),
        (["1,234", "999"], None),
        (["7,5", "1.234,5"], None),
        (["09:30", "17:05"], [930, 1705]),  # which pandas takes for billionths of a second
        (pd.to_timedelta([1, 2], unit="s"), [1, 2]),
        ([1.5, 2.5], pd.to_datetime(["2020-01-01", "2020-01-02"])),
    ],
)
def test_new_rows_without_values_or_with_those_of_another_kind(values, others):
    recipe = Recipe.of(pd.DataFrame({"x": values}))
    for empty in ([None, None], np.full(2, np.nan), pd.Series([None, None], dtype="str")):
        assert recipe.apply(pd.DataFrame({"x": empty}))["x"].isna().all()
    if others is None:  # numbers that need no reading are numbers
        found = recipe.apply(pd.DataFrame({"x": [1234, 0.5]}))["x"]
        assert found.astype(float).tolist() == [1234.0, 0.5]
    else:
        with pytest.raises(UserError, match=f"column 'x' should hold a {recipe.kinds['x']}: "):
            recipe.apply(pd.DataFrame({"x": others}))


def test_new_rows_get_what_training_rows_got(frame):
    recipe = Recipe.of(frame)
    new = frame.iloc[:1].assign(city="Bergen", size="3.5", same=9)
    X = recipe.apply(new)
    assert list(X.columns) == list(recipe.kinds)
    assert (X["city"][0], X["size"][0]) == ("Bergen", 3.5)
    with pytest.raises(UserError, match="column 'size' should hold a number"):
        recipe.apply(new.assign(size="large"))
    with pytest.raises(UserError, match="'sold' should hold a boolean: 'no' is neither True nor"):
        recipe.apply(new.assign(sold="no"))
    noon = Recipe.of(pd.DataFrame({"at": ["3/24/24 9:00 AM", "3/25/24 12:00 PM"]}))
    is_none = "is not a date, or its day and month"
    with pytest.raises(UserError, match=f"a date: '25.3.24 1:00 PM' {is_none}"):
        noon.apply(pd.DataFrame({"at": ["25.3.24 1:00 PM"]}))
    assert np.isnan(noon.apply(pd.DataFrame({"at": [None]}))["at"][0])
    for column, value in (("seen", "soon"), ("written", "13/02/2021")):
        with pytest.raises(UserError, match=f"'{column}' should hold a date: '{value}' {is_none}"):
            recipe.apply(new.assign(**{column: value}))
    with pytest.raises(UserError, match="'seen' should hold a date: it holds numbers"):
        recipe.apply(new.assign(seen=1.5e9))
    assert recipe.apply(new.assign(seen="2020-02-01 12:00", sold="true"))["sold"][0] == 1.0
    assert np.isnan(recipe.apply(new.assign(seen=np.nan))["seen"][0])
    with pytest.raises(UserError, match="no column 'city'; the columns are"):
        recipe.apply(new.drop(columns="city"))


@pytest.mark.parametrize(
    ("cells", "n_choices"),
    [
        (["R, SPSS", "R", "SPSS, Excel", "Excel", "R, Excel", "R, SPSS, Excel", "SPSS"], 3),
        (["b;a", "a", "a;b;c", "c;a", "b;c", "c"] * 2, None),  # as many as half the cells
        (["a|b|c|d", "a|b", "a|c", "a|d", "b|c", "b|d", "c|d", "d", "a"], 4),
        ([f"Smith, {letter}." for letter in "abcdefgh"], None),
        ([f"{letter}, {letter.upper()}" for letter in "abcdefgh"], None),
    ],
)
def test_choices_listed_in_cells_are_named(cells, n_choices):
    frame = pd.DataFrame({"tools": cells * 12})
    said = " ".join(map(str, Recipe.of(frame).doubts(frame)))
    assert ("if cells list several of" in said) == (n_choices is not None)
    assert n_choices is None or f"list several of {n_choices} choices" in said


def test_cells_that_may_stand_for_those_below():
    said = "of 80 cells are empty; if an empty cell repeats the value above it, fill it in"
    filled = {0: "North", 16: "South", 32: "East", 48: "North", 64: "West"}
    for cells, is_said in (
        (filled, True),
        (filled | {49: "North"}, False),  # twice the same
        ({1: "North", **{place: filled[place] for place in (16, 32, 48, 64)}}, False),  # none first
    ):
        frame = pd.DataFrame({"region": [cells.get(j) for j in range(80)], "n": np.arange(80) % 7})
        assert (said in " ".join(map(str, Recipe.of(frame).doubts(frame)))) == is_said


@pytest.mark.parametrize(
    ("new", "says"),
    [
        (["$1,300", "$2,000"], None),
        ([1300.0, 2000.0], None),  # a file without any sign
        (["€1,300", "$2,000"], "'€1,300' is not a number in '$', as in training"),
        (["1,300", "$2,000"], "'1,300' is not a number in '$'"),
        (["unknown", "$2,000"], "'unknown' is not a number in '$'"),
    ],
)
def test_units_of_new_rows(new, says):
    recipe = Recipe.of(pd.DataFrame({"price": ["$1,200", "$900", None] * 9, "size": range(27)}))
    assert recipe.units == {"price": ("$", "")}
    frame = pd.DataFrame({"price": new, "size": 0})
    if says is None:
        assert [*recipe.apply(frame)["price"]] == [1300.0, 2000.0]
    else:
        with pytest.raises(UserError, match=re.escape(says)):
            recipe.apply(frame)


def test_hours_and_minutes_are_said_and_kept_to():
    frame = pd.DataFrame({"worked": ["26:10", "5:20", "5:20"], "size": range(3)})
    recipe = Recipe.of(frame)
    said = '"26:10" is read as 26 hours and 10 minutes'
    assert said in " ".join(map(str, recipe.doubts(frame)))
    assert recipe.apply(frame)["worked"][1] == 5 * 3600 + 20 * 60
    with pytest.raises(UserError, match="'1:02:03' is not written as in training"):
        recipe.apply(frame.assign(worked="1:02:03"))


@pytest.mark.parametrize(
    ("form", "is_said"), [("{}/{}", True), ("{} x {}", True), ("{}-{}", True), ("{}/{}a", False)]
)
def test_two_numbers_in_a_cell_are_named(form, is_said):
    frame = pd.DataFrame({"a": [form.format(100 + j, 60 + j) for j in range(40)] * 3})
    said = " ".join(map(str, Recipe.of(frame).doubts(frame)))
    assert ("split the two numbers into two columns" in said) == is_said
    assert "two numbers" not in " ".join(map(str, Recipe.of(frame[:19]).doubts(frame[:19])))


def test_numbers_beyond_a_limit_are_next_to_it():
    """Trees, in single precision, tell them from the limit itself."""
    rng = np.random.default_rng(0)
    for limit in (1e-3, 0.5, 7, 90, 12345.5, 1e9):
        values = [f"<{limit}", f"{limit}", f">{limit}", f"{limit * 0.99}", f"{limit * 1.01}"]
        recipe = Recipe.of(pd.DataFrame({"a": values, "b": rng.normal(size=5)}))
        X = recipe.apply(pd.DataFrame({"a": values, "b": 0.0}))[["a"]]
        tree = DecisionTreeRegressor().fit(X, np.arange(5.0))
        assert [*tree.predict(X)] == [0.0, 1.0, 2.0, 3.0, 4.0]
        assert [*np.argsort(X["a"])] == [3, 0, 1, 2, 4]
    frame = pd.DataFrame({"a": ["<5", "7", ">9", "n/m"] + [f"{j}" for j in range(40)]})
    said = " ".join(map(str, Recipe.of(frame).doubts(frame)))
    assert '"<5" is read as a little less than the number itself' in said
    assert '">9" is read as a little more' in said
    assert '1 value that is not a number ("n/m") counts as missing' in said


@pytest.mark.parametrize("trained", [range(27), ["<5", *map(str, range(26))]])
def test_what_is_no_number_is_named(trained):
    recipe = Recipe.of(pd.DataFrame({"a": trained, "b": range(27)}))
    new = pd.DataFrame({"a": ["7", "7", "n.a.", None], "b": 0})
    with pytest.raises(UserError, match=re.escape("'n.a.' is not a number")):
        recipe.apply(new)


def test_units_are_named():
    frame = pd.DataFrame({"price": ["$1,200", "$900"] * 9, "size": ["5 cm", "7 cm"] * 9})
    recipe = Recipe.of(frame)
    assert "units removed: price $, size cm" in recipe.in_words(recipe.apply(frame))
    assert [*recipe.doubts(frame)] == ['price: "1,200" is read as 1200']
    target = Task.of(frame["price"])
    assert (target.kind, [*np.unique(target.y)]) == ("classification", [900.0, 1200.0])
    assert Task.of(frame["price"], "regression").y[0] == 1200.0
    assert [*doubts_on_numbers(frame["price"])] == ['price: "1,200" is read as 1200']


def test_parquet_is_the_same_table(frame, tmp_path):
    polars = pytest.importorskip("polars")
    plain = frame[["size", "city", "new", "seen"]]
    polars.DataFrame(plain.to_dict("list")).write_parquet(tmp_path / "t.parquet")
    found = read(tmp_path / "t.parquet")
    assert Recipe.of(found).kinds == Recipe.of(plain).kinds
    pd.testing.assert_frame_equal(Recipe.of(found).apply(found), Recipe.of(plain).apply(plain))


@pytest.mark.parametrize("last", ["9999-12-31", "1066-10-14", "0001-01-01"])
def test_dates_far_away_are_dates(last):
    """Beyond what nanoseconds since 1970 count: 9999-12-31 often stands for none yet."""
    frame = pd.DataFrame({"until": ["2020-01-01", "2021-06-30", last]})
    recipe = Recipe.of(frame)
    assert recipe.kinds == {"until": "date"}
    expected = pd.Series(frame["until"].to_numpy("M8[s]").astype(np.int64)).astype(float)
    assert recipe.apply(frame)["until"].tolist() == expected.tolist()
    assert recipe.apply(frame.assign(until=frame["until"].to_numpy("M8[s]"))).equals(
        recipe.apply(frame)
    )


def test_nearest_names():
    assert nearest("Prcie", ["price", "rooms"]) == "did you mean price?"
    assert nearest("x", ["price", "rooms"]) == "the columns are price, rooms."
