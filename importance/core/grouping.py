"""The columns of a table, numbered by the group that they are permuted with."""

from typing import NamedTuple

import numpy as np

from importance.core.fitted_forest import names_of
from importance.core.groups import parse_groups


class Grouping(NamedTuple):
    """Which columns are permuted together."""

    names: np.ndarray  # (n_groups,) str
    group_of: np.ndarray  # (n_features,) int64: number of each column's group


def group_columns(groups, forest):
    """The groups of a forest's columns.

    Parameters
    ----------
    groups : see `importance.core.groups.parse_groups`
    forest : fitted forest

    Returns
    -------
    Grouping

    Raises
    ------
    ValueError
        If groups overlap or are empty, two have one name, or a column is not known.
    """
    names = names_of(forest)
    if groups is None:
        return Grouping(names, np.arange(len(names)))
    parsed = parse_groups(groups, names)
    group_of = np.empty(len(names), np.int64)
    for number, group in enumerate(parsed):
        group_of[group.columns] = number
    return Grouping(np.array([group.name for group in parsed], dtype=object), group_of)
