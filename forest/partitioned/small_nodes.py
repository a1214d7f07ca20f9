"""Small nodes: their rows are brought to one place, where their subtrees are grown as locally."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from cart.growth.general import Origin, create_workspace, grow_tree, make_records
from cart.growth.plan import Plan
from cart.table.ranking import MISSING
from cart.tree.tree import Tree
from forest.partitioned.open_rows import CompressedRows, NodeRows, take_rows

_ROWS_TAKEN = 1 << 18  # approximate number of rows whose codes are taken at once from held ones


def grow_below(
    pieces: Sequence[NodeRows], origins: Sequence[Origin], plan: Plan, table: Any,
    step: float | None,
) -> list[Tree]:  # fmt: skip
    """Grow the subtrees of some nodes.

    Parameters
    ----------
    pieces : sequence of NodeRows
        The nodes' rows in every partition, in the order of the rows.
    origins : sequence of Origin
        The nodes.
    plan : Plan
    table : Table or CategoricalTable
        Complete; without codes.
    step : float or None
        The length of a step of targets; None for classes.

    Returns
    -------
    list of Tree
    """
    sizes = np.sum([np.diff(piece.start) for piece in pieces], axis=0)
    most = int(sizes.max())
    workspace = create_workspace(plan, most, most, table)
    trees = []
    for i, origin in enumerate(origins):
        spans = [(piece, slice(*piece.start[i : i + 2])) for piece in pieces]
        codes = np.concatenate([piece.codes[:, span] for piece, span in spans], axis=1)
        targets = np.concatenate([piece.targets[span] for piece, span in spans]).astype(np.float64)
        weight = np.concatenate([piece.weight[span] for piece, span in spans])
        records = make_records(targets if step is None else targets * step, weight)
        wide = codes.astype(np.uint32, order="C")  # as the general path takes them
        wide[codes == np.iinfo(codes.dtype).max] = MISSING
        here = table._replace(codes=wide)
        mine = workspace._replace(table=workspace.table._replace(codes=wide))
        trees.append(grow_tree(here, records, plan, 0, mine, origin))
    return trees


def grow_below_held(
    lists: Sequence[CompressedRows], held: Sequence[tuple], origins: Sequence[Origin], *more: Any
) -> list[Tree]:
    """Grow the subtrees of some nodes in a process that holds the codes of all rows.

    Parameters
    ----------
    lists : sequence of CompressedRows
        The nodes' rows in every partition.
    held : sequence of (codes, targets)
        The codes and targets of every partition.
    origins : sequence of Origin
        The nodes.
    *more
        See `grow_below`.
    """
    trees: list[Tree] = []
    ends = np.sum([rows.start[1:] for rows in lists], axis=0)
    blocks = np.flatnonzero(np.diff((ends - 1) // _ROWS_TAKEN)) + 1
    parts = [
        (*of_part, listed.rows, listed.weight, listed.start)
        for of_part, listed in zip(held, lists, strict=True)
    ]
    for first, end in pairwise([0, *blocks.tolist(), len(origins)]):
        pieces = []
        for codes, targets, rows, weight, start in parts:
            span = slice(start[first], start[end])
            of_nodes = start[first : end + 1] - span.start
            pieces.append(take_rows(codes, targets, rows[span], weight[span], of_nodes))
        trees += grow_below(pieces, origins[first:end], *more)
    return trees
