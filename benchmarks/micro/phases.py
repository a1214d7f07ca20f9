"""The phases benchmark: nanoseconds per visit of each phase of growth with class counts.

A visit is one row met by one candidate feature in one node. Nodes are random rows of a table of
100,000 x 20, so that codes are mostly gathered from outside the caches. Every feature is screened
like the first of its node, with no cut to beat. The floor is the time of reading as many codes at
random.
"""

from functools import partial
from time import perf_counter

import numpy as np
from sklearn.datasets import make_classification

from benchmarks.harness import display, results
from cart.fast_paths.base import NONE_MISSING, Cut
from cart.fast_paths.classification.best_cut import Monotony, choose_cut
from cart.fast_paths.classification.class_rows import ClassScratch
from cart.fast_paths.classification.cumulative_counts import ClassNode, PrefixCounts, add_up
from cart.fast_paths.classification.impurities import GiniCuts
from cart.fast_paths.classification.packed_rows import (
    ColumnCodes,
    Layout,
    gather_keys,
    partition_packed_rows,
)
from cart.fast_paths.classification.screening import add_up_kept, is_worth_screening, screen
from cart.jit.decorators import entry_kernel
from cart.primitives.radix_sort import sort_short_keys
from cart.splitting.splitter import Bounds
from cart.table.columns import Columns
from cart.table.encoding import encode

FREE = Monotony(0, Bounds(-np.inf, np.inf))  # without constraints
NONE = np.uint32(0xFFFFFFFF)  # code of a missing value: there are none
SIZES = (4, 8, 16, 32, 64, 128, 256, 512, 1024, 4096, 16384, 62000)
QUICK_SIZES = (8, 64, 512, 16384)
VISITS = 2_000_000  # per measurement
REPEATS = 3
FLOOR, GATHER, SCREEN, SORT, SUM, CHOOSE, DIVIDE = range(7)
PHASES = ("floor", "gather", "screen", "sort", "sum", "choose", "divide")


def run(args):
    """Time every phase on nodes of every size."""
    n_classes = 2
    X, y = make_classification(100_000, 20, n_informative=10, random_state=0)
    X = X.astype(np.float32)
    encode(Columns(X[:9]))  # compiles the kernels
    start = perf_counter()
    encoded = encode(Columns(X))
    encoding = (perf_counter() - start) / X.size * 1e9
    sizes = [n for n in (QUICK_SIZES if args.quick else SIZES) if args.only in ("", str(n))]
    rows = []
    with display.progress(len(sizes)) as step:
        for n in sizes:
            step(f"nodes of {n:,} rows")
            rows.append({"rows": n, **measure(encoded, y, n, n_classes)})
            step()
    content = {"encode": encoding, "rows": rows}
    display.show(table(content))
    results.keep(args, "phases", content)


def table(content):
    """The results as a table."""
    return display.Table(
        "Nanoseconds per visit",
        ["rows of the node", *PHASES, "all but the floor"],
        [
            [
                f"{row['rows']:,}",
                *(f"{row[phase]:.1f}" for phase in PHASES),
                f"{sum(row[phase] for phase in PHASES[1:]):.1f}",
            ]
            for row in content["rows"]
        ],
        "Gini of two classes, 100,000 x 20. The floor reads as many codes at random. Rows are "
        "divided once per node, not per feature, and that time is per row. Encoding the table took "
        f"{content['encode']:.0f} ns per value.",
    )


def measure(encoded, y, n, n_classes):
    """Nanoseconds per visit of each phase: differences between runs of ever more phases."""
    rng = np.random.default_rng(0)
    counts = np.bincount(rng.integers(0, len(y), len(y)), minlength=len(y))
    in_bag = np.flatnonzero(counts)
    nodes = rng.permutation(in_bag)[: len(in_bag) // n * n].reshape(-1, n)
    rows = np.sort(nodes, axis=1).ravel()
    layout = Layout.of(len(y), n_classes, counts.max())
    words = rows << int(layout.low_bits) | counts[rows] << int(layout.class_bits) | y[rows]
    bench = ClassScratch.create(len(y), n_classes, len(y) + 2)
    class_counts = [
        np.bincount(y[rows[i : i + n]], counts[rows[i : i + n]], n_classes)
        for i in range(0, len(rows), n)
    ]
    call = partial(
        _repeat, GiniCuts(), encoded, bench, PrefixCounts.create(len(y), n_classes), layout, n,
        np.array(class_counts, np.int64), max(REPEATS, VISITS // n),
    )  # fmt: skip
    times = []
    for last in range(len(PHASES)):
        taken = []
        for _ in range(REPEATS + 1):  # the first one may compile
            mine = words.astype(np.uint32)
            start = perf_counter()
            call(mine, last)
            taken.append(perf_counter() - start)
        times.append(np.median(taken[1:]) / (max(REPEATS, VISITS // n) * n) * 1e9)
    alone = {PHASES[k]: times[k] for k in (FLOOR, GATHER, DIVIDE)}
    then = {PHASES[k]: max(0.0, times[k] - times[k - 1]) for k in (SCREEN, SORT, SUM, CHOOSE)}
    return {phase: {**alone, **then}[phase] for phase in PHASES}


@entry_kernel
def _repeat(criterion, table, bench, prefix, layout, n, class_counts, repeats, words, last):
    """Run the phases up to `last` in one node and feature after another."""
    found = 0
    n_nodes = words.shape[0] // n
    for r in range(repeats):
        start = r % n_nodes * n
        column = r % table.codes.shape[0]
        codes = table.codes[column]
        if last == FLOOR:
            for i in range(start, start + n):
                found += np.int64(codes[words[i] >> layout.low_bits])
            continue
        if last == DIVIDE:
            middle = codes.shape[0] // 2
            cut = Cut(column, middle, middle + 1, 0.0, NONE_MISSING, 0.0)
            mine, keys, counts = words[start : start + n], bench.keys, bench.pending[0]
            found += partition_packed_rows(
                ColumnCodes(codes), cut, mine, layout, keys, bench.spare, counts
            )
            continue
        lowest, highest = gather_keys(codes, words, start, n, layout, NONE, bench.keys)
        found += np.int64(lowest)
        if last == GATHER:
            continue
        counts = class_counts[r % n_nodes]
        weight = np.int64(0)
        for c in range(class_counts.shape[1]):
            weight += counts[c]
        node = ClassNode(criterion, prefix, layout, counts, weight)
        is_screened = is_worth_screening(criterion, n, class_counts.shape[1])
        keys, spare, n_keys, shift = bench.keys, bench.spare, n, layout.low_bits
        if is_screened:
            span = (lowest, highest)
            n_keys, shift = screen(node, keys, n, span, -np.inf, table, column, spare)
            keys, spare = spare, keys
        if last == SCREEN:
            continue
        if sort_short_keys(keys, n_keys, layout.low_bits, lowest, highest, spare, bench.digits):
            keys = spare
        if last == SORT:
            continue
        if is_screened:
            add_up_kept(criterion, prefix, keys, n_keys, lowest, shift, counts, layout)
        else:
            add_up(criterion, prefix, keys, n_keys, counts, layout)
        if last == CHOOSE:
            _, i = choose_cut(node, keys, 0, n_keys - 1, -np.inf, table, column, FREE)
            found += i
    return found
