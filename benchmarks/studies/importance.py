"""The importance benchmark: measures compared with their definitions, and their times."""

from copy import copy
from functools import partial

import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris
from sklearn.inspection import permutation_importance

from benchmarks.compare.measures import drop_column_loop
from benchmarks.harness import datasets, display, results
from benchmarks.harness.sides import FORESTS
from benchmarks.harness.timing import race
from benchmarks.oracles import permutation as oracle
from benchmarks.studies import calibration
from benchmarks.studies.importance_designs import noise_bias, strobl_2008
from forest import RandomForestRegressor
from importance import conditional_permutation, drop_column, oob_permutation

JOBS = (1, 2)  # each side takes the better one
EXACT = 1e-10  # largest gap that counts as equal
FITS_BAR = 2.0  # time that permuting all features may take, in fits of the same forest
PEER_BAR = 10.0
SPEED = ("california", "breast_cancer", "digits", "classification:2000x2000")
DROP_BARS = {"breast_cancer": 5.0, "california": 2.0}
LOSSES = {
    "classification": ("zero_one", "brier"),
    "regression": ("squared_error", "absolute_error", "poisson"),
}


def run(args):
    """Check the definitions, then time; calibration has its own command."""
    content = {"correctness": [], "speed": []}
    checks = (_check_permutation, _check_noise, _check_conditional, _check_copies)
    names = [name for name in SPEED if not args.quick or name in ("breast_cancer", "digits")]
    found, left_out = datasets.load_found(names)
    with display.progress(len(checks) + len(found)) as step:
        for check in checks:
            step(check.__name__.removeprefix("_check_"))
            content["correctness"] += check(args.quick)
            step()
        for data in found:
            step(data.name)
            content["speed"] += _time(data, 1 if args.quick else 3)
            step()
    display.show(table(content))
    display.show(speed_table(content))
    if (kept := results.load("calibration")) is not None:
        display.show(calibration.table(kept))
    display.say(*left_out)
    results.keep(args, "importance", content)


def table(content):
    """Table of the checks against definitions."""
    return display.Table(
        "Importances against their definitions",
        ["what", "found", "bar", "reached"],
        [
            [row["what"], row["found"], row["bar"], "yes" if row["reached"] else "no"]
            for row in content["correctness"]
        ],
        "SE: standard error. The designs are those of Strobl et al. (2007, 2008).",
    )


def speed_table(content):
    """Table of the times of importances."""
    return display.Table(
        "Time of importances",
        ["what", "Cartwood", "against", "ratio", "bar", "reached"],
        [
            [
                row["what"],
                display.seconds(row["ours"]),
                f"{display.seconds(row['peer'])} {row['against']}",
                display.ratio(row["peer"] / row["ours"]),
                display.ratio(row["bar"]),
                "yes" if row["peer"] >= row["bar"] * row["ours"] else "no",
            ]
            for row in content["speed"]
        ],
        "100 trees. Medians of alternating runs (drop column: one run), each side at its better "
        "of n_jobs=1 and 2. scikit-learn: permutation_importance(n_repeats=5) on a held-out "
        "quarter, and a loop of refits. A ratio of 0.5 against one fit of the same forest means "
        "the time of two fits.",
    )


def _check_permutation(quick):
    """Compare the exact form with all donors, one after another."""
    rows = []
    for task, losses in LOSSES.items():
        X, y = (load_iris if task == "classification" else load_diabetes)(return_X_y=True)
        chosen = np.random.RandomState(0).permutation(len(y))[: 40 if quick else 100]
        X, y = X[chosen].astype(np.float32), y[chosen]
        forest = FORESTS[task][0](3, random_state=0).fit(X, y)
        for loss in losses:
            found = oob_permutation(forest, X, y, loss=loss).per_tree
            scale = np.abs(found).max()
            gap = 0.0
            for t, draws in enumerate(forest.estimators_samples_):
                out, tree = oracle.out_of_bag(draws, len(X)), forest.estimators_[t].tree_
                for j in range(X.shape[1]):
                    expected = oracle.every_donor(tree, X[out], y[out], loss, [j]).mean()
                    gap = max(gap, abs(found[t, j] - expected) / scale)
            rows.append(
                {
                    "what": f"exact permutation, {loss}: largest gap to all donors",
                    "found": f"{gap:.0e}", "bar": f"{EXACT:.0e}", "reached": gap <= EXACT,
                }
            )  # fmt: skip
    return rows


def _check_noise(quick):
    """Check that UFI of noise is 0 on average, while MDI is not."""
    rows = []
    for n_classes, task in ((2, "classification"), (1, "regression")):
        found = noise_bias(20 if quick else 200, n_classes=n_classes)
        for name, is_zero in (("ufi", True), ("mdi", False)):
            z = np.abs(found.z_score(getattr(found, name)))
            extreme = z.max() if is_zero else z.min()
            rows.append(
                {
                    "what": f"{name.upper()} of noise, {task}, {len(found.mdi)} tables",
                    "found": f"{'at most' if is_zero else 'at least'} {extreme:.1f} SE from 0",
                    "bar": "within 3 SE" if is_zero else "beyond 3 SE",
                    "reached": extreme <= 3 if is_zero else extreme > 3,
                }
            )
    return rows


def _check_conditional(quick):
    """Check conditional permutation on the design of Strobl et al. (2008)."""
    n, n_trees = (200, 50) if quick else (600, 500)
    X, y = strobl_2008(n, np.random.RandomState(0))
    # Leaves of 15 rows: in deeper trees hardly any row shares its cell with another.
    forest = RandomForestRegressor(
        n_trees, max_features=8, min_samples_leaf=15, random_state=0, n_jobs=2
    ).fit(X, y)
    free = oob_permutation(forest, X, y, n_jobs=2).values
    alike = conditional_permutation(forest, X, y, n_jobs=2)
    needed = [0, 1, 4, 5]
    z = (alike.values / alike.standard_error)[needed].min()
    return [
        {
            "what": "conditional permutation: x4, of coefficient 0, against free permutation",
            "found": f"{alike.values[3] / free[3]:.0%}", "bar": "at most 50%",
            "reached": bool(alike.values[3] <= free[3] / 2),
        },
        {
            "what": "conditional permutation: x1, x2, x5 and x6 stay above x4, and above 0",
            "found": f"{z:.1f} SE, {alike.values[needed].min() / alike.values[3]:.1f} times x4",
            "bar": "5 SE", "reached": bool(z >= 5 and alike.values[needed].min() > alike.values[3]),
        },
    ]  # fmt: skip


def _check_copies(quick):
    """Check a copied column: the group keeps its value, and the copies share it."""
    n, n_trees = (200, 50) if quick else (500, 300)
    rng = np.random.RandomState(0)
    X = rng.normal(size=(n, 4))
    y = X @ [2.0, 1.0, 0.5, 0.0] + rng.normal(size=n)
    forest = RandomForestRegressor(n_trees, random_state=0, n_jobs=2)
    alone = oob_permutation(clone(forest).fit(X, y), X, y, n_jobs=2)
    X = np.column_stack((X, X[:, 0]))
    forest.fit(X, y)
    both = oob_permutation(forest, X, y, groups={"both": [0, 4]}, n_jobs=2)
    each = oob_permutation(forest, X, y, n_jobs=2).values[[0, 4]]
    error = np.hypot(alone.errors["over trees"][0], both.errors["over trees"][0])
    z = abs(both.values[0] - alone.values[0]) / error
    return [
        {
            "what": "a column and its copy, permuted together, against the column alone",
            "found": f"{z:.1f} SE apart", "bar": "within 3 SE", "reached": bool(z <= 3),
        },
        {
            "what": "each copy's own value, against the column alone",
            "found": f"{each.max() / alone.values[0]:.0%} at most", "bar": "less",
            "reached": bool(each.max() < alone.values[0]),
        },
    ]  # fmt: skip


def _time(data, repeats):
    """Time permutation against fits and scikit-learn, and drop column against a loop."""
    ours, peer = FORESTS[data.task]
    X, X_test, y, y_test = data.split(seed=0)
    forest, theirs = (Forest(random_state=0, n_jobs=2).fit(X, y) for Forest in (ours, peer))
    permute = [partial(oob_permutation, forest, X, y, n_jobs=k) for k in JOBS]
    fit = [partial(ours(random_state=0, n_jobs=k).fit, X, y) for k in JOBS]
    what = f"permutation of {X.shape[1]:,} features, {data.name}"
    rows = [_row(what, permute, fit, "one fit", 1 / FITS_BAR, repeats)]
    if X.shape[1] <= 100:
        alone = copy(theirs).set_params(n_jobs=1)
        sampled = partial(permutation_importance, X=X_test, y=y_test, n_repeats=5, random_state=0)
        peers = [partial(sampled, alone, n_jobs=k) for k in JOBS] + [partial(sampled, theirs)]
        rows.append(_row(what, permute, peers, "scikit-learn", PEER_BAR, repeats))
    if data.name in DROP_BARS:
        loops = [
            partial(drop_column_loop, clone(theirs).set_params(n_jobs=k, oob_score=True).fit(X, y),
                    X, y, lambda: None)
            for k in JOBS
        ]  # fmt: skip
        drop = [partial(drop_column, forest, X, y, n_jobs=k) for k in JOBS]
        what = f"drop column of {X.shape[1]} features, {data.name}"
        rows.append(_row(what, drop, loops, "scikit-learn", DROP_BARS[data.name], 1))
    return rows


def _row(what, ours, peer, against, bar, repeats):
    times = race(ours, peer, repeats)
    return {"what": what, "against": against, "bar": bar, **times._asdict()}
