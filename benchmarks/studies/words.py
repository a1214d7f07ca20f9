"""How often each sentence of `compare` is false, on tables of seven designs with known truth.

What is true on average is the mean over the tables of a design. For the order of two features the
truth is the order by many trees on the same table. For SHAP values a sentence is also false if it
is said when the out-of-bag rows of trees are exchanged at random. Seeds derive from the number of a
design and of a table.
"""

from collections import defaultdict
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed

from benchmarks.harness import display, results
from forest import RandomForestClassifier, RandomForestRegressor
from importance import compare, oob_permutation
from importance.report.advice import SENTENCES, SHARING, SMALL, on_shap
from importance.report.comparison import SHAP
from importance.shap.mean_absolute import FALL
from importance.shap.values import explain, trees_out_of_bag

TABLES, QUICK_TABLES = 200, 6
MOST_FALSE = 16  # of 200: 5 % plus two Monte Carlo errors
TREES, MORE_TREES = 25, 400
MEASURES = ("mdi", "unbiased_mdi", "oob_permutation", "drop_column")
ON_SHAP = "SHAP falls out of bag"  # the sentence that needs only SHAP values
CONFIRMED = 0.5  # times its share by MDI: if it has more out of bag, "not confirmed" is false


class Asked(NamedTuple):
    """The sentences of `compare` on one table, and what they are judged by."""

    said: dict  # by sentence, positions of features
    values: dict  # by measure
    of_noise: np.ndarray  # positions of the noise features
    settled: np.ndarray | None  # see `_settled`
    says_by_chance: bool  # see `_says_by_chance`


def noise(rng):
    """Six features without information; regression."""
    return rng.normal(size=(100, 6)), rng.normal(size=100), np.arange(6)


def signals(rng):
    """Three signals that nothing replaces, and two noise features; regression."""
    X = rng.normal(size=(60, 5))
    return X, 2 * X[:, 0] + X[:, 1] + X[:, 2] + rng.normal(size=60), np.arange(3, 5)


def twins(rng):
    """A signal, its near-copy, another signal, noise, and a row number; classification."""
    X = rng.normal(size=(150, 5))
    X[:, 1] = X[:, 0] + 0.05 * X[:, 1]
    X[:, 4] = rng.permutation(150)
    y = X[:, 0] + 0.7 * X[:, 2] + 0.7 * rng.logistic(size=150) > 0
    return X, y.astype(int), np.arange(3, 5)


def follower(rng):
    """A signal, a feature that follows it (0.9) and adds nothing, two more signals; regression."""
    X = rng.normal(size=(150, 5))
    X[:, 1] = 0.9 * X[:, 0] + np.sqrt(0.19) * X[:, 1]
    return X, 2 * X[:, 0] + X[:, 2] + X[:, 3] + rng.normal(size=150), np.arange(4, 5)


def correlated_noise(rng):
    """A signal, and three correlated noise features (|0.95|); classification."""
    X = rng.normal(size=(150, 5))
    X[:, 2] = -0.95 * X[:, 1] + 0.31 * X[:, 2]
    X[:, 3] = 0.95 * X[:, 1] + 0.31 * X[:, 3]
    return X, (X[:, 0] + 0.5 * rng.logistic(size=150) > 0).astype(int), np.arange(1, 5)


def many_values(rng):
    """Two signals of two values, noise of many; classification (after Strobl et al. 2007)."""
    X = np.column_stack((rng.integers(2, size=(120, 2)), rng.normal(size=(120, 3))))
    y = X[:, 0] + X[:, 1] + rng.logistic(size=120) > 1
    return X, y.astype(int), np.arange(2, 5)


def combinations(rng):
    """Every combination of two columns and the target once; classification."""
    columns = [column.ravel() for column in np.meshgrid(*map(np.arange, (10, 4, 3)))]
    return np.column_stack(columns[:2]), rng.permutation(3)[columns[2]], np.arange(0)


DESIGNS = {
    f.__name__: f
    for f in (noise, signals, twins, follower, correlated_noise, many_values, combinations)
}


def run(args):
    """Run `compare` on every table, and count false sentences."""
    n_tables = QUICK_TABLES if args.quick else args.sets
    kinds = [kind for kind in SENTENCES if args.only in kind]
    content = {"n_tables": n_tables, "rows": []}
    with Parallel(args.n_jobs) as parallel:
        for number, name in enumerate(DESIGNS):
            found = parallel(delayed(ask)(name, number, i, kinds) for i in range(n_tables))
            content["rows"] += [{"design": name, **row} for row in count(found, kinds)]
            display.show(table(content))
    results.keep(args, "words", content)


def ask(name, number, i, kinds):
    """The sentences on one table, the features they are about, and the values of the measures."""
    rng = np.random.default_rng([21, number, i])
    X, y, of_noise = DESIGNS[name](rng)
    kind = RandomForestClassifier if y.dtype.kind == "i" else RandomForestRegressor
    forest = kind(TREES, random_state=i, n_jobs=1).fit(X, y)
    others = () if kinds == [ON_SHAP] else MEASURES
    comparison = compare(forest, X, y, measures=(*others, *SHAP))
    said = {kind: [s.features for s in SENTENCES[kind][0](comparison)] for kind in kinds}
    order = said.get("order left to chance")
    return Asked(
        said, {measure: found.values for measure, found in comparison.results.items()}, of_noise,
        _settled(comparison, kind, X, y, i) if order else None,
        ON_SHAP in kinds and _says_by_chance(forest, X, comparison, i),
    )  # fmt: skip


def _says_by_chance(forest, X, comparison, i):
    """Whether a sentence on SHAP is said when out-of-bag rows are exchanged at random."""
    out = np.random.default_rng(i).permuted(trees_out_of_bag(forest, X), axis=1)
    outside = explain(forest, X, out).mean_abs(per_row=True)
    exchanged = dict(zip(SHAP, (comparison.results[SHAP[0]], outside), strict=True))
    return any(on_shap(SimpleNamespace(results=exchanged, units=None)))


def _settled(comparison, kind, X, y, i):
    """Differences of features by many trees on a table, in standard errors of 25 trees."""
    forest = kind(MORE_TREES, random_state=1000 + i, n_jobs=1).fit(X, y)
    per_tree = comparison.results["oob_permutation"].per_tree
    values = oob_permutation(forest, X, y).values
    error = (per_tree[:, :, np.newaxis] - per_tree[:, np.newaxis]).std(axis=0)
    error /= np.sqrt(len(per_tree))
    return (values[:, np.newaxis] - values) / np.where(error > 0.0, error, np.inf)


def count(found, kinds=tuple(SENTENCES)):
    """For every sentence, in how many tables it is said, and in how many it is false."""
    n_said, n_false, judges = defaultdict(int), defaultdict(int), judges_of(found)
    for asked in found:
        for kind, sentences in asked.said.items():
            n_said[kind] += bool(sentences)
            if kind == "cannot be told from noise":
                unlisted = np.setdiff1d(
                    asked.of_noise, np.concatenate([*sentences, np.empty(0, int)])
                )
                n_false[kind] += len(unlisted) > 0
            elif kind in judges:
                is_false = any(judges[kind](j, asked.settled) for j in sentences)
                n_false[kind] += is_false or (kind == ON_SHAP and asked.says_by_chance)
    return [{"sentence": kind, "said": n_said[kind], "false": n_false.get(kind)} for kind in kinds]


def judges_of(found):
    """By sentence, a function that tells whether it is false for some features."""
    each = {m: np.array([asked.values[m] for asked in found]) for m in found[0].values}
    mean = {m: values.mean(axis=0) for m, values in each.items()}
    inside, outside = (mean[m] for m in SHAP)
    on_shap_alone = {ON_SHAP: lambda j, _: (inside - outside < FALL / 2 * inside)[j].any()}
    if "mdi" not in mean:
        return on_shap_alone
    error = each["unbiased_mdi"].std(axis=0) / np.sqrt(len(found))
    used, missed = mean["oob_permutation"], mean["drop_column"]
    used_error = each["oob_permutation"].std(axis=0) / np.sqrt(len(found))
    biased, unbiased = mean["mdi"], mean["unbiased_mdi"]
    is_confirmed = (
        ~np.isin(np.arange(len(used)), found[0].of_noise)
        & (unbiased > 2.0 * error)
        & (unbiased / unbiased.sum() > CONFIRMED * biased / biased.sum())
    )
    return {
        **on_shap_alone,
        "MDI is not confirmed": lambda j, _: is_confirmed[j].any(),
        "share their importance": lambda j, _: (used[j] < SHARING / 5 * used[j].sum()).any(),
        "can replace it": lambda j, _: (missed[j] > SMALL * used[j]).any(),
        "order left to chance": lambda j, settled: abs(settled[j[0], j[1]]) > 2.0,
        "misleads them out of bag": lambda j, _: (used[j] > -2.0 * used_error[j]).any(),
    }


def table(content):
    """The results as a table."""
    designs = list(dict.fromkeys(row["design"] for row in content["rows"]))
    kinds = [k for k in SENTENCES if any(row["sentence"] == k for row in content["rows"])]
    cells = {(row["sentence"], row["design"]): row for row in content["rows"]}

    def cell(kind, design):
        row = cells[kind, design]
        return str(row["said"]) if row["false"] is None else f"{row['false']} / {row['said']}"

    most = MOST_FALSE * content["n_tables"] / TABLES
    worst = {
        kind: max((cells[kind, d]["false"] or 0 for d in designs), default=0) for kind in kinds
    }
    return display.Table(
        "Sentences of compare: tables in which one is false, and in which it is said",
        ["sentence", *(d.replace("_", " ") for d in designs), f"false in at most {most:.0f}"],
        [
            [
                f"... {kind} ...",
                *(cell(kind, d) for d in designs),
                "yes" if worst[kind] <= most else "no",
            ]
            for kind in kinds
        ],
        f"{content['n_tables']} tables per design, of 60 to 150 rows, and forests of {TREES} "
        "trees. A sentence is false in these cases. Not confirmed: the mean share out of bag is "
        "above half of that by MDI. Share: one of the features has less than 5 % on average. "
        "Replace: the mean loss is above 20 % of the mean permutation importance. Order: with 400 "
        "trees the two features differ by more than 2 standard errors. Noise: a noise feature is "
        "not listed. SHAP: the fall is less than 5 % on average, or the sentence also appears when "
        "trees and rows are paired at random. Misleads: the mean importance is not below 0 by 2 "
        'standard errors. "Cannot be told from 0" reports a test result, so it has only one '
        "number.",
    )
