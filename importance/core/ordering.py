"""Order features by a measure, the most important first; equal values keep their order."""

from collections.abc import Iterable, Sequence

import numpy as np

from importance.core.given import require_count


def descending(values: np.ndarray) -> np.ndarray:
    """Positions of the values, the largest first."""
    return np.argsort(-values, kind="stable")


def leading(values: np.ndarray, n: int, also: Iterable[int] = ()) -> np.ndarray:
    """Positions of the n largest values and of `also`, the largest last (on top in pictures)."""
    require_count("max_features", n)
    order = descending(values)
    is_shown = np.isin(order, list(also))
    is_shown[:n] = True
    return order[is_shown][::-1]


def ranks_of(values: np.ndarray) -> np.ndarray:
    """Rank of each value: 1 for the largest, and so on."""
    ranks = np.empty(len(values), np.int64)
    ranks[descending(values)] = np.arange(1, len(values) + 1)
    return ranks


def list_leaders(names: np.ndarray, values: np.ndarray, texts: Sequence[str]) -> str:
    """The five largest values in words: name and text of each."""
    words = (f"{names[j]} {texts[j]}" for j in descending(values)[:5])
    return ", ".join(words) + (", ..." if len(values) > 5 else "")
