"""The comparison of measures: its table, its warnings, and that its pictures can be read."""

from itertools import pairwise
from types import SimpleNamespace

import matplotlib
import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.ensemble import RandomForestClassifier as PeerClassifier

from forest import BaggingRegressor, RandomForestClassifier, RandomForestRegressor
from importance import (
    compare,
    correlation_groups,
    drop_column,
    mdi,
    oob_permutation,
    shap_values,
    unbiased_mdi,
)
from importance.core.groups import parse_groups
from importance.core.plots import plot_clusters, plot_ranks
from importance.core.result import OVER_TREES, Importances
from importance.report.advice import (
    advise,
    on_misleading,
    on_noise,
    on_optimism,
    on_order,
    on_replaceable,
    on_shared_importance,
    on_unknown_loss,
)

matplotlib.use("Agg")
SHAP = ("mean_absolute_shap", "mean_absolute_shap_oob")
BARE = ("mdi", "unbiased_mdi", "oob_permutation", "drop_column")


@pytest.fixture(scope="module")
def lessons():
    """x decides; its copy says the same; an id says nothing and has a value per row."""
    pd = pytest.importorskip("pandas")
    rng = np.random.RandomState(0)
    n = 600
    x, other = rng.normal(size=n), rng.normal(size=n)
    frame = pd.DataFrame(
        {
            "x": x,
            "copy": x + 0.02 * rng.normal(size=n),
            "other": np.round(other),
            "user_id": rng.permutation(n).astype(float),
            "coin": rng.randint(2, size=n),
        }
    )
    y = (x + 0.5 * other + rng.normal(size=n) > 0).astype(int)
    forest = RandomForestClassifier(60, random_state=0, max_features=2).fit(frame, y)
    return forest, frame, y, compare(forest, frame, y, measures=BARE)


def test_the_table_holds_every_measure(lessons):
    forest, frame, y, comparison = lessons
    table = comparison.to_frame()
    assert next(iter(table.index)) in ("x", "copy")
    measures = (
        mdi(forest), unbiased_mdi(forest, frame, y), oob_permutation(forest, frame, y),
        drop_column(forest, frame, y),
    )  # fmt: skip
    for name, result in zip(BARE, measures, strict=True):
        found = table[name].loc[list(frame.columns)]
        np.testing.assert_allclose(found["importance"], result.values, rtol=1e-12)
        np.testing.assert_allclose(found["standard_error"], result.standard_error, rtol=1e-12)
        order = np.argsort(-result.values, kind="stable")
        assert list(found["rank"].iloc[order]) == [1, 2, 3, 4, 5]
    assert list(comparison.seconds) == list(BARE)
    assert min(comparison.seconds.values()) > 0.0


def test_warnings_in_words(lessons):
    comparison = lessons[-1]
    text = "\n".join(comparison.warnings)
    assert "MDI ranks user_id (600 distinct values)" in text
    assert "x and copy share their importance (Spearman 1.00): permuted together" in text
    assert "coin" in text.partition("told from noise")[2]
    for warning in comparison.warnings:
        assert warning in repr(comparison)
    assert "± over data" in repr(comparison)
    assert "± over trees" in repr(comparison)


def comparison_of(used, missed=None, jointly=None, groups=(), correlation=None):
    """A comparison of given importances: (values, standard errors) of permutation, drop column."""
    names = np.array([f"x{j}" for j in range(len(used[0]))], object)

    def result(measure, found):
        per_tree = (
            np.array(found[0])
            + np.outer([-1.0, 1.0], (-1.0) ** np.arange(len(found[0]))) * found[1]
        )
        words = {"unit": "", "uncertainty": "over data, from the rows", "bias": ""}
        return Importances(measure, *map(np.array, found), per_tree, names, **words)

    results = {"oob_permutation": result("oob_permutation", used)}
    if missed is not None:
        results["drop_column"] = result("drop_column", missed)
    joint = None if jointly is None else result("oob_permutation", jointly)
    return SimpleNamespace(
        results=results, jointly=joint, groups=groups, correlation=correlation, feature_names=names
    )


@pytest.mark.parametrize(("error", "n_said"), [(0.01, 1), (1.0, 0)])
def test_mdi_is_contradicted_by_what_trees_agree_on_only(error, n_said):
    """x0 has half of MDI and nothing out of bag, but perhaps all of it if the trees disagree.

    x2 never had much.
    """

    def result(measure, values, errors):
        names = np.array(["x0", "x1", "x2"])
        return Importances(
            measure, np.array(values), np.array(errors), None, names, "", OVER_TREES, ""
        )

    results = {
        "mdi": result("mdi", [0.49, 0.49, 0.02], [0.0, 0.0, 0.0]),
        "unbiased_mdi": result("unbiased_mdi", [0.0, 1.0, 0.0], [error, 0.1, 0.0]),
    }
    said = [*on_optimism(SimpleNamespace(results=results, n_distinct=[2, 2, 2]))]
    assert len(said) == n_said
    assert all("MDI ranks x0" in sentence.text for sentence in said)


@pytest.mark.parametrize("unit", [1.0, 2.0**-60, 2.0**60])
def test_words_do_not_depend_on_the_unit_of_y(unit):
    used = np.array([[1.0, 0.98, 0.3], [0.1, 0.1, 0.05]]) * unit
    missed = np.array([[0.01, 0.01, 0.08], [0.02, 0.2, 0.05]]) * unit
    said = [sentence.text for sentence in advise(comparison_of(used, missed))]
    kinds = [next(k for k in ("can replace it", "remains open", "order") if k in s) for s in said]
    assert kinds == ["can replace it", "remains open", "order"]
    assert not any(" 0 ± 0 " in s for s in said)


@pytest.mark.parametrize(
    ("values", "errors", "pairs"),
    [
        ([1.0, 0.94, 0.3], [0.1, 0.1, 0.1], [[0, 1]]),
        ([0.94, 0.3, 1.0], [0.1, 0.1, 0.1], []),  # in step: trees do not exchange their order
        ([0.3, 1.0, 0.94], [0.1, 0.1, 0.1], [[1, 2]]),
        ([1.0, 0.92, 0.3], [0.1, 0.1, 0.1], []),  # more than half a standard error over trees
        ([1.0, 0.98, 0.3], [0.1, 0.5, 0.1], []),  # the lower one may be noise
        ([1.0, 0.98, 0.3], [0.6, 0.1, 0.1], [[0, 1]]),  # the higher one may, but is no lower
        ([0.98, 1.0, 0.3], [0.1, 0.6, 0.1], [[1, 0]]),
        ([1.0, 0.95, 0.9], [0.1, 0.1, 0.1], [[0, 1], [1, 2]]),
        ([9, 8, 7, 6, 5, 4.99], [0.1] * 6, []),  # not of the five leaders
    ],
)
def test_an_order_is_left_to_chance_where_the_lower_counts_and_trees_disagree(
    values, errors, pairs
):
    said = list(on_order(comparison_of([values, errors])))
    assert [sentence.features.tolist() for sentence in said] == pairs
    for (a, b), sentence in zip(pairs, said, strict=True):
        assert sentence.text.startswith(f"The order of x{a} and x{b} depends on the randomness")


def test_a_target_that_trees_take_for_a_constant_is_named():
    """As scikit-learn's, they split no node whose impurity is 2e-16 or less."""
    X = np.random.default_rng(0).normal(size=(60, 3))
    rounded = 0.1 + 1e-17 * np.round(X[:, 0])
    for y, is_named in ((X[:, 0] * 1e-9, True), (X[:, 0], False), (rounded, False)):
        forest = RandomForestRegressor(5, random_state=0).fit(X, y)
        said = compare(forest, X, y, measures=["mdi"]).warnings
        assert any(text.startswith("No tree splits, because y varies") for text in said) == is_named


def test_replacement_is_claimed_where_the_loss_is_bounded():
    used = [[1.0, 1.0], [0.1, 0.1]]
    assert "x0" in next(on_replaceable(comparison_of(used, [[0.0, 0.5], [0.09, 0.09]]))).text
    for loss, error in ((0.05, 0.1), (0.3, 0.05), (-0.5, 0.07)):  # wide, large, below 0
        found = comparison_of(used, [[loss, 0.5], [error, 0.09]])
        assert not list(on_replaceable(found))
        assert len(list(on_unknown_loss(found))) == (abs(loss) <= 2 * error)


def test_features_of_which_each_is_needed_share_nothing():
    """As latitude and longitude do, which go together: either alone is worth what both are."""
    groups, alone = parse_groups([[0, 1]], ["x0", "x1"]), [[0.50, 0.46], [0.03, 0.03]]
    for together, is_said in ((0.49, False), (0.60, False), (0.70, True)):
        joint = [[together], [0.03]]
        found = comparison_of(alone, jointly=joint, groups=groups, correlation=np.eye(2))
        assert bool(list(on_shared_importance(found))) == is_said


def test_a_member_without_a_part_shares_nothing():
    groups = parse_groups([[0, 1, 2]], ["x0", "x1", "x2"])
    signs = np.array([[1.0, -0.9, 0.8], [-0.9, 1.0, 0.8], [0.8, 0.8, 1.0]])
    alone = [[1.5, 1.0, -1.6e-5], [0.1, 0.1, 0.1]]
    (sentence,) = on_shared_importance(
        comparison_of(alone, jointly=[[2.0], [0.1]], groups=groups, correlation=signs)
    )
    assert "x0 and x1 share their importance (Spearman -0.90)" in sentence.text
    alone[0][1] = 0.01
    found = comparison_of(alone, jointly=[[2.0], [0.1]], groups=groups, correlation=signs)
    assert not list(on_shared_importance(found))


def test_values_far_below_zero_are_not_noise():
    (sentence,) = on_noise(comparison_of([[1.0, 0.05, -0.67], [0.1, 0.1, 0.1]]))
    assert list(sentence.features) == [1]


def test_tables_of_all_combinations_mislead_trees():
    """A row out of bag has the one class that the rows in bag that are like it have not."""
    *X, y = (column.ravel() for column in np.meshgrid(range(10), range(4), range(3)))
    X = np.column_stack(X)
    forest = RandomForestClassifier(25, random_state=0).fit(X, y)
    (sentence,) = on_misleading(compare(forest, X, y, measures=["oob_permutation"]))
    assert "learn from x0 and x1 misleads them out of bag: permuting x0 lowers" in sentence.text
    assert not list(on_misleading(comparison_of([[1.0, -0.3], [0.1, 0.1]])))  # as noise may be


def test_a_single_feature_is_compared_without_refits():
    X, y = load_diabetes(return_X_y=True)
    forest = RandomForestRegressor(10, random_state=0).fit(X[:, :1], y)
    assert list(compare(forest, X[:, :1], y).results)[:3] == list(BARE)[:3]
    with pytest.raises(ValueError, match="drop_column: without 'x0' no column is left"):
        compare(forest, X[:, :1], y, measures=["drop_column"])


def test_a_column_may_be_called_as_a_group_would_be():
    """A sum of two columns beside them: all measures were taken, and then an error stood there."""
    pd = pytest.importorskip("pandas")
    x = np.random.default_rng(0).normal(size=(80, 2))
    X = pd.DataFrame({"a + b": x[:, 1], "a": x[:, 0], "b": x[:, 0]})
    forest = RandomForestRegressor(5, random_state=0).fit(X, x[:, 0])
    found = compare(forest, X, x[:, 0], measures=["oob_permutation"])
    assert list(found.jointly.feature_names) == ["(a + b)", "a + b"]
    groups = correlation_groups(X)
    assert groups == {"(a + b)": ["a", "b"]}
    assert len(oob_permutation(forest, X, x[:, 0], groups=groups).values) == 2


def test_what_is_left_out_is_said_and_why():
    X, y = load_iris(return_X_y=True)
    forest = RandomForestClassifier(10, random_state=0).fit(X, y)
    found = compare(forest, X, y, without=["drop_column", "jointly", *SHAP])
    assert found.left_out == dict.fromkeys(["drop_column", "jointly", *SHAP], "as requested")
    assert list(found.results) == ["mdi", "unbiased_mdi", "oob_permutation"]
    assert found.jointly is None
    assert "drop_column is left out: as requested" in repr(found)
    with pytest.raises(ValueError, match=r"without=\['mdi'\] leaves no measure"):
        compare(forest, X, y, measures=["mdi"], without=["mdi"])
    with pytest.raises(ValueError, match=r"without=\['drop'\] are not known; .*'jointly'\]"):
        compare(forest, X, y, without=["drop"])
    with pytest.raises(ValueError, match=r"measures=\['drop'\] are not known; choose from \['mdi'"):
        compare(forest, X, y, measures=["drop"])
    with pytest.raises(ValueError, match=r"measures=\['jointly'\] are not known"):  # by itself
        compare(forest, X, y, measures=["mdi", "jointly"])
    for strange in (3, [3], [["mdi"]]):
        with pytest.raises(TypeError, match=r"measures=.* must be names of measures"):
            compare(forest, X, y, measures=strange)
    single = compare(forest.fit(X[:, :1], y), X[:, :1], y)
    assert "without the only feature" in single.left_out["drop_column"]
    weighed = RandomForestClassifier(10, voting="oob_weighted", random_state=0).fit(X, y)
    assert (
        "it does not support voting='oob_weighted'"
        in compare(weighed, X, y).left_out["drop_column"]
    )
    majority = RandomForestClassifier(10, voting="majority", random_state=0).fit(X, y)
    found = compare(majority, X, y, without=["drop_column"])
    assert set(found.left_out) == {"drop_column", *SHAP}
    assert "voting='majority'" in found.left_out["mean_absolute_shap"]


def test_correlations_of_very_many_features_are_left_out():
    """Memory for all pairs is short."""
    X = np.random.RandomState(0).normal(size=(20, 20_000))
    X[:, 1] = X[:, 0]
    forest = RandomForestClassifier(10, random_state=0).fit(X, X[:, 0] > 0)
    found = compare(forest, X, X[:, 0] > 0, measures=["mdi", "oob_permutation"])
    assert found.correlation is None
    assert found.jointly is None
    assert "more than 10,000 features" in found.left_out["jointly"]
    assert "jointly is left out" in str(found)
    with pytest.raises(ValueError, match="more than 10,000 features"):
        found.plot_clusters()


def test_every_measure_tells_how_far_it_is(capsys):
    X, y = load_iris(return_X_y=True)
    forest = RandomForestClassifier(10, random_state=0).fit(X, y)
    seen = []
    compare(forest, X, y, max_rows=20, callback=seen.append)
    ends = {each.what: each for each in seen}
    expected = ("unbiased_mdi", "oob_permutation", "drop_column", *SHAP, "jointly")
    assert tuple(ends) == expected
    assert all(each.n_done == each.n_total for each in ends.values())
    assert ends["drop_column"].n_total == 40
    assert capsys.readouterr().err == ""
    compare(forest, X, y, measures=["drop_column"], verbose=1)
    said = capsys.readouterr().err
    assert said.startswith("drop_column:\n")
    assert "for 4 refits, judging by the first" in said


def test_rows_are_drawn_for_single_features_and_groups():
    X, y = load_iris(return_X_y=True)
    forest = RandomForestClassifier(10, random_state=0).fit(X, y)
    found = compare(forest, X, y, measures=["oob_permutation"], max_rows=20)
    assert found.results["oob_permutation"].max_rows == 20
    assert found.jointly.max_rows == 20


def test_one_tree_has_no_standard_error():
    X, y = load_diabetes(return_X_y=True)
    result = oob_permutation(RandomForestRegressor(1, random_state=0).fit(X, y), X, y)
    assert np.isnan(result.standard_error).all()
    assert np.isnan(result.errors["over trees"]).all()
    assert np.isnan(result.interval()).all()


def test_no_warning_without_a_reason():
    rng = np.random.RandomState(0)
    X = rng.normal(size=(400, 2))
    y = 3 * X[:, 0] + X[:, 1]
    forest = RandomForestRegressor(60, random_state=0).fit(X, y)
    assert compare(forest, X, y, measures=BARE).warnings == []


def test_adopted_forests_and_choice_of_measures():
    X, y = load_iris(return_X_y=True)
    ours = RandomForestClassifier(10, random_state=0).fit(X, y)
    theirs = PeerClassifier(10, random_state=0).fit(X, y)
    a, b = (compare(f, X, y, measures=("oob_permutation", "mdi")) for f in (ours, theirs))
    assert list(a.results) == ["oob_permutation", "mdi"]
    for name in a.results:
        np.testing.assert_allclose(a.results[name].values, b.results[name].values, atol=1e-12)
    with pytest.raises(ValueError, match=r"'votes'.* not known"):
        compare(ours, X, y, measures=["votes"])
    with pytest.raises(ValueError, match="not the table"):
        compare(ours, X[::-1], y[::-1])


def test_shap_is_a_column_in_and_out_of_bag():
    X, y = load_iris(return_X_y=True)
    forest = RandomForestClassifier(15, max_depth=3, random_state=0).fit(X, y)
    comparison = compare(forest, X, y)
    for out_of_bag, name in enumerate(("mean_absolute_shap", "mean_absolute_shap_oob")):
        found = comparison.results[name]
        expected = shap_values(forest, X, out_of_bag=bool(out_of_bag)).mean_abs()
        np.testing.assert_array_equal(found.values, expected.values)
        assert found.values.argmax() in (2, 3)
    with pytest.raises(ValueError, match="soft"):
        compare(forest.set_params(voting="majority"), X, y, measures=["mean_absolute_shap"])
    assert "mean_absolute_shap" not in compare(forest, X, y).results


def test_shap_of_a_sample_says_so():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2500, 3))
    forest = RandomForestRegressor(3, max_depth=3, random_state=0).fit(X, X[:, 0])
    found = compare(forest, X, X[:, 0], measures=["mean_absolute_shap_oob"]).results
    assert found["mean_absolute_shap_oob"].unit.endswith("834 of 2,500 rows")


def test_a_fall_of_shap_out_of_bag_is_said():
    """Of noise, where there is nothing else."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(150, 3)), rng.integers(2, size=150)
    forest = RandomForestClassifier(100, random_state=0).fit(X, y)
    texts = compare(forest, X, y, measures=["mean_absolute_shap", "mean_absolute_shap_oob"])
    assert any("Mean |SHAP| of x" in text for text in texts.warnings)
    y = 10 * X[:, 0] + X[:, 1] + X[:, 2]
    forest = RandomForestRegressor(100, random_state=0).fit(X, y)
    texts = compare(forest, X, y, measures=["mean_absolute_shap", "mean_absolute_shap_oob"])
    assert texts.warnings == []


def heights_of_labels(figure, axis):
    figure.canvas.draw()
    boxes = [label.get_window_extent() for label in axis.get_ticklabels() if label.get_text()]
    boxes.sort(key=lambda box: box.y0)
    return boxes


def assert_readable(figure, axis):
    """No label of a feature runs into the next."""
    boxes = heights_of_labels(figure, axis)
    assert len(boxes) > 1
    for below, above in pairwise(boxes):
        assert below.y1 <= above.y0 + 0.5


@pytest.fixture(scope="module")
def wide():
    """100 features with long names."""
    pd = pytest.importorskip("pandas")
    rng = np.random.RandomState(0)
    X = rng.normal(size=(200, 100))
    X[:, 1] = X[:, 0] + 0.1 * rng.normal(size=200)
    frame = pd.DataFrame(X, columns=[f"a rather long name of feature {j}" for j in range(100)])
    y = X[:, 0] + X[:, 5] ** 2 + 0.5 * rng.normal(size=200)
    forest = RandomForestRegressor(20, random_state=0, max_features=0.3).fit(frame, y)
    return frame, oob_permutation(forest, frame, y, per_row=True), mdi(forest)


@pytest.mark.parametrize("kind", ["bars", "trees", "rows"])
def test_a_hundred_features_can_be_read(wide, kind):
    frame, result, _ = wide
    options = {"X": frame} if kind == "rows" else {}
    ax = result.plot(kind, max_features=100, **options)
    labels = [label.get_text() for label in ax.get_yticklabels()]
    order = np.argsort(-result.values, kind="stable")
    assert labels[::-1] == list(result.feature_names[order])
    assert_readable(ax.figure, ax.yaxis)
    matplotlib.pyplot.close(ax.figure)


def test_intervals_are_drawn(wide):
    _, result, _ = wide
    ax = result.plot(max_features=3, level=0.9)
    bars = next(container for container in ax.containers if hasattr(container, "patches"))
    drawn = bars.errorbar.lines[2][0].get_segments()
    order = np.argsort(-result.values, kind="stable")[:3][::-1]
    np.testing.assert_allclose(
        [[segment[0, 0], segment[1, 0]] for segment in drawn], result.interval(0.9)[order]
    )
    matplotlib.pyplot.close(ax.figure)


def test_ranks_and_clusters(wide):
    frame, permutation, impurity = wide
    ax = plot_ranks({"oob_permutation": permutation, "mdi": impurity}, max_features=10)
    assert len(ax.lines) == 10
    best = permutation.values.argmax()
    assert {text.get_text() for text in ax.texts} >= {permutation.feature_names[best]}
    matplotlib.pyplot.close(ax.figure)
    correlation = np.corrcoef(frame.to_numpy().T)
    ax = plot_clusters(correlation, frame.columns, max_features=60)
    labels = [label.get_text() for label in ax.get_yticklabels()]
    places = [labels.index(frame.columns[j]) for j in (0, 1)]
    assert abs(places[0] - places[1]) == 1  # correlated features stand side by side
    assert_readable(ax.figure, ax.yaxis)
    matplotlib.pyplot.close(ax.figure)
    ax = plot_clusters(correlation[::-1, ::-1], frame.columns[::-1], max_features=2)
    assert {label.get_text() for label in ax.get_yticklabels()} == {*frame.columns[:2]}
    matplotlib.pyplot.close(ax.figure)


def test_pictures_show_what_the_warnings_name(lessons):
    comparison = lessons[-1]
    names = comparison.feature_names
    assert {"x", "copy", "user_id"} <= {*names[comparison.named]}
    for name in names[comparison.named]:
        assert any(name in text for text in comparison.warnings)
    n_shown = len({*comparison.named, comparison.results["oob_permutation"].values.argmax()})
    figure = comparison.plot(max_features=1)
    shown = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert {*names[comparison.named]} <= {*shown}
    if n_shown < len(names):
        assert figure.get_suptitle() == f"{n_shown} of {len(names)} features"
    ax = comparison.plot_ranks(max_features=1)
    drawn = " ".join(text.get_text() for text in ax.texts)
    assert all(name in drawn for name in names[comparison.named])
    matplotlib.pyplot.close("all")


@pytest.mark.parametrize("n_features", [1, 2, 4])
def test_the_scale_of_few_clusters_is_not_cut_off(n_features):
    ax = plot_clusters(np.eye(n_features), [f"x{j}" for j in range(n_features)])
    ax.figure.draw_without_rendering()
    box = ax.figure.axes[1].yaxis.label.get_window_extent()
    assert box.y0 >= 0
    assert box.y1 <= ax.figure.bbox.y1
    assert box.x1 <= ax.figure.bbox.x1
    matplotlib.pyplot.close(ax.figure)


def test_long_names_stay_in_the_picture():
    names = np.array([f"{j} is the number of a column whose name is a sentence" for j in range(5)])
    result = Importances("mdi", np.arange(5.0), np.zeros(5), None, names, "", "", "")
    ranks = plot_ranks(dict.fromkeys(BARE, result))
    for ax in (ranks, plot_clusters(np.eye(5), names), result.plot()):
        ax.figure.canvas.draw()
        labels = [*ax.texts, *ax.get_xticklabels(), *ax.get_yticklabels()]
        drawn = [label for label in labels if label.get_text().startswith("4 is")]
        assert drawn
        for label in drawn:
            box = label.get_window_extent()
            assert box.x0 >= 0
            assert box.y0 >= 0
            assert box.x1 <= ax.figure.bbox.x1
        matplotlib.pyplot.close(ax.figure)
    boxes = [label.get_window_extent() for label in ranks.get_xticklabels()]
    assert all(left.x1 < right.x0 for left, right in pairwise(boxes))


def test_a_figure_of_all_measures(lessons):
    comparison = lessons[-1]
    figure = comparison.plot()
    assert [ax.get_title() for ax in figure.axes] == list(BARE)
    assert_readable(figure, figure.axes[0].yaxis)
    matplotlib.pyplot.close(figure)


def test_long_numbers_stay_apart():
    """Below narrow panels."""
    X, y = load_diabetes(return_X_y=True)
    forest = RandomForestRegressor(5, random_state=0).fit(X, y / 500)
    figure = compare(forest, X, y / 500, measures=BARE).plot()
    figure.canvas.draw()
    for ax in figure.axes:
        boxes = [label.get_window_extent() for label in ax.get_xticklabels()]
        for left, right in pairwise(boxes):
            assert left.x1 < right.x0 - 5  # pixels
    matplotlib.pyplot.close(figure)


def test_pictures_that_cannot_be_drawn():
    X, y = load_breast_cancer(return_X_y=True)
    result = oob_permutation(RandomForestClassifier(3, random_state=0).fit(X, y), X, y)
    with pytest.raises(ValueError, match="per_row=True"):
        result.plot("rows")
    with pytest.raises(ValueError, match="kind='pie'"):
        result.plot("pie")
    with pytest.raises(ValueError, match="standard errors"):
        result.interval(over="the moon")
    for level in (95, 0.0, 1.0):
        with pytest.raises(ValueError, match="between 0 and 1"):
            result.interval(level)


def test_sparse_tables_are_judged_as_dense_ones_without_what_needs_them_dense():
    rng = np.random.RandomState(0)
    X = rng.randint(3, size=(80, 3)).astype(float)
    X[:, 2] = rng.permutation(80) + 1.0  # no zero
    y = X[:, 0] + rng.normal(size=80)
    forest = RandomForestRegressor(5, random_state=0).fit(csr_matrix(X), y)
    of_sparse, of_dense = compare(forest, csr_matrix(X), y), compare(forest, X, y)
    np.testing.assert_array_equal(of_sparse.n_distinct, [3, 3, 80])
    np.testing.assert_array_equal(of_dense.n_distinct, [3, 3, 80])
    assert {*of_sparse.left_out} >= {*SHAP}
    assert {*of_dense.results} - {*of_sparse.results} == {*SHAP}
    for name, result in of_sparse.results.items():
        np.testing.assert_allclose(result.values, of_dense.results[name].values)


def test_of_bagging_no_column_is_dropped():
    X, y = load_diabetes(return_X_y=True)
    found = compare(BaggingRegressor(n_estimators=5, random_state=0).fit(X, y), X, y)
    assert found.left_out["drop_column"] == "it does not support Bagging"
    assert {"oob_permutation", "mdi"} <= {*found.results}
    assert "drop_column" not in found.results
