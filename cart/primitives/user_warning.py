"""Warnings that point at the user's line, however deep in the library they arise."""

import sys
from warnings import warn

_INSIDE = ("cart.", "forest.", "importance.", "sklearn.", "joblib.")


def warn_user(text: str, kind: type[Warning] = UserWarning) -> None:
    """Issue a warning that points at the line that called the library."""
    frame, distance = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(_INSIDE):
        frame, distance = frame.f_back, distance + 1
    warn(text, kind, stacklevel=distance)
