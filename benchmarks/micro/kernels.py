"""The kernels benchmark: nanoseconds per element for every family of kernels; takes seconds.

Use it to judge a change to a kernel before any suite is run: alternately in the old checkout and in
the new. Each family says what its element is.
"""

from functools import partial
from time import perf_counter

import numpy as np
from sklearn.datasets import make_classification

from benchmarks.harness import display
from benchmarks.micro import phases
from cart.estimators.trees import DecisionTreeRegressor
from cart.table.columns import Columns
from cart.table.encoding import encode
from cart.tree.packed import pack
from cart.tree.traversal import sum_of_values
from forest.estimators.forests import RandomForestClassifier, RandomForestRegressor

N_ROWS, N_FEATURES = 100_000, 20
NODES = (64, 4096)  # rows of the nodes that are searched
REPEATS = 7
# Families used in a node: the corresponding phase of `benchmarks.micro.phases`.
IN_A_NODE = {
    "gather": ("gather", "codes of a node's rows along a feature: row"),
    "screen": ("screen", "single-precision bound of a node's cuts: row"),
    "sort": ("sort", "keys that screening has left: row of the node"),
    "count": ("sum", "prefix counts of the classes: row of the node"),
    "scan": ("choose", "exact gain of the cuts: row of the node"),
    "partition": ("divide", "a node's packed rows into left | right: row"),
}


def run(args):
    """Time every family whose name contains the text of --only."""
    X, y = make_classification(N_ROWS, N_FEATURES, n_informative=10, random_state=0)
    X = X.astype(np.float32)
    families = {
        "rank": partial(_rank, X),
        **{name: partial(_in_a_node, X, y, name) for name in IN_A_NODE},
        "grow": partial(_grow, X, y),
        "pack": partial(_pack, X, y),
        "walk": partial(_walk, X, y),
    }
    chosen = {name: time for name, time in families.items() if args.only in name}
    rows = []
    with display.progress(len(chosen)) as step:
        for name, time in chosen.items():
            step(name)
            rows += [[name, *row] for row in time()]
            step()
    display.show(
        display.Table(
            "Nanoseconds per element",
            ["family", "what: element", "nodes of", "ns"],
            [[name, what, size, f"{taken:.2f}"] for name, what, size, taken in rows],
            f"{N_ROWS:,} x {N_FEATURES}, one thread, medians of {REPEATS}.",
        )
    )


def _time(call, n_elements):
    """Nanoseconds per element: the median of calls after a first one, which may compile."""
    times = []
    for _ in range(REPEATS + 1):
        start = perf_counter()
        call()
        times.append(perf_counter() - start)
    return np.median(times[1:]) / n_elements * 1e9


def _rank(X):
    few = np.floor(X)
    yield "values that differ to ranks: value", "", _time(lambda: _encode(X), X.size)
    yield "values of few levels to ranks: value", "", _time(lambda: _encode(few), X.size)


def _encode(X):
    return encode(Columns(X), n_jobs=1)


_measured = {}  # by number of rows of the nodes: nanoseconds of the phases


def _in_a_node(X, y, name):
    phase, what = IN_A_NODE[name]
    for n in NODES:
        if n not in _measured:
            _measured[n] = phases.measure(_encode(X), y, n, 2)
        yield what, f"{n:,} rows", _measured[n][phase]


def _grow(X, y):
    """Whole trees: the families taken together."""
    n_rows, target = 20_000, X[:, 0] + X[:, 1] * X[:, 2]
    visits = n_rows * N_FEATURES
    models = {
        "class counts": (RandomForestClassifier, y, "sqrt"),
        "histogram, presorted rows": (RandomForestRegressor, target, 1.0),
        "sorted on demand": (RandomForestRegressor, target, 1 / 3),
    }
    for what, (kind, values, max_features) in models.items():
        model = kind(10, max_features=max_features, random_state=0, n_jobs=1)
        fit = partial(model.fit, X[:n_rows], values[:n_rows])
        yield f"ten trees, {what}: value of X", "", _time(fit, 10 * visits)
    tree = DecisionTreeRegressor(max_leaf_nodes=1000)
    fit = partial(tree.fit, X[:n_rows], target[:n_rows])
    yield "a tree, general path: value of X", "", _time(fit, visits)


def _trees(X, y):
    forest = RandomForestClassifier(50, random_state=0, n_jobs=1).fit(X[:20_000], y[:20_000])
    return [tree.tree_ for tree in forest.estimators_]


def _pack(X, y):
    trees = _trees(X, y)
    n_nodes = sum(tree.node_count for tree in trees)
    yield (
        "a tree's nodes into walking order: node",
        "",
        _time(lambda: pack(trees, np.dtype(np.float32)), n_nodes),
    )


def _walk(X, y):
    trees = _trees(X, y)
    packed = pack(trees, np.dtype(np.float32))
    n_steps = sum(tree.max_depth for tree in trees) * len(X)
    yield "rows down 50 trees: row and level", "", _time(lambda: sum_of_values(packed, X), n_steps)
