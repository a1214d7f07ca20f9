"""Measures of the code's layout, next to their goals.

The goals were set in the plan of the layout, and `tests/benchmarks/test_structure.py` enforces
them. The numbers before are those of commit df6247c, when the code had no wings.
"""

import re
from collections import Counter
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np

from benchmarks.harness import display
from benchmarks.structure import counted_lines
from benchmarks.structure.sources import PACKAGES, ROOT, arrows, count_floors, modules

LINES_BEFORE = 18_151  # of cart, forest and importance at df6247c, counted in the same way
FEWER_LINES = 1500
# Every family of kernels, and its files, at least one of which must draw the family's invariant.
FAMILIES = {
    "ranks and levels": r"cart/table/(ranking|table|encoding|distinct_values)",
    "node samples": r"cart/(table|splitting|growth)/node_samples|cart/primitives/.*partition",
    "feature draw": r"cart/splitting/feature_draw",
    "sorted thresholds": r"cart/splitting/(splitter|best_split|.*criteri)",
    "growth": r"cart/growth/",
    "packed rows": r"cart/fast_paths/classification/packed_rows",
    "prefix counts": r"cart/fast_paths/classification/(cumulative_counts|impurities|best_cut)",
    "class screening": r"cart/fast_paths/classification/screening",
    "cache copies": r"cart/fast_paths/cache_copies",
    "histogram": r"cart/fast_paths/regression/histogram",
    "presorted rows": r"cart/fast_paths/regression/sorted",
    "small node": r"cart/fast_paths/regression/small",
    "radix sort": r"cart/primitives/radix_sort",
    "sorting network": r"cart/primitives/sorting_networks",
    "compact tree": r"cart/tree/compact",
    "packed tree": r"cart/tree/packed",
    "traversal": r"cart/tree/(traversal|packed)",
    "in-bag and out-of-bag": r"forest/sampling/|forest/voting/out_of_bag",
    "shuffling": r"importance/permutation/",
    "donors": r"importance/conditional/",
}


class Row(NamedTuple):
    """A measure: its values now, in the order of the goals, and those before."""

    what: str
    before: str
    values: tuple
    goals: tuple  # upper bounds of the values

    @property
    def is_reached(self):
        return all(value <= goal for value, goal in zip(self.values, self.goals, strict=True))


def run(args):
    """Print the table; with --list also what is furthest from the goals."""
    root = Path(args.of) if args.of else ROOT
    found = modules(root)
    rows = measure(found)
    display.show(table(rows))
    if args.list:
        _show_outliers(found)
    return 0 if all(row.is_reached for row in rows) else 1


def measure(found):
    """Measure the modules of the three packages.

    Parameters
    ----------
    found : list of benchmarks.structure.sources.Module

    Returns
    -------
    list of Row
    """
    functions = [function for module in found for function in module.functions()]
    kernels = [function.n_parameters for function in functions if function.is_kernel]
    lines = [function.n_lines for function in functions]
    heights = [len(module.lines) for module in found]
    targets = arrows(found, "cart")
    n_arrows = sum(map(len, targets.values()))
    folders = _files_per_folder(found)
    flat = max(n for folder, n in folders.items() if "/" not in folder)
    n_lines = sum(map(counted_lines.count, found))
    return [
        Row(
            "entries in cart, floors, arrows between wings",
            "59, 16, 231",
            (len(targets), count_floors(targets), n_arrows),
            (12, 11, 40),
        ),
        Row(
            "files directly in a package, in any one folder",
            "58, 58",
            (flat, max(folders.values())),
            (6, 14),
        ),
        Row("function lines: median, p90, max", "5, 20, 78", _spread(lines, median), (5, 20, 50)),
        Row(
            "kernel parameters: p90, max; kernels with more than 8",
            "10, 21, 52",
            (*_spread(kernels), sum(n > 8 for n in kernels)),
            (8, 10, 10),
        ),
        Row("module lines: p90, max", "382, 788", _spread(heights), (350, 500)),
        Row("kernel families without a drawing", "20", (len(undrawn(found)),), (0,)),
        Row(
            "lines of the packages that count",
            f"{LINES_BEFORE:,}",
            (n_lines,),
            (LINES_BEFORE - FEWER_LINES,),
        ),
    ]


def _spread(values, middle=None):
    """The median if asked for, the 90th percentile and the maximum."""
    first = () if middle is None else (round(middle(values)),)
    return (*first, round(np.percentile(values, 90)), max(values))


def _files_per_folder(found):
    """Number of files, without `__init__`, in every folder."""
    names = (module.name for module in found if not module.name.endswith("__init__.py"))
    return Counter(name.rpartition("/")[0] for name in names)


def undrawn(found):
    """Kernel families none of whose files has a drawing."""
    drawn = [module.name for module in found if any(counted_lines.drawn_lines(module))]
    return [
        family
        for family, pattern in FAMILIES.items()
        if not any(re.match(pattern, name) for name in drawn)
    ]


def table(rows):
    """The measures as a table."""
    return display.Table(
        "The house",
        ["", "df6247c", "now", "goal", "reached"],
        [
            [
                row.what,
                row.before,
                ", ".join(f"{value:,}" for value in row.values),
                ", ".join(f"{goal:,}" for goal in row.goals),
                "yes" if row.is_reached else "no",
            ]
            for row in rows
        ],
        note=f"Of {', '.join(PACKAGES)}; the lines of a function do not include its docstring.",
    )


def _show_outliers(found):
    functions = [function for module in found for function in module.functions()]
    long = sorted(functions, key=lambda function: -function.n_lines)[:20]
    wide = [function for function in functions if function.is_kernel and function.n_parameters > 8]
    high = sorted(found, key=lambda module: -len(module.lines))[:15]
    for title, rows in (
        ("Longest functions", [[f"{f.module}: {f.name}", str(f.n_lines)] for f in long]),
        ("Kernels with more than 8 parameters", _by_width(wide)),
        ("Longest modules", [[module.name, str(len(module.lines))] for module in high]),
        ("Without a drawing", [[family, FAMILIES[family]] for family in undrawn(found)]),
    ):
        if rows:
            display.show(display.Table(title, ["", ""], rows))


def _by_width(kernels):
    ordered = sorted(kernels, key=lambda kernel: -kernel.n_parameters)
    return [[f"{f.module}: {f.name}", str(f.n_parameters)] for f in ordered]
