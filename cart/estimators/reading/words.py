"""Conditions, numbers and predictions of a tree in words."""

from typing import Any

import numpy as np

from cart.estimators.class_costs import cheapest, true_shares

MOST_NAMED = 8  # a condition lists at most this many categories
_MANY_DIGITS = 1e4


def number(value: float) -> str:
    """A number with five significant digits."""
    return f"{value:.5g}"


def is_of_dates(estimator: Any, feature: int) -> bool:
    """Whether the values of a feature are seconds that stand for dates."""
    dates = getattr(estimator, "_are_dates", None)
    return dates is not None and bool(dates[feature])


def _threshold_in_words(estimator: Any, feature: int, threshold: float) -> str:
    """A threshold with seven digits, which keep it between the values that it parts, or with twelve
    from 10,000 on: -122.235 must not become -122.23, nor 12345.5 become 12346. Or as a date.
    """
    if is_of_dates(estimator, feature):
        time = str(np.datetime64(round(threshold * 1e6), "us")).replace("T", " ")
        return time.removesuffix(".000000").removesuffix(" 00:00:00")
    return f"{threshold:.7g}" if abs(threshold) < _MANY_DIGITS else f"{threshold:.12g}"


def rows_in_words(n: int) -> str:
    """A number of rows, in words."""
    return "1 row" if n == 1 else f"{n} rows"


def name_of(estimator: Any, feature: int) -> str:
    """The name of a feature, or x[number] if features have no names."""
    names = getattr(estimator, "feature_names_in_", None)
    return f"x[{feature}]" if names is None else str(names[feature])


def names_of_categories(estimator: Any, feature: int, codes: Any, most: int = MOST_NAMED) -> str:
    """Some categories of a feature as a set that lists the first `most` of them by name."""
    codes = [int(code) for code in codes]
    named = [str(c) for c in estimator.categories_[feature][codes[:most]]]
    if len(codes) > most:
        named.append(f"{len(codes) - most} more")
    return "{" + ", ".join(named) + "}"


def condition(estimator: Any, node: int, is_left: bool, names: Any = None) -> str:
    """The condition that sends rows to the left or right of a split by their values.

    `names` are the names of the features, by default the estimator's.
    """
    tree = estimator.tree_
    feature, threshold = tree.feature[node], tree.threshold[node]
    name = name_of(estimator, feature) if names is None else names[feature]
    if np.isnan(threshold):
        listed, listed_left = tree.categories.of(node)
        if not len(listed):
            return f"{name} is {'missing' if listed_left == is_left else 'known'}"
        members = names_of_categories(estimator, feature, listed)
        return f"{name} {'in' if listed_left == is_left else 'not in'} {members}"
    if np.isinf(threshold):
        return f"{name} is {'known' if is_left else 'missing'}"
    return f"{name} {'<=' if is_left else '>'} {_threshold_in_words(estimator, feature, threshold)}"


def alternative(estimator: Any, split: Any, is_left: bool = True, names: Any = None) -> str:
    """The condition under which a surrogate or competitor sends rows to the left or right.

    `names` are the names of the features, by default the estimator's.
    """
    name = name_of(estimator, split.feature) if names is None else names[split.feature]
    if np.isnan(split.threshold):
        codes = split.left if is_left else split.right
        return f"{name} in {names_of_categories(estimator, split.feature, codes)}"
    sign = "<=" if getattr(split, "low_left", True) == is_left else ">"
    return f"{name} {sign} {_threshold_in_words(estimator, split.feature, split.threshold)}"


def answer(estimator: Any, node: int) -> str:
    """What a node predicts, for one output or several."""
    values = estimator.tree_.value[node]
    if not hasattr(estimator, "classes_"):
        return "predicts " + ", ".join(number(mean) for mean in values[:, 0])
    classes = estimator.classes_ if estimator.n_outputs_ > 1 else [estimator.classes_]
    loss = getattr(estimator, "loss_", None)
    values = true_shares(values, loss)
    each = []
    for labels, shares, best in zip(classes, values, cheapest(values, loss), strict=True):
        # `labels` stays an array, since .tolist() would turn dates into numbers.
        met = [(name, share) for name, share in zip(labels, shares, strict=False) if share > 0.0]
        named = ", ".join(f"{name} {share:.1%}" for name, share in met)
        each.append(f"{labels[best]} ({named})")
    return "predicts " + "; ".join(each)
