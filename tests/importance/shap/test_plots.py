"""Pictures of SHAP values: each can be read with a hundred features, and says what it shows."""

import matplotlib
import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

from forest import RandomForestClassifier, RandomForestRegressor
from importance import shap_values
from tests.importance.report.test_comparison import assert_readable

matplotlib.use("Agg")


@pytest.fixture(scope="module")
def wide():
    """100 features with names of 60 characters."""
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    names = [
        f"{'a rather long name of a feature, and then some more':<57}{j:3}" for j in range(100)
    ]
    frame = pd.DataFrame(rng.normal(size=(150, 100)), columns=names)
    y = frame.iloc[:, 0] + frame.iloc[:, 5] ** 2
    forest = RandomForestRegressor(10, random_state=0, max_features=0.3).fit(frame, y)
    return shap_values(forest, frame), shap_values(forest, frame, out_of_bag=True)


@pytest.mark.parametrize("kind", ["beeswarm", "bar", "waterfall"])
def test_a_hundred_features_can_be_read(wide, kind):
    for found in wide:
        ax = found.plot(kind, max_features=100)
        assert_readable(ax.figure, ax.yaxis)
        matplotlib.pyplot.close(ax.figure)


@pytest.mark.parametrize("kind", ["beeswarm", "bar", "waterfall", "dependence"])
def test_nothing_is_cut_off(wide, kind):
    options = {"feature": 5, "color_by": 0} if kind == "dependence" else {}
    for found in wide:
        ax = found.plot(kind, **options)
        ax.figure.draw_without_rendering()
        inside, whole = ax.get_window_extent(), ax.figure.bbox
        names = [] if kind == "dependence" else ax.get_yticklabels()
        for text in (*names, ax.title, ax.xaxis.label, ax.yaxis.label):
            if not text.get_text():
                continue
            box = text.get_window_extent()
            assert whole.x0 <= box.x0
            assert box.x1 <= whole.x1
            assert whole.y0 <= box.y0
            assert box.y1 <= whole.y1
        for text in ax.texts:  # beside bars: not over the names
            box = text.get_window_extent()
            assert inside.x0 < box.x0
            assert box.x1 < inside.x1
        matplotlib.pyplot.close(ax.figure)


def test_a_waterfall_cuts_long_categories():
    pd = pytest.importorskip("pandas")
    label = "a category whose description goes on and on, for sixty letters"
    X = pd.DataFrame({"kind": pd.Categorical([label, "b", "c", "d"] * 20), "x": np.arange(80.0)})
    y = (X["kind"] == label) + 0.01 * X["x"]
    forest = RandomForestRegressor(4, random_state=0, categorical_features=["kind"]).fit(X, y)
    ax = shap_values(forest, X).plot("waterfall")
    assert max(len(tick.get_text()) for tick in ax.get_yticklabels()) < 50
    matplotlib.pyplot.close(ax.figure)


def test_the_largest_stand_on_top(wide):
    found = wide[0]
    ax = found.plot("beeswarm", max_features=3)
    order = np.argsort(-np.abs(found.values).mean(axis=0), kind="stable")[:3]
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert [label[-3:] for label in labels[::-1]] == [found.feature_names[j][-3:] for j in order]
    assert "3 most important of 100" in ax.get_title()
    matplotlib.pyplot.close(ax.figure)


def test_a_waterfall_ends_at_the_prediction(wide):
    for found in wide:
        row = int(np.flatnonzero(found.n_trees)[3])
        ax = found.plot("waterfall", row=row, max_features=5)
        drawn = sum(bar.get_width() for bar in ax.patches)
        base = np.broadcast_to(found.base_value, len(found.values))[row]
        np.testing.assert_allclose(base + drawn, found.prediction[row])
        assert "95 other features" in [label.get_text() for label in ax.get_yticklabels()]
        matplotlib.pyplot.close(ax.figure)


def test_dependence_is_over_the_feature(wide):
    found = wide[0]
    ax = found.plot("dependence", feature=5, color_by=found.feature_names[0])
    drawn = np.asarray(ax.collections[0].get_offsets())
    np.testing.assert_allclose(drawn, np.column_stack((found.table()[:, 5], found.values[:, 5])))
    matplotlib.pyplot.close(ax.figure)


def test_dependence_names_categories_and_counts_what_is_not_drawn():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"city": rng.choice(["Rome", "Oslo"], 60), "size": rng.normal(size=60)})
    frame.loc[:6, "size"] = np.nan
    frame.loc[:3, "city"] = None
    y = frame["city"].eq("Rome") + frame["size"].fillna(0.0)
    model = RandomForestRegressor(5, categorical_features="from_dtype", random_state=0)
    found = shap_values(model.fit(frame, y), frame)
    ax = found.plot("dependence", feature="city")
    assert [text.get_text() for text in ax.get_xticklabels()] == ["Oslo", "Rome", "missing"]
    drawn = np.asarray(ax.collections[0].get_offsets())[:, 0]
    places = {"Oslo": 0.0, "Rome": 1.0}
    assert drawn.tolist() == [places.get(name, 2.0) for name in frame["city"]]
    matplotlib.pyplot.close(ax.figure)
    ax = found.plot("dependence", feature="size")
    assert ax.get_xlabel() == "size\n(without 7 rows that have no value)"
    assert "categories" in found.plot().get_xlabel()
    matplotlib.pyplot.close("all")


@pytest.mark.parametrize("kind", ["pandas", "zoned", "dates only", "polars", "Arrow", "category"])
def test_dates_are_dates_in_pictures(kind):
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    days = pd.Timestamp("2020-03-01") + pd.to_timedelta(np.arange(60) * 7, "D")
    frame = pd.DataFrame({"when": days, "size": np.random.default_rng(0).normal(size=60)})
    y = np.arange(60.0)
    if kind == "polars":
        frame = pl.DataFrame({"when": days.to_numpy(), "size": frame["size"].to_numpy()})
    elif kind == "Arrow":
        frame = pytest.importorskip("pyarrow").Table.from_pandas(frame)
    elif kind == "zoned":
        frame = frame.assign(when=days.tz_localize("Asia/Tokyo"))
    elif kind == "category":
        frame = frame.assign(when=pd.Categorical(days))
    elif kind == "dates only":
        frame = frame[["when"]]
    categories = "from_dtype" if kind == "category" else None
    model = RandomForestRegressor(5, categorical_features=categories, random_state=0)
    found = shap_values(model.fit(frame, y), frame)
    ax = found.plot("dependence", feature="when")
    ax.figure.canvas.draw()
    drawn = ax.collections[0].get_offsets()[:, 0]
    np.testing.assert_array_equal(drawn, matplotlib.dates.date2num(days.to_numpy()))
    labels = [text.get_text() for text in ax.get_xticklabels()]
    assert labels[1].startswith("2020-0")
    names = [text.get_text() for text in found.plot("waterfall", row=1).get_yticklabels()]
    assert "when = 2020-03-08" in names
    assert "categories" not in found.plot().get_xlabel()
    matplotlib.pyplot.close("all")


def test_a_date_that_is_missing_is_not_drawn():
    pd = pytest.importorskip("pandas")
    days = pd.Timestamp("2020-03-01 12:30") + pd.to_timedelta(np.arange(60), "D")
    frame = pd.DataFrame({"when": days, "size": np.ones(60)})
    frame.loc[:3, "when"] = pd.NaT
    model = RandomForestRegressor(5, random_state=0).fit(frame, np.arange(60.0))
    found = shap_values(model, frame)
    assert "without 4 rows" in found.plot("dependence", feature="when").get_xlabel()
    for row, date in ((0, "NaT"), (9, "2020-03-10 12:30:00")):
        names = [text.get_text() for text in found.plot("waterfall", row=row).get_yticklabels()]
        assert f"when = {date}" in names
    matplotlib.pyplot.close("all")


def test_pictures_of_a_pipeline_show_what_its_forest_sees():
    X, y = load_iris(return_X_y=True)
    X = X.round()  # products in single precision are exact
    model = make_pipeline(PolynomialFeatures(2), RandomForestRegressor(5, random_state=0))
    found = shap_values(model.fit(X, y), X)
    feature = str(found.feature_names[-1])  # x3^2
    ax = found.plot("dependence", feature=feature)
    drawn = np.asarray(ax.collections[0].get_offsets())[:, 0]
    np.testing.assert_allclose(drawn, X[:, 3] ** 2)
    for kind in ("beeswarm", "waterfall"):
        found.plot(kind)
    matplotlib.pyplot.close("all")


def test_classes_are_chosen_by_label():
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    found = shap_values(RandomForestClassifier(5, random_state=0).fit(X, names), X)
    ax = found.plot("beeswarm", label="virginica")
    assert "virginica" in ax.get_xlabel()
    np.testing.assert_array_equal(found.of_class("setosa"), found.values[:, :, 0])
    matplotlib.pyplot.close(ax.figure)


def test_what_cannot_be_drawn(wide):
    found, outside = wide
    X, y = load_iris(return_X_y=True)
    classes = shap_values(RandomForestClassifier(2, random_state=0).fit(X, y), X)
    with pytest.raises(ValueError, match=r"3 classes: set label to one of \[0, 1, 2\]"):
        classes.plot()
    with pytest.raises(ValueError, match=r"label=7 must be one of \[0, 1, 2\]"):
        classes.plot(label=7)
    with pytest.raises(ValueError, match="kind='pie'"):
        found.plot("pie")
    with pytest.raises(ValueError, match="feature='z'"):
        found.plot("dependence", feature="z")
    with pytest.raises(ValueError, match=r"feature=0\.5 must be a name, or a number below 100"):
        found.plot("dependence", feature=0.5)
    with pytest.raises(ValueError, match=r"row=0\.5 must be the number of one of the 150 rows"):
        found.plot("waterfall", row=0.5)
    with pytest.raises(ValueError, match="regression has no classes"):
        found.of_class("a")
    never = np.flatnonzero(outside.n_trees == 0)
    with pytest.raises(ValueError, match="never out of bag"):
        outside.plot("waterfall", row=int(never[0]))


def test_an_explanation_of_the_package_shap():
    shap = pytest.importorskip("shap", reason="shap is not installed (extra bridge)")
    X, y = load_iris(return_X_y=True)
    found = shap_values(RandomForestClassifier(3, random_state=0).fit(X, y), X).to_explanation()
    assert isinstance(found, shap.Explanation)
    assert found.base_values.shape == (150, 3)
