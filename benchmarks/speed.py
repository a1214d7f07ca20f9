"""The speed benchmark: fit, predict and importance against scikit-learn, with bars to reach."""

from copy import copy
from functools import partial
from typing import NamedTuple

from sklearn.inspection import permutation_importance

from benchmarks import datasets, display, results
from benchmarks.errors import DataError
from benchmarks.sides import FORESTS
from benchmarks.timing import race
from importance import oob_permutation

JOBS = (1, 2)


class Case(NamedTuple):
    """Work that both sides do, under every setting that either may choose."""

    name: str
    bar: float  # least ratio to reach
    ours: list
    peer: list
    repeats: int


def run(args):
    """Race all cases."""
    plan = _quick_plan() if args.quick else _plan()
    rows = []
    with display.progress(len(plan)) as step:
        for name, make in plan.items():
            step(name)
            try:
                cases = make()
            except DataError as error:
                display.say(f"{name} is left out: {error}")
                cases = []
            for case in cases:
                times = race(case.ours, case.peer, 1 if args.quick else case.repeats)
                rows.append({"case": case.name, **times._asdict(), "bar": case.bar})
            step()
    content = {"rows": rows}
    display.show(table(content))
    if not args.quick:
        display.say(f"wrote {results.save('speed', content)}")


def table(content):
    """The results as a table."""
    return display.Table(
        "Speed",
        ["case", "Cartwood", "scikit-learn", "ratio", "bar", "reached"],
        [
            [
                row["case"],
                display.seconds(row["ours"]),
                display.seconds(row["peer"]),
                display.ratio(row["peer"] / row["ours"]),
                display.ratio(row["bar"]),
                "yes" if row["peer"] >= row["bar"] * row["ours"] else "no",
            ]
            for row in content["rows"]
        ],
        "Medians of runs taken in turn, each side at its better of n_jobs=1 and 2, kernels "
        "compiled and warm.",
    )


def _plan():
    """What makes the cases of every row or two of the table."""
    return {
        "forest classification:100000x20": partial(_large_classification, 100_000, 20),
        "forest iris": partial(_fit, "iris", 4.0, repeats=9),
        "forest breast_cancer": partial(_fit, "breast_cancer", 4.0, repeats=9),
        "forest california": partial(_fit, "california", 2.0),
        "forest regression:20000x10": partial(_fit, "regression:20000x10", 2.0, 20),
        "importance breast_cancer": partial(_permute, "breast_cancer", 10.0),
        "importance california": partial(_permute, "california", 5.0),
    }


def _quick_plan():
    """The same on smaller tables."""
    return {
        "forest classification:10000x20": partial(_large_classification, 10_000, 5),
        "forest iris": partial(_fit, "iris", 4.0),
        "forest breast_cancer": partial(_fit, "breast_cancer", 4.0),
        "forest diabetes": partial(_fit, "diabetes", 2.0),
        "importance breast_cancer": partial(_permute, "breast_cancer", 10.0),
    }


def _fit(name, bar, n_estimators=100, repeats=3):
    data = datasets.load(name)
    ours, peer = (_fits(Forest, data.X, data.y, n_estimators) for Forest in FORESTS[data.task])
    return [Case(f"fit {_describe(data.X, n_estimators)}, {name}", bar, ours, peer, repeats)]


def _large_classification(n_samples, n_estimators):
    """Fit on so many rows; predict 25,000 others."""
    X, y = datasets.make_classification(n_samples + 25_000, 20)
    X, y, other = X[:n_samples], y[:n_samples], X[n_samples:]
    sides = FORESTS["classification"]
    fits = [_fits(Forest, X, y, n_estimators) for Forest in sides]
    predicts = [_predicts(Forest(n_estimators, random_state=0, n_jobs=2).fit(X, y), other)
                for Forest in sides]  # fmt: skip
    name = f"{_describe(X, n_estimators)}, two classes"
    return [
        Case(f"fit {name}", 3.0, *fits, repeats=3),
        Case(f"predict {len(other):,} rows with the same forest", 1.5, *predicts, repeats=9),
    ]


def _permute(name, bar):
    data = datasets.load(name)
    X, X_test, y, y_test = data.split(seed=0)
    ours, peer = (Forest(random_state=0, n_jobs=2).fit(X, y) for Forest in FORESTS[data.task])
    peer_on_one = copy(peer).set_params(n_jobs=1)
    sampled = partial(permutation_importance, X=X_test, y=y_test, n_repeats=5, random_state=0)
    return [
        Case(
            f"OOB permutation of {X.shape[1]} features, {name}",
            bar,
            [partial(oob_permutation, ours, X, y, n_jobs=k) for k in JOBS],
            [partial(sampled, peer_on_one, n_jobs=k) for k in JOBS] + [partial(sampled, peer)],
            repeats=3,
        )
    ]


def _fits(Forest, X, y, n_estimators):
    return [partial(Forest(n_estimators, random_state=0, n_jobs=k).fit, X, y) for k in JOBS]


def _predicts(forest, X):
    return [partial(copy(forest).set_params(n_jobs=k).predict, X) for k in JOBS]


def _describe(X, n_estimators):
    return f"{n_estimators} trees, {X.shape[0]:,} x {X.shape[1]}"
