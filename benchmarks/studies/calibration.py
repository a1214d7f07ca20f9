"""The calibration benchmark: whether p-values and intervals of importances keep their promises.

Every random seed derives from the number of a study and a set, fixed here before the first run.
"""

from functools import partial
from itertools import product

import numpy as np
from joblib import Parallel, delayed

from benchmarks.harness import display, results
from benchmarks.harness.timing import race
from benchmarks.studies.interval_designs import DESIGNS
from forest import RandomForestClassifier, RandomForestRegressor
from importance import (
    conditional_test,
    held_out_permutation,
    oob_permutation,
    over_data,
    permutation_test,
    unbiased_mdi,
)
from importance.core.fitted_forest import check_forest, names_of
from importance.core.groups import parse_groups
from importance.core.losses import choose_loss
from importance.inference.shadow import CONFIRMED, decide, measure_with_shadows
from importance.permutation.tree_level import Options, evaluate_trees

SETS, QUICK_SETS = 500, 6
TASKS = {"classification": "brier", "regression": "squared_error"}
ALPHA = 0.05
# Numbers of the studies and their parts, for seeds.
P_VALUES, SELECTION, OVER_DATA, TRUTH, OVER_TREES, DOUBLING = 11, 12, 13, 14, 15, 16
ROWS_ONLY, BESIDE, ELSEWHERE, OFF_CENTRE = 17, 18, 19, 20

NULL_ROWS, NULL_FEATURES, NULL_TREES, REPEATS = 50, 5, 5, 199
SELECTION_ROUNDS, SELECTION_TREES = 49, 50
SELECTION_SHARE = 5  # one table per so many of the other studies: rounds have many trees
ROWS, TREES, SUBSAMPLES = 200, 25, 30
TRUTH_FORESTS, TRUTH_ROWS = 2000, 500  # 10^6 rows in total
COVERAGE = (0.92, 0.98)
MANY_TREES, MANY_TREES_TABLES, TREES_ROWS = 20_000, 25, 100
# Intervals from the rows: rows, trees, and the share of the tables.
SIZES = ((100, 50, 1.0), (300, 50, 0.5), (1000, 50, 0.3), (100, 200, 0.5), (300, 200, 0.3))
NOISE_SETS, MOST_ABOVE = 20, 0.04
BESIDE_ROWS, BESIDE_REPEATS = 100, 59
# Targets that are noise: shares of classes, or an offset of normal numbers.
OFF = {
    "classification": {
        "70, 20, 10 %": (0.7, 0.2, 0.1),
        "90, 10 %": (0.9, 0.1),
        "halves": (0.5, 0.5),
    },
    "regression": {"y + 10": 10.0, "y": 0.0},
}
COST_SIZES, COST_TREES, COST_REPEATS, MOST_COST = (300, 3000, 30_000), 100, 15, 0.5
DOUBLING_SLACK = 0.1  # relative, in the variance over data and in the ratio of those over trees


def run(args):
    """Run the studies, each on `n_sets` tables per task; studies not run keep their results."""
    n_sets = QUICK_SETS if args.quick else args.sets
    studies = {
        "p-values": study_p_values,
        "selection": study_selection,
        "over data": study_over_data,
        "over trees": study_over_trees,
        "twice the trees": study_doubling,
        "rows": study_rows,
        "elsewhere": study_elsewhere,
        "cost": study_cost,
        "off centre": study_off_centre,
        "beside signals": study_beside,
    }
    with Parallel(args.n_jobs) as parallel:
        for (name, study), task in product(studies.items(), TASKS):
            if args.only not in f"{name} {task}":
                continue
            found = study(task, n_sets, parallel, args.quick)
            rows = [{"study": name, "task": task, "n_sets": n_sets, **row} for row in found]
            display.show(table({"rows": rows}))
            if not args.quick:
                _keep(rows, list(studies))
    if not args.quick:
        display.say("kept in benchmarks/results/calibration.json")


def _keep(rows, studies):
    """Replace the saved results of one study and task."""
    kept = (results.load("calibration") or {"rows": []})["rows"]
    done = {(row["study"], row["task"]) for row in rows}
    rows = rows + [row for row in kept if (row["study"], row["task"]) not in done]
    rows.sort(key=lambda row: (studies.index(row["study"]), row["task"]))
    results.save("calibration", {"rows": rows})


def table(content):
    """The results as a table."""
    return display.Table(
        "Calibration of importances",
        ["study", "target", "tables", "what", "found", "bar", "reached"],
        [
            [
                row["study"],
                row["task"],
                str(row["n_sets"]),
                row["what"],
                row["found"],
                row["bar"] or "-",
                {True: "yes", False: "no", None: "-"}[row["reached"]],
            ]
            for row in content["rows"]
        ],
        "Generated tables; Brier score or squared error. P-values and selection: "
        f"{NULL_ROWS} rows, {NULL_FEATURES} uninformative features, {REPEATS} refits of "
        f"{NULL_TREES} trees, {SELECTION_ROUNDS} rounds of {SELECTION_TREES} trees. Over data: "
        f"{ROWS} rows, {TREES} trees, {SUBSAMPLES} subsamples; the truth is the mean of "
        f"{TRUTH_FORESTS:,} forests on fresh tables, on {TRUTH_FORESTS * TRUTH_ROWS:,} fresh rows "
        f"in all. Over trees: the truth is the value by {MANY_TREES:,} trees on the same table. "
        "Rows: default intervals, without refits; the truth is the mean over the tables.",
    )


# ------------------------------------------------------------------------------------ designs


def stream_of(*numbers):
    """The random stream of a study, a task and a set."""
    return np.random.default_rng(numbers)


def make_null(task, rng, n=NULL_ROWS):
    """A table without information."""
    X = rng.normal(size=(n, NULL_FEATURES)).astype(np.float32)
    y = rng.permutation(n) % 2 if task == "classification" else rng.normal(size=n)
    return X, y


def make_table(task, rng, n=ROWS):
    """Three features with information, one correlated with the first of them, two of noise."""
    X = rng.normal(size=(n, 6))
    X[:, 3] = 0.7 * X[:, 0] + np.sqrt(0.51) * X[:, 3]
    mean = 2 * X[:, 0] + X[:, 1] + 0.5 * X[:, 2]
    if task == "classification":
        return X.astype(np.float32), (mean + rng.logistic(size=n) > 0).astype(int)
    return X.astype(np.float32), mean + rng.normal(size=n)


def fit(task, X, y, seed, n_trees):
    """Fit a default forest."""
    kind = RandomForestClassifier if task == "classification" else RandomForestRegressor
    return kind(n_trees, random_state=int(seed), n_jobs=1).fit(X, y)


def seed_of(rng):
    """Draw a `random_state`."""
    return int(rng.integers(2**31))


def number_of(task):
    """Position of a task, for seeds."""
    return list(TASKS).index(task)


def row(what, found, bar="", reached=None, **figures):
    """A row of the results."""
    reached = None if reached is None else bool(reached)
    return {"what": what, "found": found, "bar": bar, "reached": reached, **figures}


def coverage_row(what, inside, **figures):
    """A row on the share of 95 % intervals that cover the truth."""
    low, high = COVERAGE
    share = inside.mean()
    return row(what, f"{share:.1%}", f"{low:.0%} to {high:.0%}", low <= share <= high, **figures)


def is_inside(intervals, truth):
    """Which intervals cover the truth."""
    return (intervals[..., 0] <= truth) & (truth <= intervals[..., 1])


def inside_mean(parallel, measure, n_tables, *design):
    """Which intervals of tables cover the mean value over the tables; by table and feature."""
    found = parallel(delayed(measure)(*design, i) for i in range(n_tables))
    values, intervals = map(np.array, zip(*found, strict=True))
    return is_inside(intervals, values.mean(axis=0))


def hits_among(model, X, y, rng):
    """In how many rounds every feature is above all shadows."""
    rounds, shadow_rounds, _ = measure_with_shadows(
        model, X, y, None, SELECTION_ROUNDS, seed_of(rng), None, 0, None
    )
    return (rounds > shadow_rounds.max(axis=1, keepdims=True)).sum(axis=0)


def most_false(n_sets):
    """Upper bound on false rejections among n_sets at level ALPHA, one-sided at 99 %."""
    from scipy.stats import binom

    return int(binom.ppf(0.99, n_sets, ALPHA))


# ------------------------------------------------------------------------------------ p-values


def p_values_of(task, i):
    """P-values and family-wise p-values of one table without information."""
    rng = stream_of(P_VALUES, number_of(task), i)
    X, y = make_null(task, rng)
    model = fit(task, X, y, seed_of(rng), NULL_TREES)
    found = permutation_test(model, X, y, n_repeats=REPEATS, random_state=seed_of(rng))
    return found.p_values, found.family_wise


def study_p_values(task, n_sets, parallel, quick=False):
    """Under the global null: p-values of one designated feature per set, and family-wise error."""
    from scipy.stats import kstest

    found = parallel(delayed(p_values_of)(task, i) for i in range(n_sets))
    p_values, family_wise = map(np.array, zip(*found, strict=True))
    designated = p_values[np.arange(n_sets), np.arange(n_sets) % NULL_FEATURES]
    ks = kstest(designated, "uniform").pvalue
    n_small, n_any = (designated <= ALPHA).sum(), (family_wise.min(axis=1) <= ALPHA).sum()
    most = most_false(n_sets)
    return [
        row("uniform: Kolmogorov-Smirnov p", f"{ks:.3f}", "> 0.01", ks > 0.01,
            tenths=np.histogram(designated, 10, (0.0, 1.0))[0]),
        row(f"p <= {ALPHA} of the designated feature", f"{n_small} of {n_sets}",
            f"<= {most}", n_small <= most),
        row(f"family-wise p <= {ALPHA} of any feature", f"{n_any} of {n_sets}",
            f"<= {most}", n_any <= most),
    ]  # fmt: skip


def hits_of(task, i):
    """Hits of every feature on one table without information."""
    rng = stream_of(SELECTION, number_of(task), i)
    X, y = make_null(task, rng)
    return hits_among(fit(task, X, y, seed_of(rng), SELECTION_TREES), X, y, rng)


def study_selection(task, n_sets, parallel, quick=False):
    """How often select_features confirms a feature of a table without information."""
    n_sets = max(1, n_sets // SELECTION_SHARE)
    hits = parallel(delayed(hits_of)(task, i) for i in range(n_sets))
    most, rows = most_false(n_sets), []
    for method in ("maximum", "boruta"):
        decisions = [decide(h, SELECTION_ROUNDS, ALPHA, method)[1] for h in hits]
        n_any = sum((decision == CONFIRMED).any() for decision in decisions)
        bar = f"<= {most}" if method == "maximum" else ""
        rows.append(
            row(f"any feature confirmed, method={method}",
                f"{n_any} of {n_sets}", bar, n_any <= most if bar else None, n_sets=n_sets)
        )  # fmt: skip
    return rows


# ------------------------------------------------------------------------------------ intervals


def true_importance(task, i):
    """Importance of a forest fitted on a fresh table, measured on fresh rows."""
    rng = stream_of(TRUTH, number_of(task), i)
    model = fit(task, *make_table(task, rng), seed_of(rng), TREES)
    return held_out_permutation(model, *make_table(task, rng, TRUTH_ROWS), loss=TASKS[task]).values


def interval_of(task, i):
    """Values, their standard errors over data, and intervals, on one table."""
    rng = stream_of(OVER_DATA, number_of(task), i)
    X, y = make_table(task, rng)
    model = fit(task, X, y, seed_of(rng), TREES)
    found = over_data(model, X, y, n_subsamples=SUBSAMPLES, random_state=seed_of(rng))
    return found.values, found.errors["over data"], found.interval(over="over data")


def study_over_data(task, n_sets, parallel, quick=False):
    """Coverage of the mean importance of forests on fresh tables, by intervals over data."""
    n_forests = 100 if quick else TRUTH_FORESTS
    drawn = np.array(parallel(delayed(true_importance)(task, i) for i in range(n_forests)))
    truth = drawn.mean(axis=0)
    found = parallel(delayed(interval_of)(task, i) for i in range(n_sets))
    values, errors, intervals = map(np.array, zip(*found, strict=True))
    inside = is_inside(intervals, truth)
    figures = {
        "truth": truth, "truth_error": drawn.std(axis=0) / np.sqrt(n_forests),
        "deviation": values.std(axis=0), "error": errors.mean(axis=0), "mean": values.mean(axis=0),
    }  # fmt: skip
    return [coverage_row("95 % intervals that cover", inside, **figures), by_feature_row(inside)]


def by_feature(inside):
    """Shares of intervals that cover the truth in per cent, one per feature."""
    return ", ".join(f"{share:.1%}" for share in inside.mean(axis=0))


def by_feature_row(inside):
    """A row on these shares."""
    return row("by feature", by_feature(inside), coverage=inside.mean(axis=0))


def tree_intervals_of(task, i, n_forests, n_trees):
    """Which intervals over trees cover the value of very many trees, on one table."""
    rng = stream_of(OVER_TREES, number_of(task), i)
    X, y = make_table(task, rng, TREES_ROWS)

    def measure(n):
        return oob_permutation(fit(task, X, y, seed_of(rng), n), X, y, loss=TASKS[task])

    truth = np.mean([measure(1000).values for _ in range(n_trees // 1000)], axis=0)
    intervals = np.array([measure(TREES).interval(over="over trees") for _ in range(n_forests)])
    return is_inside(intervals, truth)


def study_over_trees(task, n_sets, parallel, quick=False):
    """Coverage of the value of 20,000 trees on the same table, by intervals over trees."""
    n_tables = 2 if quick else MANY_TREES_TABLES
    n_forests = max(1, n_sets // n_tables)
    n_trees = 2000 if quick else MANY_TREES
    inside = np.concatenate(
        parallel(delayed(tree_intervals_of)(task, i, n_forests, n_trees) for i in range(n_tables))
    )
    what = f"95 % intervals that cover, {n_tables} tables"
    return [coverage_row(what, inside), by_feature_row(inside)]


def doubled(task, i, n_trees):
    """Values and squared standard errors over trees, for n_trees on one table."""
    rng = stream_of(DOUBLING, number_of(task), i)
    X, y = make_table(task, rng)
    model = fit(task, X, y, seed_of(rng), n_trees)
    found = oob_permutation(model, X, y, loss=TASKS[task])
    return found.values, found.errors["over trees"] ** 2


def study_doubling(task, n_sets, parallel, quick=False):
    """Effect of twice as many trees on the variance over trees and on that over data.

    Variances are summed over features; both numbers of trees use the same tables, other trees.
    """
    found = {}
    for n_trees in (TREES, 2 * TREES):
        parts = parallel(delayed(doubled)(task, i, n_trees) for i in range(4 * n_sets))
        values, squares = map(np.array, zip(*parts, strict=True))
        of_trees = squares.mean(axis=0).sum()
        found[n_trees] = of_trees, values.var(axis=0, ddof=1).sum() - of_trees
    (trees, data), (trees_2, data_2) = found.values()
    trees_ratio, data_ratio = trees_2 / trees, data_2 / data
    return [
        row("variance over trees", f"{trees_ratio:.3f}x",
            f"0.5 ± {DOUBLING_SLACK / 2}", abs(trees_ratio - 0.5) <= DOUBLING_SLACK / 2),
        row("variance over data", f"{data_ratio:.3f}x",
            f"1 ± {DOUBLING_SLACK}", abs(data_ratio - 1.0) <= DOUBLING_SLACK),
    ]  # fmt: skip


def rows_interval_of(task, n, n_trees, is_noise, i):
    """Value and default interval of every feature of one table."""
    rng = stream_of(ROWS_ONLY, number_of(task), n, n_trees, is_noise, i)
    X, y = make_null(task, rng, n) if is_noise else make_table(task, rng, n)
    found = oob_permutation(fit(task, X, y, seed_of(rng), n_trees), X, y)
    return found.values, found.interval()


def study_rows(task, n_sets, parallel, quick=False):
    """Coverage of the mean over tables by default intervals, and noise features that exclude 0."""
    rows = []
    for n, n_trees, share in SIZES:
        n_tables = max(4, int(share * n_sets))
        inside = inside_mean(parallel, rows_interval_of, n_tables, task, n, n_trees, 0)
        what = f"{n} rows, {n_trees} trees: {by_feature(inside)}; pooled"
        rows.append(coverage_row(what, inside, n_sets=n_tables))
    for n_trees in (50, 200, 1000):
        n_tables = 2 if quick else NOISE_SETS
        found = parallel(
            delayed(rows_interval_of)(task, 100, n_trees, 1, i) for i in range(n_tables)
        )
        above = np.mean([intervals[:, 0] > 0.0 for _, intervals in found])
        rows.append(
            row(f"100 rows of noise, {n_trees} trees: features wholly above 0", f"{above:.1%}",
                f"<= {MOST_ABOVE:.0%}", above <= MOST_ABOVE, n_sets=n_tables)
        )  # fmt: skip
    return rows


def elsewhere_of(design, n, n_trees, by_refits, i):
    """Values on one table of another design, and their intervals: default or over data."""
    rng = stream_of(ELSEWHERE, DESIGNS.index(design), n, n_trees, i)
    X, y = design.draw(rng, n)
    model = fit(design.task, X, y, seed_of(rng), n_trees)
    if not by_refits:
        found = oob_permutation(model, X, y)
        return found.values, found.interval()
    found = over_data(model, X, y, n_subsamples=SUBSAMPLES, random_state=seed_of(rng))
    return found.values, found.interval(over="over data")


def study_elsewhere(task, n_sets, parallel, quick=False):
    """Default intervals on designs other than those on which their variance factor was chosen."""
    rows = []
    for design, (n, n_trees, share) in product(DESIGNS, SIZES):
        if design.task != task:
            continue
        n_tables = max(4, int(share * n_sets))
        inside = inside_mean(parallel, elsewhere_of, n_tables, design, n, n_trees, False)
        by_each = inside.mean(axis=0)
        rows.append(
            row(f"{design.name}, {n} rows, {n_trees} trees: by feature {by_each.min():.0%} to "
                f"{by_each.max():.0%}; pooled",
                f"{inside.mean():.1%}", f">= {COVERAGE[0]:.0%}", inside.mean() >= COVERAGE[0],
                n_sets=n_tables, coverage=by_each)
        )  # fmt: skip
        if (n, n_trees, share) == SIZES[0]:
            rows.append(_by_refits(design, n, n_trees, n_sets // SELECTION_SHARE, parallel))
    return rows


def _by_refits(design, n, n_trees, n_sets, parallel):
    """A row on the intervals of `over_data`, on the first ones of the same tables."""
    n_tables = max(4, n_sets)
    inside = inside_mean(parallel, elsewhere_of, n_tables, design, n, n_trees, True)
    return row(
        f"{design.name}, {n} rows, {n_trees} trees: pooled, by refits (over_data)",
        f"{inside.mean():.1%}", n_sets=n_tables, coverage=inside.mean(axis=0),
    )  # fmt: skip


def study_cost(task, n_sets, parallel, quick=False):
    """The time of exact OOB permutation with the error over data, against that without it."""
    rows = []
    for n in COST_SIZES[:1] if quick else COST_SIZES:
        X, y = make_table(task, stream_of(0), n)
        model = fit(task, X, y, 0, COST_TREES)
        fitted, columns = check_forest(model, X, y), parse_groups(None, names_of(model))
        make_loss = choose_loss(None, model)[1]
        runs = [
            partial(evaluate_trees, fitted, make_loss, columns, Options(has_influence=has))
            for has in (True, False)
        ]
        seconds = race(runs[:1], runs[1:], COST_REPEATS)
        more = seconds.ours / seconds.peer - 1.0
        rows.append(
            row(f"error over data, {n:,} rows, {COST_TREES} trees: {seconds.ours * 1e3:.1f} ms for "
                f"{seconds.peer * 1e3:.1f}", f"{more:+.0%}", f"<= {MOST_COST:+.0%}",
                more <= MOST_COST, n_sets=1)
        )  # fmt: skip
    return rows


def off_centre_of(task, drawn, i):
    """MDI-oob and UFI of noise features, averaged over the features of one table."""
    rng = stream_of(OFF_CENTRE, number_of(task), i)
    X, _ = make_null(task, rng, TREES_ROWS)
    if task == "classification":
        y = rng.choice(len(drawn), p=drawn, size=TREES_ROWS)
    else:
        y = rng.normal(size=TREES_ROWS) + drawn
    model = fit(task, X, y, seed_of(rng), 2 * TREES)
    return [unbiased_mdi(model, X, y, method=m).values.mean() for m in ("mdi_oob", "ufi")]


def study_off_centre(task, n_sets, parallel, quick=False):
    """How far noise features are from 0 by MDI-oob and by UFI if y is not centred."""
    rows = []
    for what, drawn in OFF[task].items():
        found = parallel(delayed(off_centre_of)(task, drawn, i) for i in range(n_sets))
        values = np.array(found)
        means = values.mean(axis=0)
        z = means / (values.std(axis=0, ddof=1) / np.sqrt(n_sets))
        rows += [
            row(f"{method} of noise, {what}: {mean:.4f}", f"z = {each:.1f}", mean=mean, z=each)
            for method, mean, each in zip(("MDI-oob", "UFI"), means, z, strict=True)
        ]
    return rows


def beside_of(task, i):
    """P-values of both tests on one table with signals, and hits of its features."""
    rng = stream_of(BESIDE, number_of(task), i)
    X, y = make_table(task, rng, BESIDE_ROWS)
    model = fit(task, X, y, seed_of(rng), TREES)
    tests = (
        permutation_test(model, X, y, n_repeats=BESIDE_REPEATS, random_state=seed_of(rng)),
        conditional_test(model, X, y, random_state=seed_of(rng)),
    )
    return [test.p_values for test in tests], hits_among(model, X, y, rng)


def study_beside(task, n_sets, parallel, quick=False):
    """With strong signals present: noise features that tests reject, and weak signals found."""
    n_sets = max(2, n_sets // SELECTION_SHARE)
    found = parallel(delayed(beside_of)(task, i) for i in range(n_sets))
    p_values, hits = map(np.array, zip(*found, strict=True))
    small, rows = p_values <= ALPHA, []
    for k, test in enumerate(("permutation_test", "conditional_test")):
        rows += [
            row(f"noise beside signals with p <= {ALPHA}, {test}",
                f"{small[:, k, 4:].mean():.1%}", n_sets=n_sets),
            row(f"the weak signal with p <= {ALPHA}, {test}",
                f"{small[:, k, 2].mean():.0%}", n_sets=n_sets),
        ]  # fmt: skip
    for method in ("maximum", "boruta"):
        decisions = np.array([decide(h, SELECTION_ROUNDS, ALPHA, method)[1] for h in hits])
        is_found = decisions == CONFIRMED
        rows.append(
            row(f"the weak signal confirmed, method={method}", f"{is_found[:, 2].mean():.0%}",
                n_sets=n_sets)
        )  # fmt: skip
    return rows
