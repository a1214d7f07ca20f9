"""What differences between measures mean: warnings in words, one function each."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from importance.core.ordering import descending, ranks_of
from importance.core.result import known_trees
from importance.shap import falls_out_of_bag

REACH = 2.0  # standard errors within which a value may be 0
LEADERS = 10  # features by rank that a warning speaks of
NOTABLE = 0.5  # of the mean importance: from there on a feature seems to count
SURVIVING = 0.2  # of its share by MDI: a feature with less has next to nothing out of bag
_MOST = 3  # warnings of one kind
MANY_VALUES = 30  # from so many distinct values on, MDI is known to favour a feature


def advise(comparison: Any) -> list[str]:
    """All warnings on a comparison."""
    found: list[str] = []
    for warn in (
        *(on_optimism, on_shap, on_shared_importance, on_replaceable, on_order, on_noise),
    ):
        found += list(warn(comparison))[:_MOST]
    return found


def on_optimism(comparison: Any) -> Iterator[str]:
    """MDI ranks a feature high that is worth nothing on rows that were not seen."""
    results = comparison.results
    if not {"mdi", "unbiased_mdi"} <= results.keys():
        return
    biased, unbiased = results["mdi"], results["unbiased_mdi"]
    ranks = ranks_of(biased.values)
    of_whole = _shares(biased.values)
    judged = _shares(unbiased.values)
    is_noise = unbiased.values <= REACH * unbiased.standard_error
    for j in np.argsort(ranks)[:LEADERS]:
        seems_to_count = of_whole[j] >= NOTABLE / len(ranks)
        if seems_to_count and (is_noise[j] or judged[j] < SURVIVING * of_whole[j]):
            n_distinct = comparison.n_distinct[j]
            why = f": {n_distinct:,} distinct values" if n_distinct >= MANY_VALUES else ""
            yield (
                f"MDI ranks {unbiased.feature_names[j]} {ordinal(ranks[j])} with "
                f"{of_whole[j]:.0%} of the whole, its unbiased value is "
                f"{_short(unbiased.values[j])} ± {_short(unbiased.standard_error[j])}, "
                f"{judged[j]:.0%}{why}."
            )


def on_shap(comparison: Any) -> Iterator[str]:
    """Trees give a feature more of a row that they have seen than of one that they have not."""
    results = comparison.results
    if not {"mean_absolute_shap", "mean_absolute_shap_oob"} <= results.keys():
        return
    inside, outside = results["mean_absolute_shap"], results["mean_absolute_shap_oob"]
    falls = falls_out_of_bag(inside, outside) & (
        _shares(inside.values) >= NOTABLE / len(inside.values)
    )
    for j in descending(inside.values):
        if falls[j]:
            yield (
                f"Mean |SHAP| of {inside.feature_names[j]} falls from {_short(inside.values[j])} "
                f"to {_short(outside.values[j])} where only trees explain a row that have not seen "
                "it: the rest is fitted to single rows."
            )


def on_shared_importance(comparison: Any) -> Iterator[str]:
    """Features that say the same share what they are worth."""
    jointly = comparison.jointly
    if jointly is None:
        return
    names = list(comparison.feature_names)
    alone = comparison.results["oob_permutation"]
    for g in descending(jointly.values):
        members = comparison.groups[g].columns
        if len(members) < 2 or jointly.values[g] <= REACH * jointly.standard_error[g]:
            continue
        strength = np.abs(comparison.correlation[np.ix_(members, members)])
        np.fill_diagonal(strength, np.nan)
        each = ", ".join(_short(alone.values[j]) for j in members)
        yield (
            f"{_list([names[j] for j in members])} share their importance: Spearman "
            f"{np.nanmax(strength):.2f}; as a group {_short(jointly.values[g])}, alone {each}."
        )


def on_replaceable(comparison: Any) -> Iterator[str]:
    """The trees use a feature that the forest would not miss."""
    results = comparison.results
    if not {"oob_permutation", "drop_column"} <= results.keys():
        return
    used, missed = results["oob_permutation"], results["drop_column"]
    ranks = ranks_of(used.values)
    for j in np.argsort(ranks)[: min(LEADERS, -(-len(ranks) // 2))]:
        is_used = used.values[j] > REACH * used.standard_error[j]
        if is_used and missed.values[j] <= REACH * missed.standard_error[j]:
            yield (
                f"Permutation ranks {used.feature_names[j]} {ordinal(ranks[j])}, but without it "
                f"the forest loses {_short(missed.values[j])} ± "
                f"{_short(missed.standard_error[j])}: the other features can replace it."
            )


def on_order(comparison: Any) -> Iterator[str]:
    """The order of the leaders is left to the chance of the trees."""
    result = comparison.results.get("oob_permutation")
    if result is None or result.per_tree is None:
        return
    per_tree = known_trees(result.per_tree)
    order = descending(result.values)[:5]
    for a, b in pairwise(order):
        difference = per_tree[:, a] - per_tree[:, b]
        error = difference.std() / np.sqrt(len(difference))
        if result.values[b] > 0.0 and difference.mean() < REACH * error:
            n = len(per_tree) * (REACH * error / max(difference.mean(), 1e-12)) ** 2
            remedy = f"about {_round(n):,} trees" if n < 1e5 else "no number of trees"
            yield (
                f"The order of {result.feature_names[a]} and {result.feature_names[b]} is left to "
                f"chance: {remedy} would settle it."
            )


def on_noise(comparison: Any) -> Iterator[str]:
    """Features that cannot be told from noise."""
    result = comparison.results.get("oob_permutation")
    if result is None:
        return
    is_noise = result.values <= REACH * result.standard_error
    n = np.count_nonzero(is_noise)
    if n:
        names = [str(name) for name in result.feature_names[is_noise]]
        some = _list(names) if n <= 5 else f"{', '.join(names[:4])} and {n - 4} more"
        yield (
            f"{n} of {len(is_noise)} features cannot be told from noise by permutation (within "
            f"{REACH:g} standard errors over trees of 0): {some}."
        )


def ordinal(n: int) -> str:
    """1 is "first"."""
    words = ("first", "second", "third", "fourth", "fifth")
    return words[n - 1] if n <= len(words) else f"{n}th"


def _list(names):
    names = [str(name) for name in names]
    if len(names) > 5:
        names = [*names[:4], f"{len(names) - 4} more"]
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]


def _shares(values):
    """Shares of the whole; what is below 0 has none."""
    positive = np.maximum(values, 0.0)
    return positive / (positive.sum() or 1.0)


def _short(value):
    if abs(value) < 1e-12:  # rounding
        return "0"
    return f"{value:.2g}" if abs(value) < 1000 else f"{value:.3g}"


def _round(n):
    """To two digits."""
    scale = 10 ** max(0, int(np.log10(max(n, 1))) - 1)
    return int(np.ceil(n / scale) * scale)
