"""The fast paths against the general path, on both sides of every limit in their reasoning.

Random tables just within and just beyond a limit must give trees that are the same bit for bit.
"""

from typing import NamedTuple

import numpy as np

from benchmarks.harness import display
from cart import DecisionTreeClassifier, DecisionTreeRegressor
from cart.estimators.grower import Grower
from cart.growth.plan import make_plan
from cart.splitting.criteria import CLASSIFICATION, REGRESSION
from cart.table.columns import Columns
from cart.table.encoding import encode
from cart.tree.nodes import Nodes

TABLES, QUICK = 300, 10  # on each side of a limit


class Case(NamedTuple):
    """What a tree is grown from; integer targets are classes, float targets are for regression."""

    X: np.ndarray
    y: np.ndarray
    weight: np.ndarray
    criterion: str


def run(args):
    """Count the trees that differ on each side of every limit."""
    n_tables = QUICK if args.quick else TABLES
    rows = []
    with display.progress(2 * n_tables * len(LIMITS)) as step:
        for name in LIMITS:
            step(name)
            for side in ("within", "beyond"):
                counts = np.zeros(2, int)
                for seed in range(n_tables):
                    counts += grow_both_ways(name, side == "beyond", seed)
                    step()
                rows.append([f"{name}, {side}", *map(str, (n_tables, *counts))])
    columns = ["limit", "tables", "grown on a fast path", "different"]
    display.show(display.Table("Fast paths against the general path", columns, rows))
    return int(any(row[-1] != "0" for row in rows))


def grow_both_ways(name, is_beyond, seed):
    """Grow a tree on a random table near a limit, on a fast path and on the general path.

    Returns
    -------
    is_fast, is_different : bool
        Whether a fast path took it, and whether the trees differ in any bit.
    """
    rng = np.random.default_rng([seed, is_beyond, *name.encode()])
    case = LIMITS[name](rng, is_beyond)
    kind, criterion = DecisionTreeRegressor, REGRESSION
    if case.y.dtype.kind == "i":
        kind, criterion = DecisionTreeClassifier, CLASSIFICATION
    model = kind(
        criterion=case.criterion,
        max_features=float(rng.choice([0.5, 1.0])),
        max_depth=int(rng.choice([3, 30])),
        min_samples_leaf=int(rng.choice([1, 1, 2])),
    )
    n_values = int(case.y.max()) + 1 if kind is DecisionTreeClassifier else 1
    plan = make_plan(model, criterion[case.criterion], "best", *case.X.shape, 1, n_values)
    table = encode(Columns(case.X.astype(np.float32)))
    codes = case.y.astype(float)[:, np.newaxis]
    fast, general = (Grower(table, codes, plan, is_fast=is_fast) for is_fast in (True, False))
    handed_on = []

    def hand_on(*arguments):
        handed_on.append(arguments)
        return general._grow_in_general(*arguments)

    fast._grow_in_general = hand_on
    ours, theirs = (grower.grow(case.weight[np.newaxis], [seed])[0] for grower in (fast, general))
    differs = any(
        getattr(ours, field).tobytes() != getattr(theirs, field).tobytes()
        for field in Nodes._fields
    )
    return not handed_on, differs


# ------------------------------------------------------------------------------- random tables


def _columns(rng, n, n_columns=4):
    """Columns with and without ties."""
    n_levels = rng.choice([3, 20, n], n_columns)
    return np.array([_levels(rng, n, k) for k in n_levels]).T


def _levels(rng, n, n_levels):
    """Whole numbers, each at least once if there are enough rows."""
    return rng.permutation(
        np.concatenate((np.arange(n_levels)[:n], rng.integers(0, n_levels, max(0, n - n_levels))))
    )


def _classes(rng, X, n_classes):
    """Classes that follow a column with more or less noise; every class occurs."""
    n = len(X)
    y = X[:, 0].argsort(kind="stable").argsort() * n_classes // n
    noise = rng.random(n) < rng.choice([0.0, 0.1, 0.5, 1.0])
    y[noise] = rng.integers(0, n_classes, noise.sum())
    y[rng.permutation(n)[:n_classes]] = np.arange(n_classes)
    return y


def _weights(rng, X, total):
    """Whole numbers with this sum, in random order or ascending or descending along a column.

    They are nearly equal, very different, or one row of weight 1 among heavy ones.
    """
    n = len(X)
    shares = rng.dirichlet(np.full(n, rng.choice([0.05, 1.0, 1e6])))
    if rng.random() < 0.5:
        shares = np.r_[0.0, np.full(n - 1, 1.0 / (n - 1))]
    weight = 1 + np.floor(shares * (total - n))
    weight[weight.argmax()] += total - weight.sum()
    if rng.random() < 0.5:
        return rng.permutation(weight)
    place = X[:, rng.integers(X.shape[1])].argsort(kind="stable").argsort()
    return np.sort(weight)[place if rng.random() < 0.5 else n - 1 - place]


def _around(rng, limit, is_beyond):
    """A number near a limit: not above the limit, or above it."""
    offset = int(rng.choice([0, 1, 2, rng.integers(0, limit // 16)]))
    return limit + 1 + offset if is_beyond else limit - offset


# ------------------------------------------------------------------------------------- the limits


def _total_weight(limit, criterion):
    def draw(rng, is_beyond):
        n = int(rng.integers(4, 60))
        X = _columns(rng, n)
        y = _classes(rng, X, int(rng.choice([2, 2, 3, 4])))
        if criterion == "squared_error":
            X, y = np.argsort(rng.random(X.shape), axis=0), y * rng.normal(size=n)
        return Case(X, y, _weights(rng, X, _around(rng, limit, is_beyond)), criterion)

    return draw


def _entropy_table(rng, is_beyond):
    """Rows of weight 8 on average, more than 2**20 in total; beyond the limit, one more."""
    n = 2**17 + int(rng.integers(1, 5_000))
    X = rng.integers(0, 9, (n, 2))
    weight = rng.permutation(np.repeat([7.0, 8.0, 9.0], [n // 3, n - 2 * (n // 3), n // 3]))
    weight[rng.integers(n)] += is_beyond
    return Case(X, _classes(rng, X, 2), weight, "entropy")


def _word_bits(rng, is_beyond):
    """Numbers of rows, classes and weights, each (nearly) the largest that its bits can hold."""
    class_bits = int(rng.integers(1, 9))
    row_bits = int(rng.integers(max(3, class_bits + 1), 14))
    weight_bits = min(32 - class_bits - row_bits + is_beyond, 25)
    row_bits = 32 - class_bits - weight_bits + is_beyond
    n = 2**row_bits - 1 - int(rng.integers(0, 2 ** (row_bits - 2)))
    X = _columns(rng, n)
    y = _classes(rng, X, 2**class_bits - int(rng.integers(0, max(1, 2 ** (class_bits - 1)))))
    weight = rng.integers(0, 3, n).astype(float)
    weight[rng.integers(0, n, 2)] = 2**weight_bits - 1
    return Case(X, y, weight, str(rng.choice(["gini", "entropy"])))


def _n_classes(rng, is_beyond):
    n_classes = 256 - int(rng.integers(0, 2)) + 2 * is_beyond
    X = _columns(rng, int(rng.integers(300, 900)))
    weight = rng.integers(1, 5, len(X)).astype(float)
    criterion = str(rng.choice(["gini", "entropy"]))
    return Case(X, _classes(rng, X, n_classes), weight, criterion)


def _narrow_codes(rng, is_beyond):
    """Rows that all differ: codes of 16 bits, or of 32."""
    n = 65_536 + (1 if is_beyond else -1) * int(rng.integers(is_beyond, 4))
    X = np.column_stack([rng.permutation(n), _levels(rng, n, n - 1)])
    criterion = str(rng.choice(["gini", "entropy", "squared_error"]))
    y = _classes(rng, X, int(rng.choice([2, 5])))
    if criterion == "squared_error":
        y = y + (0.0 if rng.random() < 0.5 else rng.normal(size=n))
        X = X[:, :1]  # sums of such targets depend on the order of ties
    return Case(X, y, rng.integers(0, 3, n).astype(float), criterion)


def _histogram_codes(rng, is_beyond):
    n = 6_000
    n_levels = 4_096 - int(rng.integers(0, 3)) + 4 * is_beyond
    X = np.column_stack([_levels(rng, n, n_levels), _levels(rng, n, 30)])
    return Case(X, np.floor(X[:, 0] / 300) + rng.integers(0, 9, n), np.ones(n), "squared_error")


def _exact_sums(rng, is_beyond):
    """Whole weights and targets whose sums of squares reach 2**53; beyond that, without ties."""
    n = int(rng.integers(20, 300))
    X = np.argsort(rng.random((n, 4)), axis=0) if is_beyond else _columns(rng, n)
    weight = rng.integers(1, 4, n).astype(float)
    largest = np.sqrt((2.0**53 - 1) / weight.sum())
    y = np.rint(rng.uniform(-1, 1, n) * largest * 0.9)
    y[rng.integers(n)] = np.floor(largest) + is_beyond
    return Case(X, y, weight, "squared_error")


def _small_node(rng, is_beyond):
    """63 rows with weights of 31: as many as a word has room for."""
    is_many = rng.random() < 0.5
    n = 63 - int(rng.integers(0, 2)) + 2 * (is_beyond and is_many)
    X = np.argsort(rng.random((n, int(rng.integers(1, 20)))), axis=0)
    weight = rng.integers(1, 32, n).astype(float)
    weight[rng.integers(n)] = 31 + (is_beyond and not is_many)
    y = X[:, 0] * rng.choice([0.0, 1.0]) + rng.normal(size=n)
    return Case(X, y, weight, "squared_error")


LIMITS = {
    **{
        f"total weight 2**{power}, {criterion}": _total_weight(2**power, criterion)
        for criterion, powers in {
            "gini": (24, 26, 30, 31, 53),
            "entropy": (20, 30),
            "squared_error": (24, 30, 53),
        }.items()
        for power in powers
    },
    "total weight of 8 a row, entropy": _entropy_table,
    "32 bits of row, weight and class": _word_bits,
    "256 classes": _n_classes,
    "65,536 levels": _narrow_codes,
    "4,096 codes of a histogram": _histogram_codes,
    "sums of squares of 2**53": _exact_sums,
    "63 rows, and weight 31, of a small node": _small_node,
}
