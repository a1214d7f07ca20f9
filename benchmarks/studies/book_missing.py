"""Missing values at prediction: surrogates against the learned side, the majority and the mean."""

import numpy as np

from benchmarks.harness import datasets, display, results
from forest import RandomForestClassifier, RandomForestRegressor

SEEDS, N_TREES, MOST_ROWS = 10, 20, 2_000
SHARES = (0.1, 0.3, 0.5)
HOW = ("at random", "where another is high")
TABLES = ("breast_cancer", "california")
RULES = {
    "surrogates": {"missing": "surrogate", "surrogates": 5},
    "learned": {"missing": "learned"},
    "majority": {"missing": "majority"},
    "mean": {"missing": "learned"},  # filled in with the means of the training rows
}
WORSE_BAR, BETTER_BAR = 2.0, 3.0  # standard errors of the paired difference from majority


def run(args):
    """Score forests fitted on complete rows; `args.only` selects tables and kinds of removal."""
    n_seeds = 2 if args.quick else SEEDS
    cells = [
        (name, how, share) for name in TABLES for how in HOW for share in SHARES
        if args.only in f"{name} {how}"
    ]  # fmt: skip
    scores = {cell: [] for cell in cells}
    for name in dict.fromkeys(cell[0] for cell in cells):
        data = datasets.load(name)
        X, y = np.asarray(data.X, dtype=np.float64), np.asarray(data.y)
        for seed in range(n_seeds):
            rng = np.random.default_rng(seed)
            rows = rng.permutation(len(y))[:MOST_ROWS]
            train, test = np.split(rows, [len(rows) // 2])
            models = _fit(data.task, X[train], y[train], seed)
            for cell in cells:
                if cell[0] == name:
                    thinned = remove(X[test], cell[1], cell[2], rng)
                    scores[cell].append(_scores(models, thinned, y[test], X[train].mean(axis=0)))
    content = {"missing": [_row(*cell, np.array(found)) for cell, found in scores.items()]}
    display.show(table(content))
    results.keep(args, "book_missing", content)


def table(content):
    """Table of the scores of every rule, and whether both claims hold."""
    return display.Table(
        "The book: values that are missing at predict",
        ["removed", *RULES, "surrogates - majority", "not worse", "better"],
        [
            [
                f"{row['name']}, {row['how']}, {row['share']}",
                *(f"{row[rule]:.3f} ± {row[rule + '_error']:.3f}" for rule in RULES),
                f"{row['gain']:+.4f} ± {row['gain_error']:.4f}",
                row["not_worse"],
                row["better"],
            ]
            for row in content["missing"]
        ],
        f"Accuracy or R2 on the held-out half, mean ± standard error over {SEEDS} seeds; forests "
        f"of {N_TREES} trees, fitted on complete rows, at most {MOST_ROWS:,} rows of a table. "
        f"'Not worse': worse by at most {WORSE_BAR:.0f} standard errors of the paired difference; "
        f"'better': better by more than {BETTER_BAR:.0f}. 'Where another is high': a feature's "
        "cells are removed in the rows with the highest values of the next feature.",
    )


def remove(X, how, share, rng):
    """X with a share of its cells removed, (n_rows, n_features)."""
    thinned = X.copy()
    if how == "at random":
        thinned[rng.random(X.shape) < share] = np.nan
        return thinned
    n_gone = round(share * len(X))
    for j in range(X.shape[1]):
        other = X[:, (j + 1) % X.shape[1]]
        thinned[np.argsort(-other, kind="stable")[:n_gone], j] = np.nan
    return thinned


def _fit(task, X, y, seed):
    kind = RandomForestClassifier if task == "classification" else RandomForestRegressor
    return {
        rule: kind(N_TREES, random_state=seed, min_samples_leaf=2, **params).fit(X, y)
        for rule, params in RULES.items()
    }


def _scores(models, X, y, means):
    filled = np.where(np.isnan(X), means, X)
    return [model.score(filled if rule == "mean" else X, y) for rule, model in models.items()]


def _row(name, how, share, scores):
    mean, error = scores.mean(axis=0), _error(scores)
    difference = scores[:, 0] - scores[:, 2]
    gain, gain_error = difference.mean(), _error(difference)
    row = {"name": name, "how": how, "share": f"{share:.0%}"}
    for i, rule in enumerate(RULES):
        row |= {rule: mean[i], f"{rule}_error": error[i]}
    return row | {
        "gain": gain, "gain_error": gain_error,
        "not_worse": "yes" if gain >= -WORSE_BAR * gain_error else "no",
        "better": "yes" if gain > BETTER_BAR * gain_error else "no",
    }  # fmt: skip


def _error(x):
    return x.std(axis=0, ddof=1) / np.sqrt(len(x))
