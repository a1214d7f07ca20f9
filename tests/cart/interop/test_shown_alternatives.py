"""Surrogates and competitors in exported trees stand below the splits that they belong to."""

import html
import re

import numpy as np
import pytest
import sklearn.tree

from cart import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    export_graphviz,
    export_text,
    plot_tree,
)
from tests.data import load

NAMES = [f'the "{j}" <b>' for j in range(30)]


def fitted(**params):
    X, y = load("breast_cancer")
    return DecisionTreeClassifier(max_depth=4, random_state=0, **params).fit(X, y)


def expected(tree, node, n_surrogates, n_competitors, names):
    """The lines of a node, from `tree_`."""
    lines = []
    for s in tree.surrogates.of(node)[:n_surrogates] if n_surrogates else ():
        sign = "<=" if s.low_left else ">"
        figures = f"agree {s.agree:.5g}, adj {s.adj:.5g}"
        lines.append(f"surrogate: {names[s.feature]} {sign} {s.threshold:.5g} ({figures})")
    for c in tree.competitors.of(node)[:n_competitors] if n_competitors else ():
        figures = f"improvement {c.improvement:.5g}"
        lines.append(f"competitor: {names[c.feature]} <= {c.threshold:.5g} ({figures})")
    return lines


@pytest.mark.parametrize("params", [{}, {"max_depth": 2}, {"spacing": 1, "decimals": 4}], ids=str)
@pytest.mark.parametrize("counts", [(2, 0), (0, 1), (3, 2)])
def test_text_has_them_below_the_left_side(params, counts):
    model = fitted(surrogates=3, competitors=2)
    asked = dict(zip(("surrogates", "competitors"), counts, strict=True))
    lines = export_text(model, feature_names=NAMES, **asked, **params).splitlines()
    plain = export_text(model, feature_names=NAMES, **params).splitlines()
    assert [line for line in lines if "surrogate:" not in line and "competitor:" not in line] == (
        plain
    )
    tree, at, unit = model.tree_, 0, "|" + " " * params.get("spacing", 3)

    def walk(node, depth):  # the text, recursively
        nonlocal at
        if tree.children_left[node] < 0 or depth > params.get("max_depth", 10):
            at += 1
            return
        assert " <= " in lines[at]
        at += 1
        for line in expected(tree, node, *counts, NAMES):
            assert lines[at] == unit * (depth + 1) + line
            at += 1
        walk(tree.children_left[node], depth + 1)
        assert " >  " in lines[at]
        at += 1
        walk(tree.children_right[node], depth + 1)

    walk(0, 0)
    assert at == len(lines)


@pytest.mark.parametrize("is_html", [False, True])
@pytest.mark.parametrize("max_depth", [None, 1])
def test_graphviz_has_them_below_its_figures(is_html, max_depth, tmp_path):
    model = fitted(surrogates=3, competitors=2)
    params = {"special_characters": is_html, "filled": True, "max_depth": max_depth}
    dot = export_graphviz(model, feature_names=NAMES, surrogates=2, competitors=2, **params)
    plain = export_graphviz(model, feature_names=NAMES, **params)
    pairs = list(zip(dot.split("\n"), plain.split("\n"), strict=True))
    n_met, n_deeper = 0, 0
    for line, without in pairs:
        number = re.match(r"(\d+) \[label=", line)
        if number is None or '"(...)"' in line:
            assert line == without
            n_deeper += '"(...)"' in line
            continue
        added = expected(model.tree_, int(number[1]), 2, 2, NAMES)
        added = [html.escape(a, quote=False) if is_html else a.replace('"', r"\"") for a in added]
        newline = "<br/>" if is_html else r"\n"
        below = "".join(newline + each for each in added)
        assert line.replace(below, "", 1) == without
        assert below in line
        n_met += 1
    assert (n_met, n_deeper) == ((model.tree_.node_count, 0) if max_depth is None else (3, 4))
    path = tmp_path / "tree.dot"
    export_graphviz(model, str(path), feature_names=NAMES, surrogates=2, competitors=2, **params)
    assert path.read_text() == dot


def test_categories_are_named():
    rng = np.random.default_rng(0)
    X = np.column_stack((rng.normal(size=200), rng.integers(0, 4, 200)))
    y = X[:, 0] + 2.0 * (X[:, 1] > 1)
    X[:, 0] += 3.0 * (X[:, 1] > 1)
    tree = DecisionTreeRegressor(
        max_depth=1, surrogates=1, categorical_features=[1], random_state=0
    ).fit(X, y)
    text = export_text(tree, feature_names=["size", "city"], surrogates=1)
    split, below = text.splitlines()[:2]
    names = ("size", "city") if "size" in split else ("city", "size")
    assert names[0] in split
    assert below.startswith(f"|   surrogate: {names[1]}")
    assert "in {" in split + below


def test_a_split_of_the_missing_from_the_known_says_so():
    X = np.array([["Oslo"], [None], ["Rome"], [None], ["Rome"]], object)
    tree = DecisionTreeClassifier(categorical_features=[0]).fit(X, [0, 1, 0, 1, 0])
    text = export_text(tree, feature_names=["city"])
    assert [line for line in text.splitlines() if "city" in line] == [
        "|--- city is known",
        "|--- city is missing",
    ]


def test_quotes_in_names_and_categories_are_kept():
    X = np.array([['5"', 0.0], ["b", 0.0], ["c", 0.0]], object)
    tree = DecisionTreeClassifier(categorical_features=[0]).fit(X, [1, 0, 0])
    conditions = [f'the "size" {sign} {{5"}}' for sign in ("in", "not in")]
    names = ['the "size"', "b"]
    text = export_text(tree, feature_names=names)
    assert sorted(line[5:] for line in text.splitlines() if "size" in line) == conditions
    graph = export_graphviz(tree, feature_names=names)
    shown = re.search(r'0 \[label="(.*?)\\n', graph)
    assert shown[1].replace(r"\"", '"') in conditions
    assert plot_tree(tree, feature_names=names)[0].get_text().splitlines()[0] in conditions


@pytest.mark.parametrize("spacing", [1, 3])
def test_names_of_several_lines(spacing):
    """Each node has what it has under one-line names."""
    model = fitted(surrogates=2, competitors=1)
    asked = {"surrogates": 2, "competitors": 1}
    plain, broken = [f"name {j}" for j in range(30)], [f"name\n|  {j}" for j in range(30)]
    for draw, params in ((export_text, {"spacing": spacing}), (export_graphviz, {})):
        expected, found = (draw(model, feature_names=n, **asked, **params) for n in (plain, broken))
        assert re.sub(r"name\n\|  ", "name ", found) == expected


def test_categories_are_escaped_in_html():
    from xml.dom.minidom import parseString

    X = np.array(["<b>", "R&D", "<b>", "R&D"] * 10, dtype=object)[:, np.newaxis]
    y = X[:, 0] == "<b>"
    model = DecisionTreeClassifier(categorical_features=[0], random_state=0).fit(X, y)
    dot = export_graphviz(model, special_characters=True)
    labels = re.findall(r"label=<(.*)>\] ;", dot)
    assert len(labels) == 3
    assert "in {&lt;b&gt;}" in labels[0]
    for label in labels:
        parseString(f"<label>{label}</label>")


def test_a_cut_picture_searches_only_the_conditions_that_it_shows(monkeypatch):
    """Each node's text was searched for those of the whole tree, for 7 s with 2,000 leaves."""
    rng = np.random.default_rng(0)
    X = np.column_stack((rng.integers(0, 100, 500), rng.normal(size=500)))
    tree = DecisionTreeRegressor(categorical_features=[0], min_category_ratio=0.0, random_state=0)
    tree.fit(X, rng.normal(size=500))
    assert tree.tree_.is_subset.sum() > 100
    searched, search = [], re.sub
    monkeypatch.setattr(re, "sub", lambda *args: searched.append(args) or search(*args))
    drawn = plot_tree(tree, max_depth=1)
    assert len(searched) < 20
    monkeypatch.undo()
    assert not any(re.search(r"} (<=|>) 0", each.get_text()) for each in drawn)


def test_what_is_not_there_is_refused():
    model, (X, y) = fitted(), load("breast_cancer")
    for draw in (export_text, export_graphviz):
        with pytest.raises(ValueError, match="fitted without any; fit it with surrogates=2"):
            draw(model, surrogates=2)
        with pytest.raises(ValueError, match="competitors must be a non-negative whole number"):
            draw(model, competitors=True)
        peer = sklearn.tree.DecisionTreeClassifier(max_depth=1).fit(X, y)
        with pytest.raises(ValueError, match="keeps neither surrogates nor competitors"):
            draw(peer, competitors=1)
        assert draw(peer, surrogates=0) == draw(peer)
        assert "surrogates : int" in draw.__doc__


@pytest.mark.parametrize("draw", [export_text, export_graphviz, plot_tree])
def test_names_that_do_not_fit_trees_of_categories_are_refused(draw):
    X, y = [[0.0, 0.0], [1.0, 0.0], [2.0, 0.0]], [0, 1, 0]
    tree = DecisionTreeClassifier(categorical_features=[0]).fit(X, y)
    assert tree.tree_.is_subset.any()
    for names in (["a"], ["a", "b", "c"]):
        with pytest.raises(ValueError, match=f"must contain 2 elements, got {len(names)}"):
            draw(tree, feature_names=names)
    with pytest.raises(ValueError, match="'feature_names' parameter"):
        draw(tree, feature_names="ab")
