"""The comparison: both sides on the same table with the same seed, in one run."""

import warnings
from functools import partial
from itertools import islice

import numpy as np
from sklearn.metrics import accuracy_score, r2_score

from benchmarks.compare import measures, report
from benchmarks.harness import datasets, display, results
from benchmarks.harness.sides import FORESTS, TREES
from benchmarks.harness.timing import n_runs, race
from benchmarks.identity.agreement import agree, agree_all, summarize
from benchmarks.identity.run import judge_first

DEMO = ("breast_cancer", "diabetes", "california")
SCORES = {"classification": ("accuracy", accuracy_score), "regression": ("R2", r2_score)}
NEVER_OUT_OF_BAG = ".*(never out of bag|do not have OOB scores)"


def run(args):
    """Compare on every dataset that is asked for, and report."""
    if args.data is None:
        found, left_out = datasets.load_found(DEMO)
    else:
        found, left_out = [datasets.load(n, args.target, args.task) for n in args.data], []
    for data in found:
        steps = 4 * n_runs(args.repeats) + measures.n_steps(data.X.shape[1])
        with display.progress(steps) as step:
            warnings.filterwarnings("ignore", NEVER_OUT_OF_BAG)  # the report mentions it
            result = compare(data, args.n_estimators, args.seed, args.n_jobs, args.repeats, step)
        report.show(result)
        display.say(*(f"wrote {path}" for path in report.write(result, args.out)), "")
    display.say(*left_out)


def compare(data, n_estimators, seed, n_jobs, repeats, step):
    """Fit both sides' forests and trees; compare models, scores, times and importances.

    Parameters
    ----------
    data : Dataset
    n_estimators, seed, n_jobs : int
        Of both forests; the seed is also that of the split.
    repeats : int
        How often each timing is taken.
    step : callable
        See `display.progress`.

    Returns
    -------
    dict
        Of plain values, except "all_measures".
    """
    split = X, X_test, y, y_test = data.split(seed)
    score, score_of = SCORES[data.task]
    forests = [
        Forest(n_estimators, oob_score=True, random_state=seed, n_jobs=n_jobs)
        for Forest in FORESTS[data.task]
    ]
    trees = [Tree(random_state=seed) for Tree in TREES[data.task]]
    seconds = _race_all(forests, trees, split, repeats, step)
    importances, found, taken = measures.measure_all(data, *forests, split, step)
    return {
        "data": {
            "name": data.name,
            "task": data.task,
            "features": data.feature_names,
            "rows": len(data.X),
            "rows_fitted": len(X),
            "rows_held_out": len(X_test),
        },
        "parameters": {"n_estimators": n_estimators, "seed": seed, "n_jobs": n_jobs},
        "score": score,
        "loss": measures.LOSS[data.task],
        "forest": {
            **summarize(
                agree_all(*(model.estimators_ for model in forests)), _first_verdict(forests, X, y)
            ),
            "test": [score_of(y_test, model.predict(X_test)) for model in forests],
            "never_out_of_bag": _never_out_of_bag(forests[0]),
            "oob": [model.oob_score_ for model in forests],
        },
        "tree": {
            **summarize([agree(*(model.tree_ for model in trees))], _first_verdict(trees, X, y)),
            "test": [score_of(y_test, model.predict(X_test)) for model in trees],
        },
        "seconds": seconds + _once(taken),
        "importances": [measure._asdict() for measure in importances],
        "all_measures": found,
        "environment": results.environment(),
    }


def _race_all(forests, trees, split, repeats, step):
    """Seconds of fit and predict; the models stay fitted."""
    X, X_test, y, _ = split
    rows = f"{len(X_test):,} rows"
    races = (
        ("fit forest with its OOB score", forests, lambda model: model.fit(X, y)),
        (f"predict {rows}, forest", forests, lambda model: model.predict(X_test)),
        ("fit tree", trees, lambda model: model.fit(X, y)),
        (f"predict {rows}, tree", trees, lambda model: model.predict(X_test)),
    )
    seconds = []
    for work, models, call in races:
        step(work)
        times = race(*([partial(call, model)] for model in models), repeats, step)
        seconds.append({"work": work, **times._asdict(), "repeats": repeats})
    return seconds


def _first_verdict(models, X, y):
    """Verdict on the first tree that differs; to judge all of them would take too long."""
    return [*islice(judge_first(*models, X, y), 1)]


def _never_out_of_bag(forest):
    """Number of training rows that are in the bag of every tree."""
    name = "oob_decision_function_" if hasattr(forest, "classes_") else "oob_prediction_"
    votes = getattr(forest, name)
    return int(np.isnan(votes.reshape(len(votes), -1)[:, 0]).sum())


def _once(taken):
    """Seconds of the pairs of corresponding measures, from their single run."""
    pairs = (("oob_permutation", "permutation_importance"), ("drop_column", "drop-column loop"))
    return [
        {"work": f"{a} / {b}", "ours": taken[a], "peer": taken[b], "repeats": 1} for a, b in pairs
    ]
