"""The voting benchmark: scores of the rules on fresh data, and their out-of-bag estimates."""

import numpy as np
from sklearn.datasets import make_classification, make_friedman1

import forest
from benchmarks.harness import display, results

SETS, QUICK_SETS = 20, 3
N_TRAIN, N_FRESH, N_ESTIMATORS = 400, 4000, 500
ERRORS_BAR, POINTS_BAR = 3.0, 0.01  # mean estimates may be off by the larger of both
RULES = {
    "classification": ("soft", "majority", "oob_weighted", "oob_weighted_soft", "stacked"),
    "regression": ("soft", "oob_weighted", "stacked"),
}


def run(args):
    """Score every rule on generated tables, out of bag and on fresh rows."""
    n_sets, n_estimators = (QUICK_SETS, 50) if args.quick else (SETS, N_ESTIMATORS)
    content = {"n_sets": n_sets, "n_estimators": n_estimators, "rows": []}
    plan = {
        task: [rule for rule in rules if rule == "soft" or args.only in f"{task} {rule}"]
        for task, rules in RULES.items()
    }
    with display.progress(n_sets * sum(map(len, plan.values()))) as step:
        for task, rules in plan.items():
            scores = {rule: [] for rule in rules}
            for seed in range(n_sets):
                for rule in rules:
                    step(f"{task}, {rule}")
                    scores[rule].append(_score(task, rule, seed, n_estimators))
                    step()
            content["rows"] += [_row(task, rule, scores) for rule in rules]
    display.show(table(content))
    results.keep(args, "voting", content)


def table(content):
    """The results as a table."""
    return display.Table(
        "Voting rules",
        ["target", "rule", "out of bag", "fresh rows", "difference", "reached", "more than soft"],
        [
            [
                row["task"],
                row["rule"],
                f"{row['out_of_bag']:.4f}",
                f"{row['fresh']:.4f}",
                f"{row['difference']:+.4f} ± {row['error']:.4f}",
                "yes" if row["reached"] else "no",
                f"{row['gain']:+.4f} ± {row['gain_error']:.4f}" if row["gain_error"] else "-",
            ]
            for row in content["rows"]
        ],
        f"Accuracy or R2, mean over {content['n_sets']} tables of {N_TRAIN} rows; "
        f"{content['n_estimators']} trees, {N_FRESH:,} fresh rows. The out-of-bag estimate may be "
        f"off by {ERRORS_BAR} standard errors, or {POINTS_BAR}.",
    )


def make_table(task, seed):
    """Training rows and fresh rows of one generated table.

    Returns
    -------
    X, X_fresh, y, y_fresh : ndarray
    """
    n = N_TRAIN + N_FRESH
    if task == "regression":
        X, y = make_friedman1(n, 10, noise=1.0 + 3 * (seed % 3), random_state=seed)
    else:
        X, y = make_classification(
            n, 12, n_informative=6, n_classes=4 - 2 * (seed % 2), class_sep=0.7, flip_y=0.1,
            random_state=seed,
        )  # fmt: skip
    return X[:N_TRAIN], X[N_TRAIN:], y[:N_TRAIN], y[N_TRAIN:]


def _score(task, rule, seed, n_estimators):
    """Score out of bag, and on fresh rows."""
    X, X_fresh, y, y_fresh = make_table(task, seed)
    kind = {
        "classification": forest.RandomForestClassifier,
        "regression": forest.RandomForestRegressor,
    }[task]
    model = kind(n_estimators, random_state=seed, voting=rule, oob_score=True).fit(X, y)
    return model.oob_score_, model.score(X_fresh, y_fresh)


def _row(task, rule, scores):
    out_of_bag, fresh = np.array(scores[rule]).T
    difference, error = _mean(out_of_bag - fresh)
    gain, gain_error = _mean(fresh - np.array(scores["soft"])[:, 1])
    return {
        "task": task, "rule": rule, "out_of_bag": out_of_bag.mean(), "fresh": fresh.mean(),
        "difference": difference, "error": error, "gain": gain, "gain_error": gain_error,
        "reached": bool(abs(difference) <= max(ERRORS_BAR * error, POINTS_BAR)),
    }  # fmt: skip


def _mean(x):
    """Mean and its standard error."""
    return x.mean(), x.std(ddof=1) / np.sqrt(len(x))
