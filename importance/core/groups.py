"""Sets of columns that are judged together, one importance each."""

from collections import Counter
from typing import NamedTuple

import numpy as np


class Group(NamedTuple):
    """Columns that are judged as one."""

    name: str
    columns: np.ndarray  # (n_columns,) int64, ascending


def parse_groups(groups, names):
    """Every column in exactly one group.

    Parameters
    ----------
    groups : dict of str to list of columns, list of lists of columns, or None
        A column is a name or a position. A group without a name is called after its columns.
        Columns in none of them are groups of their own, which stand behind the others; None makes
        every column one.
    names : ndarray of shape (n_features,), str

    Returns
    -------
    list of Group

    Raises
    ------
    ValueError
        If groups overlap or are empty, two have one name, or a column is not known.
    """
    names = np.asarray(names, dtype=object)
    named = groups if isinstance(groups, dict) else dict(enumerate(groups or ()))
    found, owner = [], {}
    for key, members in named.items():
        members = [members] if isinstance(members, (str, int, np.integer)) else list(members)
        if not members:
            raise ValueError(f"Group {key!r} is empty; name at least one column.")
        columns = np.unique([_position(column, names) for column in members])
        name = key if isinstance(groups, dict) else " + ".join(map(str, names[columns]))
        for column in columns:
            if column in owner:
                raise ValueError(
                    f"Groups overlap: {names[column]!r} is in {owner[column]!r} and {name!r}; a "
                    "column belongs to one group."
                )
            owner[column] = name
        found.append(Group(str(name), columns))
    alone = [j for j in range(len(names)) if j not in owner]
    found += [Group(str(names[j]), np.array([j])) for j in alone]
    for name, n_times in Counter(group.name for group in found).items():
        if n_times > 1:
            raise ValueError(f"Two groups or columns are called {name!r}; rename the group.")
    return found


def _position(column, names):
    if isinstance(column, (int, np.integer)) and not isinstance(column, bool):
        if not -len(names) <= column < len(names):
            raise ValueError(f"Column {column} is not among the {len(names)} columns of X.")
        return int(column) % len(names)
    found = np.flatnonzero(names == column)
    if len(found) == 0:
        raise ValueError(f"Column {column!r} is not among the names of the columns of X.")
    return int(found[0])
