"""Every picture with many features and long names: no text is cut off or lies on another."""

import pickle

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from benchmarks.structure.pictures import PICTURES, cut_off, draw, judge, overlapping, table
from forest import RandomForestClassifier
from importance import compare, masking, mdi, oob_permutation, shadow, shap_values
from importance.core.numbers import estimate, estimates, significant
from importance.core.plots import DARK, PALE, ink_of, plot_ranks
from importance.core.result import Importances
from importance.report.advice import ordinal

matplotlib.use("Agg")


@pytest.fixture(scope="module", params=[8, 300])
def found(request):
    return judge(*table(request.param))


@pytest.mark.parametrize("name", PICTURES)
def test_every_text_can_be_read(found, name):
    figure = draw(name, found)
    wrong = [*cut_off(figure), *overlapping(figure)]
    plt.close(figure)
    assert wrong == []


@pytest.fixture(scope="module")
def found_in_millions():
    X, y = table(8)
    return judge(X, 1e5 * y)


@pytest.mark.parametrize("name", ["bars", "trees", "rows", "measures", "beeswarm", "waterfall"])
def test_long_numbers_can_be_read(found_in_millions, name):
    figure = draw(name, found_in_millions)
    wrong = [*cut_off(figure), *overlapping(figure)]
    if name == "waterfall":
        inside = figure.axes[0].get_window_extent()
        for text in figure.axes[0].texts:
            assert inside.x0 < text.get_window_extent().x0
            assert text.get_window_extent().x1 < inside.x1
    plt.close(figure)
    assert wrong == []


def test_figures_can_be_pickled(found):
    figure = draw("waterfall", found)
    copy = pickle.loads(pickle.dumps(figure))
    assert copy.axes[0].get_xlabel() == figure.axes[0].get_xlabel()
    plt.close("all")


def test_what_cannot_be_read_is_found():
    figure, ax = plt.subplots()
    ax.text(0.5, 0.5, "here")
    ax.text(0.5, 0.5, "there")
    ax.text(5.0, 0.5, "outside")
    ax.set_xticks([])
    ax.set_yticks([])
    figure.draw_without_rendering()
    assert list(cut_off(figure)) == ["'outside' is cut off"]
    assert list(overlapping(figure)) == ["'here' lies on 'there'"]
    plt.close(figure)


def test_lines_are_pale_on_a_dark_background():
    with plt.style.context("dark_background"):
        figure, ax = plt.subplots()
        assert ink_of(ax) == PALE
        ax.set_facecolor("none")
        assert ink_of(ax) == PALE
        plt.close(figure)
    figure, ax = plt.subplots()
    assert ink_of(ax) == DARK
    plt.close(figure)


def test_ranks_far_below_the_last_one_close_up():
    names = np.array([f"x{j}" for j in range(100)])
    one = np.arange(100.0)[::-1]
    other = np.roll(one, 50)  # the first of one is the 51st of the other

    def result(values):
        return Importances("mdi", values, np.zeros(100), None, names, "", "", "")

    ax = plot_ranks({"one": result(one), "other": result(other)}, max_features=5)
    assert ax.get_ylim()[0] < 12
    assert "x0 (51)" in [text.get_text() for text in ax.texts]
    plt.close(ax.figure)


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (1574.3, 311.2, "1,570 ± 310"),
        (0.64012, 0.0678, "0.640 ± 0.068"),
        (-0.2, 12.3, "0 ± 12"),
        (12_345_678.0, 98_765.0, "12,346,000 ± 99,000"),
        (0.5, 0.0, "0.500 ± 0"),
        (12.0, np.nan, "12.0 ± nan"),
        (0.0, 1e-9, "0.0000000000 ± 0.0000000010"),
        (-5.26e34, 2.3e32, "-5.260e+34 ± 2.3e+32"),
        (3e17, 2.34e18, "3e+17 ± 2.3e+18"),
    ],
)
def test_numbers_have_two_digits_of_their_error(value, error, text):
    assert estimate(value, error) == text


@pytest.mark.parametrize(
    ("n", "word"),
    [(1, "first"), (10, "tenth"), (11, "11th"), (12, "12th"), (21, "21st"), (103, "103rd"),
     (112, "112th")],
)  # fmt: skip
def test_ordinals(n, word):
    assert ordinal(n) == word


@pytest.mark.parametrize(
    ("value", "text"),
    [(12_345.0, "12,300"), (0.00123456, "0.00123"), (0.0, "0"), (-1.5, "-1.50"), (np.inf, "inf"),
     (-1.26e-17, "-1.3e-17"), (123456e15, "1.23e+20"), (1.5e-12, "0.000000000002")],
)  # fmt: skip
def test_numbers_have_three_digits(value, text):
    assert significant(value) == text


def test_what_rounding_leaves_is_shown_as_zero():
    """Beside the largest value; tiny values of a tiny target stay."""
    values, errors = np.array([0.8, 5.6e-18, -2e-9]), np.array([0.1, 3e-18, 1e-9])
    assert estimates(values, errors) == ["0.80 ± 0.10", "0 ± 0", "-0.0000000020 ± 0.0000000010"]
    assert estimates(values[1:2], errors[1:2]) == ["5.6e-18 ± 3.0e-18"]
    assert estimates(np.array([0.8, np.nan]), np.array([np.nan, 0.0])) == ["0.800 ± nan", "nan ± 0"]
    words = {"unit": "", "uncertainty": "over trees", "bias": ""}
    names = np.array(["a", "b", "c"], object)
    assert "b 0 ± 0" in repr(Importances("mdi", values, errors, None, names, **words))


@pytest.mark.parametrize("is_given", [True, False], ids=["given axes", "new axes"])
def test_names_are_no_formulas(is_given):
    """Of features, categories and classes, in every picture; "$5 to $9" is not in italics."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.random((60, 2)), columns=["$5 to $9", r"$\bad{$"])
    X["c"] = rng.choice([r"$\v{$", "x"], 60)
    X["twin"] = X["$5 to $9"]
    y = np.where(X["$5 to $9"] > 0.5, "$y^$", "n")
    forest = RandomForestClassifier(9, categorical_features=["c"], surrogates=1, random_state=0)
    forest.fit(X, y)
    found, shap, both = oob_permutation(forest, X, y), shap_values(forest, X), compare(forest, X, y)
    drawn = [
        lambda ax: found.plot("trees", ax=ax), lambda ax: shap.plot(ax=ax),
        lambda ax: shap.plot("bar", ax=ax), lambda ax: shap.plot("waterfall", ax=ax),
        lambda ax: shap.plot("dependence", feature="c", color_by="$5 to $9", ax=ax),
        lambda ax: shap.plot("dependence", feature=r"$\bad{$", ax=ax),
        lambda ax: both.plot_ranks(ax=ax), lambda ax: both.plot_clusters(ax=ax),
        lambda ax: masking(forest).plot(ax=ax), lambda ax: both.plot(),
        lambda ax: shadow(forest, X, y, n_rounds=2).plot(ax=ax),
    ]  # fmt: skip
    for plot in drawn:
        ax = plt.subplots()[1] if is_given else None
        result = plot(ax)
        figure = getattr(result, "figure", None) or result
        figure.draw_without_rendering()
        seen = [text for text in figure.findobj(plt.Text) if text.get_visible()]
        texts = [text for text in seen if "$" in text.get_text()]
        assert texts
        assert not any(text.get_parse_math() for text in texts)
        plt.close("all")


def test_tables_of_any_type_give_colours_and_a_comparison():
    """Dates, categories, nullable numbers; polars frames, which hold dates beside numbers."""
    pl = pytest.importorskip("polars")
    rng = np.random.default_rng(0)
    day = np.datetime64("2020-01-01", "us") + rng.integers(0, 99, 60)
    x, y = rng.random(60), rng.random(60) > 0.5
    frame = pd.DataFrame({"day": day, "c": rng.choice(["u", "v"], 60), "x": x})
    frame["n"] = pd.array(rng.choice([1, 2, None], 60), "Int64")
    forest = RandomForestClassifier(5, categorical_features=["c"], random_state=0).fit(frame, y)
    importances = oob_permutation(forest, frame, y, per_row=True)
    columns = {name: frame[name].tolist() for name in ("c", "x")}
    numbers = [None if value is pd.NA else value for value in frame["n"]]
    of_polars = pl.DataFrame({"day": day, **columns, "n": numbers})
    for X in (frame, of_polars):
        dots = importances.plot("rows", X=X).collections
        assert [len(np.unique(each.get_array())) > 1 for each in dots] == [True] * 4
        plt.close("all")
    assert str(compare(forest, of_polars, y)) == str(compare(forest, frame, y))


def test_colours_are_those_of_the_features_own_columns():
    """Groups come first among the features: their neighbours had the colours of other columns."""
    X, y = np.random.default_rng(0).random((60, 4)), np.arange(60) % 2
    frame = pd.DataFrame(X, columns=list("abcd"))
    forest = RandomForestClassifier(5, random_state=0).fit(frame, y)
    groups = {"both": ["b", "d"]}
    grouped = oob_permutation(forest, frame, y, per_row=True, groups=groups)
    alone = oob_permutation(forest, frame, y, per_row=True)

    def colours(result, table):
        ax = result.plot("rows", X=table)
        names = [label.get_text() for label in ax.get_yticklabels()]
        return dict(zip(names, (each.get_array() for each in ax.collections), strict=True))

    expected = colours(alone, frame)
    found = colours(grouped, frame)
    assert found.pop("both") is None
    for name, shades in [*found.items(), *colours(alone, X).items()]:
        np.testing.assert_array_equal(shades, expected[name])
    plt.close("all")


def test_what_cannot_be_drawn_is_named():
    X, y = np.random.default_rng(0).random((60, 4)), np.arange(60) % 2
    forest = RandomForestClassifier(5, random_state=0).fit(X, y)
    result = oob_permutation(forest, X, y, per_row=True)
    with pytest.raises(ValueError, match=r"X has shape \(5, 4\), but there are values for 60 rows"):
        result.plot("rows", X=X[:5])
    with pytest.raises(ValueError, match="over='trees' is not one of the standard errors of "):
        result.plot(over="trees")
    for wrong in (0, "all"):
        with pytest.raises(
            ValueError, match=r"max_features=.* must be a whole number of at least 1"
        ):
            result.plot(max_features=wrong)
    with pytest.raises(ValueError, match="level='95' must lie between"):
        result.interval("95")
    with pytest.raises(ValueError, match="row=60 must be the number of one of the 60 rows"):
        shap_values(forest, X).plot("waterfall", row=60)
    with pytest.raises(ValueError, match="draws one feature: give its name, feature="):
        shap_values(forest, X).plot("dependence")
    with pytest.raises(ValueError, match="mdi has no values per row; oob_permutation and"):
        mdi(forest).plot("rows")
    with pytest.raises(TypeError, match="measure returned float, but should return Importances"):
        shadow(forest, X, y, n_rounds=2, measure=lambda forest, X, y: 1.0)
    plt.close("all")
