"""Groups of columns that are judged together and have one importance each."""

from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np


class Group(NamedTuple):
    """Columns that are judged as one."""

    name: str
    columns: np.ndarray  # (n_columns,) int64, ascending


class Groups(list[Group]):
    """Every column in exactly one group."""

    @property
    def names(self) -> np.ndarray:
        """Names of the groups, (n_groups,) object array of str."""
        return np.array([group.name for group in self], dtype=object)

    @property
    def group_of(self) -> np.ndarray:
        """Position of each column's group, (n_features,) int64."""
        position = np.empty(sum(len(group.columns) for group in self), np.int64)
        for g, group in enumerate(self):
            position[group.columns] = g
        return position

    def sum(self, per_feature: np.ndarray) -> np.ndarray:
        """Sums over the columns of each group, along the last axis."""
        return np.stack([per_feature[..., group.columns].sum(axis=-1) for group in self], axis=-1)


def parse_groups(groups: Any, names: Iterable) -> Groups:
    """Parse a user's groups so that every column is in exactly one group.

    `groups` is a dict of str to list of columns, a list of lists of columns, or None; a column is
    given by name or position. A group without a name is named after its columns. Columns that are
    in none become groups of their own, after the others; if all do, columns may have the same name.
    Raises ValueError if groups overlap or are empty, if two have the same name, or if a column is
    unknown.
    """
    groups = () if groups is None else groups
    if not np.iterable(groups):
        raise TypeError(
            f"groups={groups!r} must be a list of lists of columns, or a dict of them by name."
        )
    names = np.asarray(names, dtype=object)
    named = groups if isinstance(groups, dict) else dict(enumerate(groups))
    found = Groups()
    name_of: dict[int, Any] = {}
    for key, members in named.items():
        columns = positions_of(members, names)
        if not len(columns):
            raise ValueError(f"Group {key!r} is empty; name at least one column.")
        name: Any = key
        if not isinstance(groups, dict):
            taken = {*np.delete(names, columns), *(group.name for group in found)}
            name = not_taken(" + ".join(map(str, names[columns])), taken)
        for column in columns:
            if column in name_of:
                raise ValueError(
                    f"Groups overlap: {names[column]!r} is in {name_of[column]!r} and {name!r}; a "
                    "column belongs to one group."
                )
            name_of[column] = name
        found.append(Group(str(name), columns))
    found += (Group(str(names[j]), np.array([j])) for j in range(len(names)) if j not in name_of)
    for twice, n_times in Counter(group.name for group in found).items():
        if n_times > 1 and name_of:
            raise ValueError(f"Two groups or columns are called {twice!r}; rename the group.")
    return found


def not_taken(name: str, taken: Iterable) -> str:
    """A name for a group, put in brackets if it is taken, say by a column called "a + b"."""
    while name in taken:
        name = f"({name})"
    return name


def positions_of(columns: Any, names: np.ndarray) -> np.ndarray:
    """Ascending positions, without repeats, of columns that are given by name or position."""
    columns = [columns] if isinstance(columns, (str, int, np.integer)) else columns
    if not np.iterable(columns):
        raise TypeError(f"{columns!r} is not a list of columns; list their names or positions.")
    return np.unique(np.array([_position(column, names) for column in columns], np.int64))


def _position(column: Any, names: np.ndarray) -> int:
    if isinstance(column, (int, np.integer)) and not isinstance(column, bool):
        if not -len(names) <= column < len(names):
            raise ValueError(f"Column {column} is not among the {len(names)} columns of X.")
        return int(column) % len(names)
    found = np.flatnonzero(names == column)
    if len(found) == 0:
        raise ValueError(f"Column {column!r} is not among the names of the columns of X.")
    return int(found[0])
