"""The identity benchmark: the share of trees and nodes that are scikit-learn's."""

import numpy as np

from benchmarks import datasets, display, results
from benchmarks.agreement import agree_all, summarize
from benchmarks.sides import FORESTS

CLASSIFICATION = (
    "iris", "wine", "breast_cancer", "digits",
    "classification:20000x20", "classification:20000x20x10",
)  # fmt: skip
REGRESSION = ("diabetes", "california", "regression:20000x10")
CRITERIA = {"classification": ("gini", "entropy"), "regression": ("squared_error",)}
LARGE = 10_000  # rows from which on forests have 20 trees instead of 100


def run(args):
    """Grow both sides' forests on every set and say how far they agree."""
    found, left_out = datasets.load_found(CLASSIFICATION + REGRESSION)
    cases = [
        (data, criterion)
        for data in [*found, distinct_friedman1(20_000, 10)]
        for criterion in CRITERIA[data.task]
    ]
    seeds = range(1 if args.quick else 5)
    rows = []
    with display.progress(len(cases) * len(seeds)) as step:
        for data, criterion in cases:
            agreements = []
            for seed in seeds:
                step(f"{data.name}, {criterion}")
                agreements += _grow_both(data, criterion, seed)
                step()
            rows.append({"data": data.name, "criterion": criterion, **summarize(agreements)})
    content = {"seeds": len(seeds), "rows": rows}
    display.show(table(content))
    display.say(*left_out)
    if not args.quick:
        display.say(f"wrote {results.save('identity', content)}")


def table(content):
    """The results as a table."""
    return display.Table(
        f"Identity with scikit-learn's forests ({content['seeds']} seeds)",
        ["data", "criterion", "trees", "identical\ntrees", "identical\nnodes",
         "rows of the node at\nthe first difference", "largest gap of\nimpurity or value"],
        [
            [
                row["data"],
                row["criterion"],
                str(row["trees"]),
                display.share(row["identical_trees"], row["trees"]),
                display.share(row["identical_nodes"], row["nodes"]),
                _range(row["first_difference_rows"]),
                f"{row['largest_gap']:.0e}" if row["largest_gap"] else "0",
            ]
            for row in content["rows"]
        ],
        "A node is identical if its feature, threshold (bit for bit) and number of rows are, and "
        "those of all nodes above it. The gap is the largest difference of impurity or value in "
        "identical nodes, relative to the tree's largest.",
    )  # fmt: skip


def distinct_friedman1(n_samples, n_features):
    """make_friedman1 without values that are equal in single precision.

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
    name = f"regression:{n_samples}x{n_features}, distinct values"
    return datasets.Dataset(name, "regression", X, y, [f"x{j}" for j in range(n_features)])


def _grow_both(data, criterion, seed):
    n_estimators = 20 if len(data.X) > LARGE else 100
    ours, theirs = (
        Forest(n_estimators, criterion=criterion, random_state=seed, n_jobs=-1)
        .fit(data.X, data.y)
        .estimators_
        for Forest in FORESTS[data.task]
    )
    return agree_all(ours, theirs)


def _repeated(values):
    _, first = np.unique(values, return_index=True)
    return np.setdiff1d(np.arange(len(values)), first)


def _range(first):
    if not first:
        return "-"
    low, middle, high = (int(np.quantile(first, q, method="lower")) for q in (0, 0.5, 1))
    return str(low) if low == high else f"{low} to {high}, median {middle}"
