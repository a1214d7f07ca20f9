"""Errors that a user can mend, in one line."""

from collections.abc import Iterable
from difflib import get_close_matches
from importlib import import_module
from typing import Any


class UserError(Exception):
    """What is wrong and how to mend it, in one line; the exit code is 2."""


def require(module: str, extra: str) -> Any:
    """A module that is not among the dependencies, or the extra that brings it.

    Raises
    ------
    UserError
        If it is not installed.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        if (error.name or "").partition(".")[0] != package:
            raise
        raise UserError(
            f'{package} is not installed; pip install "cartwood[{extra}]" brings it.'
        ) from error


def nearest(name: str, known: Iterable[Any]) -> str:
    """The names that are most like one that does not exist: "did you mean a, b?", or all."""
    names = [str(each) for each in known]
    folded = {each.casefold(): each for each in names}
    found = get_close_matches(name.casefold(), folded, n=3, cutoff=0.6)
    if found:
        return f"did you mean {', '.join(folded[each] for each in found)}?"
    some = ", ".join(names[:20])
    return f"there are {some}" + (f" and {len(names) - 20} more." if len(names) > 20 else ".")
