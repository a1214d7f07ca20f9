"""Sentences on what differences between measures mean; one function for each kind.

A sentence is given only if a test supports it. How often each is false, by design of tables, is
measured by `python -m benchmarks words` and reported in docs/importance.md.
"""

from collections.abc import Iterator
from itertools import islice, pairwise
from typing import Any, NamedTuple

import numpy as np

from cart.estimators.target import doubt_on_small_target
from importance.core.fitted_forest import FittedForest
from importance.core.numbers import descending, estimate, past_rounding, ranks_of, significant
from importance.core.result import OVER_TREES, known_trees
from importance.shap import falls_out_of_bag, rows_to_explain

SHAP = ("mean_absolute_shap", "mean_absolute_shap_oob")
REACH = 2.0  # standard errors around a value
LEADERS = 10  # features, by rank, that sentences consider
NOTABLE = 0.5  # times the mean importance: from there on a feature seems to count
# A feature's share out of bag confirms next to nothing if it is below SURVIVING times its share by
# MDI, and still below MOST_SURVIVING times that share with two standard errors more.
SURVIVING, MOST_SURVIVING = 0.2, 0.5
SMALL = 0.2  # times its permutation importance: a feature whose loss is less can be replaced
SHARING = 0.25  # times the value of a group: a member with less has no part in it
MOST_SHARED = 1.5  # times that value: if members add up to more, each is needed, like coordinates
FAR = 4.0  # standard errors below 0: farther than noise reaches in many columns
CLOSE = 0.5  # standard errors between two features whose order other trees may reverse
_MOST = 3  # sentences of one kind
MOST_NAMED = 5  # features that a sentence names
ROUNDING = 1e-9  # of the largest value: sentences call less than that 0
MANY_VALUES = 30  # distinct values from which on MDI is known to favour a feature


class Sentence(NamedTuple):
    """A sentence, and the positions of the features it is about."""

    text: str
    features: np.ndarray


def advise(comparison: Any) -> list[Sentence]:
    """All sentences about a comparison."""
    found: list[Sentence] = []
    for say, compared in SENTENCES.values():
        if compared <= comparison.results.keys():
            found += islice(say(comparison), _MOST)
    return found


def doubts_on_small_targets(fitted: FittedForest) -> Iterator[str]:
    """Warn of trees that do not split because the target varies too little to count as impure."""
    doubt = None if fitted.is_classification else doubt_on_small_target(fitted.trees, fitted.codes)
    if doubt:
        yield f"{doubt} As it is, nothing is known about the features."


def on_optimism(comparison: Any) -> Iterator[Sentence]:
    """MDI gives a feature a share that out-of-bag rows do not confirm."""
    biased, unbiased = (comparison.results[name] for name in ("mdi", "unbiased_mdi"))
    ranks = ranks_of(biased.values)
    of_whole, judged = _shares(biased.values), _shares(unbiased.values)
    if not judged.any():
        return
    at_most = unbiased.values + REACH * unbiased.errors[OVER_TREES]
    most = np.maximum(at_most, 0.0) / np.maximum(unbiased.values, 0.0).sum()
    for j in np.argsort(ranks)[:LEADERS]:
        seems_to_count = of_whole[j] >= NOTABLE / len(ranks)
        is_small = judged[j] < SURVIVING * of_whole[j] and most[j] < MOST_SURVIVING * of_whole[j]
        if seems_to_count and is_small:
            n_distinct = comparison.n_distinct[j]
            why = f" ({n_distinct:,} distinct values)" if n_distinct >= MANY_VALUES else ""
            yield Sentence(
                f"MDI ranks {unbiased.feature_names[j]}{why} {ordinal(ranks[j])} with "
                f"a share of {of_whole[j]:.0%}; judged out of bag, its share is "
                f"{judged[j]:.0%} ({_value(unbiased, j, OVER_TREES)}).",
                np.array([j]),
            )


def on_shap(comparison: Any) -> Iterator[Sentence]:
    """A feature's |SHAP| falls when only trees explain a row that have not seen it."""
    inside, outside = (comparison.results[name] for name in SHAP)
    units = comparison.units
    units = None if units is None else units[rows_to_explain(len(units))]
    is_notable = _shares(inside.values) >= NOTABLE / len(inside.values)
    falls = falls_out_of_bag(inside, outside, units) & is_notable
    for j in descending(inside.values):
        if falls[j]:
            yield Sentence(
                f"Mean |SHAP| of {inside.feature_names[j]} falls from {_short(inside, j)} "
                f"to {_short(outside, j)} when only trees that have not seen a row explain it: "
                "the rest is fitted to single rows.",
                np.array([j]),
            )


def on_shared_importance(comparison: Any) -> Iterator[Sentence]:
    """Correlated features that the trees all use share what they are worth.

    Permuted together they are worth about as much as in sum.
    """
    jointly = comparison.jointly
    if jointly is None:
        return
    names = comparison.feature_names
    alone = comparison.results["oob_permutation"]
    for g in descending(jointly.values):
        worth = jointly.values[g]
        if not worth > REACH * jointly.standard_error[g]:
            continue
        columns = comparison.groups[g].columns
        is_used = (alone.values > SHARING * worth) & _is_above_zero(alone)
        members = columns[is_used[columns]]
        if len(members) < 2 or alone.values[members].sum() > MOST_SHARED * worth:
            continue
        each = ", ".join(_short(alone, j) for j in members)
        yield Sentence(
            f"{_list(names[members])} share their importance (Spearman "
            f"{_range(comparison.correlation, members)}): permuted together {_short(jointly, g)}, "
            f"alone {each}.",
            members,
        )


def on_replaceable(comparison: Any) -> Iterator[Sentence]:
    """The trees use a feature that the forest would hardly miss: its loss has a small bound."""
    for j, text, missed, most in _used_and_hardly_missed(comparison, is_bounded=True):
        yield Sentence(
            f"{text} at most {_short(missed, j, most)} "
            f"({_value(missed, j)}): the other features can replace it.",
            np.array([j]),
        )


def on_unknown_loss(comparison: Any) -> Iterator[Sentence]:
    """The trees use a feature, but whether the forest would miss it is not known at this size."""
    for j, text, missed, _ in _used_and_hardly_missed(comparison, is_bounded=False):
        yield Sentence(
            f"{text} {_value(missed, j)}, which cannot be told from 0 at this sample size; "
            "whether the other features replace it remains open.",
            np.array([j]),
        )


def on_order(comparison: Any) -> Iterator[Sentence]:
    """The order of leading features depends on the chance of the trees."""
    result = comparison.results["oob_permutation"]
    per_tree = known_trees(result.per_tree)
    for a, b in pairwise(descending(result.values)[:5]):
        difference = per_tree[:, a] - per_tree[:, b]
        error = difference.std() / np.sqrt(len(difference))
        if _is_above_zero(result)[b] and difference.mean() < CLOSE * error:
            yield Sentence(
                f"The order of {result.feature_names[a]} and {result.feature_names[b]} depends on "
                f"the randomness of the trees: they differ by "
                f"{_pair(result, difference.mean(), error)} {OVER_TREES}.",
                np.array([a, b]),
            )


def on_noise(comparison: Any) -> Iterator[Sentence]:
    """Features that cannot be told from noise; a noise feature is hardly ever left out."""
    result = comparison.results["oob_permutation"]
    is_noise = np.abs(result.values) <= REACH * result.standard_error
    n = np.count_nonzero(is_noise)
    if n:
        yield Sentence(
            f"{n} of {len(is_noise)} features cannot be told from noise by permutation at this "
            f"sample size (within {REACH:g} standard errors {_over(result)} of 0): "
            f"{_list(result.feature_names[is_noise])}.",
            np.flatnonzero(is_noise),
        )


def on_misleading(comparison: Any) -> Iterator[Sentence]:
    """What trees learn from a feature makes them worse on out-of-bag rows."""
    result = comparison.results["oob_permutation"]
    misleading = np.flatnonzero(result.values < -FAR * result.standard_error)
    if len(misleading):
        first = misleading[result.values[misleading].argmin()]
        yield Sentence(
            f"What trees learn from {_list(result.feature_names[misleading])} misleads them out "
            f"of bag: permuting {result.feature_names[first]} lowers their loss "
            f"({_value(result, first)}). Rows with similar values of it differ in the target, as "
            "in a table that has every combination once.",
            misleading,
        )


# The functions by kind, each with the measures that it compares.
SENTENCES = {
    "MDI is not confirmed": (on_optimism, {"mdi", "unbiased_mdi"}),
    "SHAP falls out of bag": (on_shap, {*SHAP}),
    "share their importance": (on_shared_importance, {"oob_permutation"}),
    "can replace it": (on_replaceable, {"oob_permutation", "drop_column"}),
    "cannot be told from 0": (on_unknown_loss, {"oob_permutation", "drop_column"}),
    "order left to chance": (on_order, {"oob_permutation"}),
    "cannot be told from noise": (on_noise, {"oob_permutation"}),
    "misleads them out of bag": (on_misleading, {"oob_permutation"}),
}


def _used_and_hardly_missed(comparison, is_bounded):
    """Used features among the leaders whose drop-column loss may be 0.

    Yields those with a small bound on the loss or, if not `is_bounded`, the others: their position,
    the start of a sentence, the drop-column result, and the upper bound.
    """
    used, missed = (comparison.results[name] for name in ("oob_permutation", "drop_column"))
    ranks = ranks_of(used.values)
    reach = REACH * missed.standard_error
    most = missed.values + reach
    is_meant = _is_above_zero(used) & (np.abs(missed.values) <= reach)
    is_meant &= (most <= SMALL * used.values) == is_bounded
    for j in np.argsort(ranks)[: min(LEADERS, -(-len(ranks) // 2))]:
        if is_meant[j]:
            text = (
                f"Permutation ranks {used.feature_names[j]} {ordinal(ranks[j])} "
                f"({_value(used, j)}), but without it the forest loses"
            )
            yield j, text, missed, most[j]


def _is_above_zero(result):
    return result.values > REACH * result.standard_error


def ordinal(n: int) -> str:
    """The ordinal of n, 1 being "first"; in words up to ten."""
    words = (
        *("first", "second", "third", "fourth", "fifth"),
        *("sixth", "seventh", "eighth", "ninth", "tenth"),
    )
    if n <= len(words):
        return words[n - 1]
    end = {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
    return f"{n}{'th' if n % 100 in (11, 12, 13) else end}"


def _list(names):
    names = [str(name) for name in names]
    if len(names) > 5:
        names = [*names[:4], f"{len(names) - 4} more"]
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]


def _range(correlation, members):
    """The rank correlation of two columns, or the range of those of all pairs."""
    pairs = correlation[np.ix_(members, members)][np.triu_indices(len(members), 1)]
    ends = f"{pairs.min():.2f}", f"{pairs.max():.2f}"
    return ends[0] if ends[0] == ends[1] else " to ".join(ends)


def _shares(values):
    """Shares of the sum of the positive values; a negative value has share 0."""
    positive = np.maximum(values, 0.0)
    return positive / (positive.sum() or 1.0)


def _over(result):
    """What the standard error is over, in short."""
    return result.uncertainty.partition(",")[0]


def _value(result, j, over=None):
    return f"{_pair(result, result.values[j], result.error(over)[j])} {over or _over(result)}"


def _pair(result, value, error):
    """A value with its uncertainty; numbers that are only rounding errors become 0."""
    return estimate(*past_rounding([value, error], result.values, ROUNDING))


def _short(result, j, value=None):
    """A value in the unit of the result, with two digits; a mere rounding error becomes 0."""
    value = result.values[j] if value is None else value
    return significant(float(past_rounding(value, result.values, ROUNDING)), 2)
