"""The identity benchmark: the share of trees and nodes that equal scikit-learn's.

It compares whole forests on whole tables, then the cases of `benchmarks.identity.cases`, where
every tree that differs is judged in exact arithmetic (`benchmarks.oracles.ties`).
"""

from functools import cache
from warnings import catch_warnings

import numpy as np
import sklearn.ensemble
import sklearn.tree
from joblib import Parallel, delayed
from scipy.sparse import issparse

import cart
import forest
from benchmarks.harness import datasets, display, results
from benchmarks.harness.sides import FORESTS
from benchmarks.identity import cases
from benchmarks.identity.agreement import NOTE, agree, agree_all, share_of_trees, summarize
from benchmarks.identity.cases import Case
from benchmarks.oracles.pruning import prune
from benchmarks.oracles.ties import Training, first_difference, has_medians, why_different
from benchmarks.oracles.weights import row_weights

CLASSIFICATION = (
    "iris", "wine", "breast_cancer", "digits",
    "classification:20000x20", "classification:20000x20x10",
)  # fmt: skip
REGRESSION = ("diabetes", "california", "regression:20000x10")
DISTINCT = "regression:20000x10, distinct values"
CRITERIA = {"classification": ("gini", "entropy"), "regression": ("squared_error",)}
LARGE = 10_000  # rows above which forests have 20 trees instead of 100
SEEDS = 5
QUICK = 5  # --quick takes one case of so many
GAP = 1e-9  # relative to the tree's largest impurity or value: more is not rounding
VERDICTS = ("identical", "median", "tie", "pure", "limit", "wrong")


def run(args):
    """Grow the trees of both sides and report how far they agree; 1 if a difference is no tie."""
    seeds = range(1 if args.quick else SEEDS)
    matrix = cases.all_cases()[:: QUICK if args.quick else 1]
    lost = cases.missing_tables()
    matrix = [case for case in matrix if case.data not in lost]
    names = [name for name in (*CLASSIFICATION, *REGRESSION) if not args.quick or ":" not in name]
    found, left_out = datasets.load_found(names)
    large = [
        (data.name, criterion, seed)
        for data in found[::-1] if not args.quick or len(data.X) < LARGE
        for criterion in CRITERIA[data.task] for seed in seeds
    ]  # fmt: skip
    if not args.quick:
        large += [(DISTINCT, "squared_error", seed) for seed in seeds]
    jobs = [delayed(_grow_forests)(*job) for job in large]
    jobs += [delayed(_compare)(case, seed) for case in matrix for seed in seeds]
    with display.progress(len(jobs)) as step:
        done = []
        for result in Parallel(n_jobs=-1, return_as="generator")(jobs):
            done.append(result)
            step()
    content = {
        "seeds": len(seeds),
        "rows": _sum_up_forests(large, done),
        "cases": len(matrix),
        **_sum_up_groups(_sum_up_cases(matrix, done[len(large) :], len(seeds))),
    }
    display.show(table(content))
    display.show(matrix_table(content))
    display.say(*left_out, *(f"cases on {name} are left out" for name in sorted(lost)))
    bad = content["wrong"] + [
        row for row in content["rows"] if row["identical_trees"] + row["ties"] < row["trees"]
    ]
    for row in bad:
        display.say(f"NOT THE SAME: {row}")
    results.keep(args, "identity", content)
    return 1 if bad else 0


def table(content):
    """Table of the forests on whole tables."""
    return display.Table(
        f"Identity with scikit-learn's forests ({content['seeds']} seeds)",
        ["data", "criterion", "trees", "the same", "nodes above\nany tie",
         "rows of the node of\nthe first tie", "largest gap of\nimpurity or value"],
        [
            [
                row["data"],
                row["criterion"],
                str(row["trees"]),
                share_of_trees(row, row.get("ties") == row["trees"] - row["identical_trees"]),
                display.share(row["identical_nodes"], row["nodes"]),
                _range(row["first_difference_rows"]),
                _small(row["largest_gap"]),
            ]
            for row in content["rows"]
        ],
        "A node is the same if its feature, threshold (bit for bit) and number of rows are the "
        "same, and those of all nodes above it. The gap is the largest difference in impurity or "
        f"value among these nodes, relative to the largest of the tree. {NOTE}",
    )  # fmt: skip


def matrix_table(content):
    """Table of the matrix, with one line per group and criterion."""
    return display.Table(
        f"The identity matrix: {content['cases']} cases, {content['seeds']} seeds each",
        ["group", "criterion", "cases", "trees", "the same", "nodes above\nany tie",
         "medians", "ties", "pure", "limit", "wrong", "largest gap of\nimpurity or value"],
        [
            [
                row["group"],
                row["criterion"],
                str(row["cases"]),
                str(row["trees"]),
                str(row["identical"]),
                display.share(row["identical_nodes"], row["nodes"]),
                *(str(row[verdict]) for verdict in VERDICTS[1:]),
                _small(row["largest_gap"]),
            ]
            for row in content["groups"]
        ],
        "Every node of a tree that differs is replayed in exact arithmetic. The first difference "
        "is a tie between equally good splits, a pure node (impurity exactly zero), or a split "
        "that only rounding permits or forbids (limit). Medians: the structure is the same, but a "
        "leaf has another median, because exactly half of its weight lies on either side. Anything "
        "else is wrong.",
    )  # fmt: skip


def distinct_friedman1(n_samples, n_features):
    """make_friedman1 without values that coincide in single precision.

    Returns
    -------
    Dataset
    """
    random = np.random.RandomState(0)
    X = random.uniform(size=(n_samples, n_features))
    for column in X.T:
        while len(repeated := _repeated(column.astype(np.float32))):
            column[repeated] = random.uniform(size=len(repeated))
    y = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2
    y += 10 * X[:, 3] + 5 * X[:, 4] + random.standard_normal(n_samples)
    return datasets.Dataset(DISTINCT, "regression", X, y, [f"x{j}" for j in range(n_features)])


def fit_both(case, seed, **changed):
    """Fit our model and scikit-learn's for one case.

    Returns
    -------
    ours, theirs : fitted estimators
    """
    data = cases.training(case, seed)
    with catch_warnings(action="ignore"):  # few trees: some rows are never out of bag
        return tuple(model.fit(*data) for model in create_both(case, seed, **changed))


def create_both(case, seed, **changed):
    """Our model and scikit-learn's for one case, not fitted."""
    params = {**cases.parameters(case, seed), **changed}
    homes = (cart, forest), (sklearn.tree, sklearn.ensemble)
    return tuple(_create(case, params, *home) for home in homes)


def _create(case, params, trees, ensembles):
    """The estimator of a case in one of the libraries."""
    kind = getattr(trees, case.class_name, None) or getattr(ensembles, case.class_name)
    if case.model != "Bagging":
        return kind(**params)
    tree = getattr(trees, case.class_name.replace("Bagging", "DecisionTree"))(**params)
    return kind(tree, n_estimators=3, random_state=params["random_state"], **case.patches)


def judge(case, seed, ours, theirs, replays=True, **changed):
    """Judge every pair of trees in exact arithmetic; the models have `changed` parameters.

    With `replays` all nodes are judged, otherwise only the first difference.

    Returns
    -------
    verdicts : list of str
        Each one of VERDICTS.
    agreements : list of Agreement
    """
    agreements = agree_all(_trees(ours), _trees(theirs))
    verdicts = ["identical"] * len(agreements)
    doubtful = [t for t, each in enumerate(agreements) if not _is_same(each)]
    if doubtful:
        whole = fit_both(case, seed, **{**changed, "ccp_alpha": 0.0})
        weights = _row_weights(case, seed, whole[1])
    for t in doubtful:
        pairs = [[_trees(model)[t].tree_ for model in pair] for pair in ((ours, theirs), whole)]
        data = cases.training(case, seed)
        X = data.X.toarray() if issparse(data.X) else data.X
        if case.model == "Bagging":
            X = X[:, theirs.estimators_features_[t]]
        exact = Training(X, data.y, weights(t), _trees(whole[1])[t])
        why = why_different if replays else _why_first
        verdicts[t] = _explain(*pairs, exact, case.params.get("ccp_alpha", 0.0), why)
    return verdicts, agreements


def _is_same(agreement):
    return agreement.first_rows is None and agreement.gap <= GAP


def _why_first(ours, theirs, exact):
    return first_difference(ours, theirs, exact).verdict


def _explain(pair, whole, exact, alpha, why):
    """Verdict on two trees that differ; pruned ones are judged unpruned, ours is pruned again."""
    structure = agree(*pair)
    if not structure.gap <= GAP and not all(has_medians(tree, exact) for tree in pair):
        return "wrong"
    if structure.first_rows is None:
        return "median"
    if alpha and not np.array_equal(prune(whole[0], alpha), pair[0].n_node_samples):
        return "wrong"
    if agree(*whole).first_rows is None:
        return "wrong"
    return why(*whole, exact)


def _row_weights(case, seed, theirs):
    """A function that returns the exact weight of every row in the t-th tree."""
    data, class_weight = cases.training(case, seed), case.params.get("class_weight")
    if case.model != "Bagging" and not getattr(theirs, "bootstrap", False):
        weight = row_weights(data.y, data.sample_weight, class_weight)
        return lambda t: weight
    within = class_weight if case.model == "Bagging" else None  # otherwise it weights the draws
    within = "balanced" if class_weight == "balanced_subsample" else within
    return lambda t: row_weights(data.y, None, within, theirs.estimators_samples_[t])


def _compare(case, seed):
    return judge(case, seed, *fit_both(case, seed))


def _trees(model):
    return getattr(model, "estimators_", [model])


def _grow_forests(name, criterion, seed):
    data = _load(name)
    n_estimators = 20 if len(data.X) > LARGE else 100
    pair = [
        Forest(n_estimators, criterion=criterion, random_state=seed).fit(data.X, data.y)
        for Forest in FORESTS[data.task]
    ]
    return agree_all(*map(_trees, pair)), [*judge_first(*pair, data.X, data.y)]


def judge_first(ours, theirs, X, y):
    """Judge, in exact arithmetic, the first difference of every pair of trees that differ.

    Parameters
    ----------
    ours, theirs : fitted trees, or forests of them, without weights
    X, y : ndarray
        The data they were fitted on.

    Yields
    ------
    str
        One of VERDICTS.
    """
    drawn = getattr(theirs, "estimators_samples_", [None])
    for one, other, rows in zip(_trees(ours), _trees(theirs), drawn, strict=True):
        if agree(one.tree_, other.tree_).first_rows is not None:
            exact = Training(X, y, row_weights(y, None, None, rows), other)
            yield _why_first(one.tree_, other.tree_, exact)


@cache
def _load(name):
    return distinct_friedman1(20_000, 10) if name == DISTINCT else datasets.load(name)


def _sum_up_forests(jobs, done):
    found = {}
    for (name, criterion, _), result in zip(jobs, done, strict=False):
        for kept, of_seed in zip(
            found.setdefault((name, criterion), ([], [])), result, strict=True
        ):
            kept.extend(of_seed)
    order = [*CLASSIFICATION, *REGRESSION, DISTINCT]
    return [
        {"data": name, "criterion": criterion, **summarize(*of_table)}
        for (name, criterion), of_table in sorted(
            found.items(), key=lambda item: order.index(item[0][0])
        )
    ]


def _sum_up_cases(matrix, done, n_seeds):
    rows = []
    for i, case in enumerate(matrix):
        mine = done[i * n_seeds : (i + 1) * n_seeds]
        verdicts = [v for found, _ in mine for v in found]
        summary = summarize([each for _, found in mine for each in found])
        row = case._asdict() | {"criterion": case.criterion}
        row["params"] = {k: v for k, v in case.params.items() if k != "criterion"}
        row |= {name: verdicts.count(name) for name in VERDICTS}
        row |= {name: summary[name] for name in ("trees", "nodes", "identical_nodes")}
        row |= {"largest_gap": summary["largest_gap"]}
        defaults = Case._field_defaults
        rows.append({k: v for k, v in row.items() if v and v != defaults.get(k)})
    return rows


def _sum_up_groups(rows):
    """Sums for every group and criterion, and the wrong cases: what is saved of the matrix."""
    groups = {}
    for row in rows:
        groups.setdefault((row["group"], row["criterion"]), []).append(row)
    counted = ("trees", "nodes", "identical_nodes", *VERDICTS)
    sums = [
        {"group": group, "criterion": criterion, "cases": len(mine)}
        | {name: sum(row.get(name, 0) for row in mine) for name in counted}
        | {"largest_gap": max(row.get("largest_gap", 0.0) for row in mine)}
        for (group, criterion), mine in groups.items()
    ]
    return {"groups": sums, "wrong": [row for row in rows if row.get("wrong")]}


def _small(gap):
    return f"{gap:.0e}" if gap else "0"


def _repeated(values):
    _, first = np.unique(values, return_index=True)
    return np.setdiff1d(np.arange(len(values)), first)


def _range(first):
    if not first:
        return "-"
    low, middle, high = first
    return str(low) if low == high else f"{low} to {high}, median {middle}"
