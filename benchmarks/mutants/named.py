"""Mutants that tests once missed; `--named` tries each of them."""

from pathlib import Path

from benchmarks.mutants.mutation import Mutation

# By name: file, a piece of it that occurs once, and its replacement.
NAMED = {
    "Gini: the best gain is beaten by itself": (
        "cart/fast_paths/classification/impurities.py",
        "lowest = root * (1.0 - 8.0 * _ROUNDING) - 2.0 * error",
        "lowest = root * (1.0 - 8.0 * _ROUNDING) + 2.0 * error",
    ),
    "entropy: the best gain is beaten by itself": (
        "cart/fast_paths/classification/impurities.py",
        "return max(top - 2.0 * error, 0.0)",
        "return max(top + 2.0 * error, 0.0)",
    ),
    "a drawn subset has an empty side": (
        "cart/splitting/category_subsets.py",
        "subsets.place[subsets.present[p]] = 1 if n_right == 0 else 0",
        "subsets.place[subsets.present[p]] = 0 if n_right == 0 else 1",
    ),
    "Poisson: the logarithm of a target of 0": (
        "cart/splitting/mean_criteria.py",
        "(y * math.log(y / mean)) if y > 0.0 else 0.0",
        "(y * math.log(y / mean)) if y >= 0.0 else 0.0",
    ),
    "screening: the code behind the last cut": (
        "cart/fast_paths/classification/screening.py",
        "for i in range(3 * n_buckets + 1):",
        "for i in range(3 * n_buckets):",
    ),
    "debiased MDI: judged by rows on one side": (
        "importance/impurity/debiased.py",
        "is_judged = (outside.weight[left] > 0.0) | (outside.weight[right] > 0.0)",
        "is_judged = (outside.weight[left] > 0.0) & (outside.weight[right] > 0.0)",
    ),
    "bootstrap: draws without replacement as with it": (
        "forest/sampling/bootstrap.py",
        "return self.replace and is_whole and not self.by_blocks",
        "return is_whole and not self.by_blocks",
    ),
    "bootstrap: every row once, or drawn": (
        "forest/sampling/bootstrap.py",
        "self.probabilities is None and self.n_draws is not None",
        "self.probabilities is None and self.n_draws is None",
    ),
    "cells: a missing category has that of another": (
        "importance/conditional/donors.py",
        "number, n_parts = part[codes], part.max() + 1",
        "number, n_parts = part[codes], part.max()",
    ),
    "alternatives: surrogates of which nobody asked": (
        "cart/growth/alternatives.py",
        "if self._asked.n_surrogates > 0:",
        "if self._asked.n_surrogates >= 0:",
    ),
    "drop column: the mean loss of rows without weight": (
        "importance/drop_column/refits.py",
        "if weight.any():",
        "if len(weight) > 0:",
    ),
    "screening of means: the runner-up is lost": (
        "cart/fast_paths/regression/large_nodes/screening.py",
        "    else:\n        screen.gain[1] = gain",
        "    else:\n        screen.gain[2] = gain",
    ),
    "lists: the row behind those that are not listed is lost": (
        "cart/fast_paths/regression/sorted_rows.py",
        "entries[behind] = kept",
        "entries[behind] = entries[at]",
    ),
    "entropy: a table too short by one": (
        "cart/fast_paths/classification/path.py",
        "len(self._criterion.table) <= top",
        "len(self._criterion.table) < top",
    ),
}


def named_mutations(root: Path) -> list[tuple[str, str, Mutation]]:
    """The named mutations with their names and files.

    Parameters
    ----------
    root : Path
        Root of the checkout.

    Returns
    -------
    list of (str, str, Mutation)

    Raises
    ------
    ValueError
        If the code has changed, so that a piece does not occur exactly once.
    """
    found = []
    for name, (path, before, after) in NAMED.items():
        source = (root / path).read_text()
        if source.count(before) != 1:
            raise ValueError(f"{path} has {source.count(before)} of {before!r}, not one.")
        start = source.index(before)
        line = source.count("\n", 0, start + len(before)) + 1
        found.append((name, path, Mutation(line, start, start + len(before), name, after, before)))
    return found
