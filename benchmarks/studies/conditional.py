"""The conditional benchmark: tests of features given the others, compared with hidimstat's.

y depends on x0, x1 and x2; x3 is noise. x4 to x7 say nothing given the others, though each is
associated with one of x0 to x3. Seeds derive from the number of a design, correlation and set.
"""

from collections.abc import Callable
from time import perf_counter

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.model_selection import KFold

from benchmarks.harness import display, results
from forest import RandomForestRegressor
from importance import conditional_test

SETS, QUICK_SETS = 200, 4
ROWS, TREES, FOLDS, FEATURES = 200, 50, 5, 8
SIGNALS, NULLS = slice(0, 3), slice(3, 8)
DESIGNS = ("linear", "curved")  # how x4 to x7 depend on x0 to x3; CASES say how closely
CASES = (("linear", 0.0), ("linear", 0.5), ("linear", 0.8), ("curved", 0.5), ("curved", 0.8))
LEVELS = (0.01, 0.05, 0.10)
TIMED = 5  # tables on which hidimstat's tests are timed with scikit-learn's forest


def make_table(design: str, correlation: float, i: int) -> tuple[np.ndarray, np.ndarray, int]:
    """X, y and a `random_state`."""
    rng = np.random.default_rng((31, DESIGNS.index(design), int(100 * correlation), i))
    X = rng.normal(size=(ROWS, FEATURES))
    of = X[:, :4] if design == "linear" else (X[:, :4] ** 2 - 1.0) / np.sqrt(2.0)
    X[:, 4:] = correlation * of + np.sqrt(1.0 - correlation**2) * X[:, 4:]
    y = X[:, 0] + 0.7 * X[:, 1] + np.abs(X[:, 2]) + rng.normal(size=ROWS)
    return X, y, int(rng.integers(2**31))


def _ours(method: str) -> Callable:
    def test(model, X, y, seed):
        found = conditional_test(model, X, y, method=method, cv=FOLDS, random_state=seed)
        return found.p_values

    return test


def _by_hidimstat(name: str) -> Callable:
    def test(model, X, y, seed):
        import hidimstat

        options = {"random_state": seed} if name == "CFICV" else {}
        folds = KFold(FOLDS, shuffle=True, random_state=seed)
        work = getattr(hidimstat, name)(clone(model), cv=folds, **options)
        work.fit_importance(X, y)
        return np.asarray(work.pvalues_)

    return test


# Of hidimstat, the versions over folds, whose test is corrected for refits; the versions with a
# single split test over draws, or over rows that one forest judges.
METHODS: dict[str, Callable] = {
    "conditional_test, resample": _ours("resample"),
    "conditional_test, drop": _ours("drop"),
    "hidimstat CFICV": _by_hidimstat("CFICV"),
    "hidimstat LOCOCV": _by_hidimstat("LOCOCV"),
}


def p_values_of(design: str, correlation: float, i: int) -> dict[str, tuple[np.ndarray, float]]:
    """P-values by every method on one table, (n_features,), and the seconds that it took."""
    X, y, seed = make_table(design, correlation, i)
    model = RandomForestRegressor(TREES, max_features=1 / 3, random_state=seed, n_jobs=1).fit(X, y)
    found = {}
    for name, test in METHODS.items():
        start = perf_counter()
        try:
            p_values = test(model, X, y, seed)
        except ImportError:
            continue
        found[name] = p_values, perf_counter() - start
    return found


def run(args):
    """Apply every method to every table, and count rejections."""
    n_sets = QUICK_SETS if args.quick else args.sets
    rows = []
    with Parallel(args.n_jobs) as parallel:
        for design, correlation in CASES:
            found = parallel(delayed(p_values_of)(design, correlation, i) for i in range(n_sets))
            rows += count(design, correlation, found)
            display.show(table({"rows": rows}))
    content = {"n_sets": n_sets, "rows": rows, "seconds": time_with_scikit_learn()}
    display.show(time_table(content))
    if not args.quick:
        display.say(f"kept in {results.save('conditional', content)}")
        display.say(f"drew {draw(content)}")


def count(design: str, correlation: float, found: list[dict]) -> list[dict]:
    """How often each method rejects, one row per method."""
    rows = []
    for name in found[0]:
        p_values = np.array([of_table[name][0] for of_table in found])
        null = p_values[:, NULLS]
        rejected = {level: (null <= level).mean() for level in LEVELS}
        # Features of a table depend on each other, so the error is over tables.
        error = {lv: (null <= lv).mean(axis=1).std() / np.sqrt(len(null)) for lv in LEVELS}
        rows.append(
            {
                "design": design, "correlation": correlation, "method": name,
                "rejected": list(rejected.values()), "error": list(error.values()),
                "holds": bool(all(rejected[lv] <= lv + 2.0 * error[lv] for lv in LEVELS)),
                "power": (p_values[:, SIGNALS] <= 0.05).mean(axis=0),
                "null": np.quantile(null, np.arange(1, 100) / 100.0).round(3),
            }
        )  # fmt: skip
    return rows


def table(content):
    """Table of levels and power; two standard errors are at most 7 points with 200 tables."""
    return display.Table(
        "Tests of features given the others",
        ["design", "correlation", "method", "null, p <= .01", ".05", ".10", "holds", "power x0",
         "x1", "x2"],
        [
            [
                row["design"], f"{row['correlation']:.1f}", row["method"],
                *(f"{share:.1%}" for share in row["rejected"]),
                "yes" if row["holds"] else "NO",
                *(f"{share:.0%}" for share in row["power"]),
            ]
            for row in content["rows"]
        ],
        f"{ROWS} rows, {TREES} trees, {FOLDS} folds, all methods with the same Cartwood forests. "
        "y depends on x0, x1 and |x2|; x3 is noise; x4 to x7 depend on x0 to x3, linearly or by "
        "their squares, and add no information to them. A level holds if the rejected share is at "
        "most the level plus 2 standard errors over tables. Power: share of tables at p <= .05.",
    )  # fmt: skip


def time_with_scikit_learn() -> dict[str, float]:
    """Seconds of a test as users run it: ours, and hidimstat's with scikit-learn's forest."""
    from sklearn.ensemble import RandomForestRegressor as Theirs

    seconds: dict[str, list] = {name: [] for name in METHODS}
    for i in range(TIMED):
        X, y, seed = make_table("linear", 0.5, i)
        options = {"max_features": 1 / 3, "random_state": seed, "n_jobs": 1}
        for name, test in METHODS.items():
            kind = RandomForestRegressor if name.startswith("conditional_test") else Theirs
            model = kind(TREES, **options).fit(X, y)
            start = perf_counter()
            try:
                test(model, X, y, seed)
            except ImportError:
                continue
            seconds[name].append(perf_counter() - start)
    return {name: float(np.median(times)) for name, times in seconds.items() if times}


def time_table(content):
    """Table of seconds per test on one table."""
    return display.Table(
        "Seconds of a conditional test",
        ["method", "seconds"],
        [[name, f"{seconds:.2f}"] for name, seconds in content["seconds"].items()],
        f"Medians over {TIMED} tables of {ROWS} x {FEATURES}, {TREES} trees, one thread; "
        "hidimstat uses scikit-learn's forest.",
    )


def draw(content):
    """Draw quantiles of p-values of null features: below the diagonal a test is conservative."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 2.9), layout="constrained")
    axes = figure.subplots(1, len(CASES), sharex=True, sharey=True)
    expected = np.arange(1, 100) / 100.0
    for ax, case in zip(axes, CASES, strict=True):
        ax.plot([0, 1], [0, 1], color="#999999", linewidth=0.8)
        for row in content["rows"]:
            if (row["design"], row["correlation"]) == case:
                ax.plot(row["null"], expected, label=row["method"], linewidth=1.2)
        ax.set_title(f"{case[0]}, {case[1]}", fontsize=9)
        ax.spines[["top", "right"]].set_visible(False)
    figure.supxlabel("p-value of a feature without information of its own", fontsize=9)
    figure.supylabel("share below", fontsize=9)
    axes[0].legend(fontsize=6, frameon=False)
    path = results.ROOT / "docs" / "figures" / "conditional_levels.png"
    figure.savefig(path, dpi=110)
    return path
