"""Descriptions of parameters that many functions share, inserted into their docstrings."""

import re
from collections.abc import Callable
from textwrap import indent
from typing import TypeVar

F = TypeVar("F", bound=Callable)

_TABLE = """\
X : array-like or sparse matrix of shape (n_samples, n_features)
    The table the forest was fitted on.
y : array-like of shape (n_samples,)"""

_N_JOBS = """\
n_jobs : int, default=None
    Threads; the result does not depend on it."""


def _progress(step):
    return f"""\
verbose : int, default=0
    1 shows a bar with the time left on standard error; a step is a {step}.
callback : callable, default=None
    Called with `n_done`, `n_total`, `seconds` and `seconds_left` after every {step}."""


_PARAMETERS = {
    "bootstrapped": f"""\
forest : fitted random forest, ours or scikit-learn's
    With bootstrap=True.
{_TABLE}""",
    "refitted": f"""\
forest : fitted random forest, ours or scikit-learn's
    Refits are made by our trees.
{_TABLE}
    A UserWarning tells if many rows of (X, y) occur more than once: noise then gets small
    p-values.""",
    "measure": """\
measure : callable, default=None
    `measure(forest, X, y)` returns Importances; exact `oob_permutation` with the Brier score
    or squared error by default. (Of `mdi`: `lambda forest, X, y: mdi(forest)`.)""",
    "random_state": """\
random_state : int, RandomState instance or None, default=None
    Seed of the permutations and the refits.""",
    "groups": """\
groups : dict of str to list of columns, or list of lists of columns, default=None
    Sets of columns that are judged together: the sum of their values.""",
    "permuted_groups": """\
groups : dict of str to list of columns, or list of lists of columns, default=None
    Columns that are permuted together, with one entry per group; other columns have their own.""",
    "n_jobs": _N_JOBS,
    "progress": _N_JOBS + "\n" + _progress("refit"),
    "progress_of_parts": _N_JOBS + "\n" + _progress("part of the rows and trees"),
    "watched": _N_JOBS + "\n" + _progress("tree"),
    "reported": _progress("tree"),
    "reported_parts": _progress("partition, each twice"),
    "refit_errors": """\
Raises
------
TypeError, ValueError
    If the forest cannot be refitted (see `Refits.of`), or what `measure` raises.""",
}


def with_shared_parameters(function: F) -> F:
    """Replace every line `%(name)s` of a docstring by the shared description of that name."""
    if function.__doc__ is not None:
        function.__doc__ = re.sub(
            r"^( *)%\((\w+)\)s$",
            lambda line: indent(_PARAMETERS[line[2]], line[1]),
            function.__doc__,
            flags=re.MULTILINE,
        )
    return function
