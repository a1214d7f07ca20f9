"""Warnings that point at the line of the user, however deep in the importances they arise."""

import sys
from warnings import warn


def warn_user(text: str) -> None:
    """Warn, in the name of the line that called the importances."""
    frame, distance = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals["__name__"].startswith("importance."):
        frame, distance = frame.f_back, distance + 1
    warn(text, stacklevel=distance)
