"""Surrogates and competitors in exported trees, as lines below their splits.

|--- worst radius <= 16.80
|   surrogate: worst area <= 868.2 (agree 0.99121, adj 0.97368)
|   competitor: worst area <= 884.55 (improvement 183.82)
|   |--- worst concave points <= 0.14
"""

import html
import re
from collections.abc import Sequence
from numbers import Integral
from typing import Any, NamedTuple

from cart.estimators.reading.words import alternative, number
from cart.tree.nodes import LEAF

# Documentation of the parameters that our exports have besides scikit-learn's.
PARAMETERS = """surrogates : int, default=0
    Number of surrogates to show per split, best first, each as the condition for going left. For
    trees of `cart` that keep some (`surrogates` of the fit).

competitors : int, default=0
    Number of competitors to show per split (`competitors` of the fit).

"""
_MOST_LEVELS = 10  # default max_depth of scikit-learn's export_text
_NODE = re.compile(r'(?ms)^(\d+) \[label=(["<].*?[">])((?:, fillcolor="#\w*")?\] ;)$')


class Shown(NamedTuple):
    """How many surrogates and competitors to show per split."""

    surrogates: int
    competitors: int

    @classmethod
    def of(cls, parameters: dict) -> "Shown":
        """Take the two numbers out of the parameters of an export.

        Raises
        ------
        ValueError
            If they are not non-negative integers.
        """
        counts = {name: parameters.pop(name, 0) for name in cls._fields}
        for name, count in counts.items():
            if not isinstance(count, Integral) or isinstance(count, bool) or count < 0:
                raise ValueError(f"{name} must be a non-negative whole number, but is {count!r}.")
        return cls(**counts)


def lines_of(estimator: Any, names: Sequence[str], shown: Shown) -> dict[int, list[str]]:
    """The lines to write below the split of each node that has any.

    Raises
    ------
    ValueError
        If the tree did not keep what is to be shown.
    """
    lines: dict[int, list[str]] = {}
    for kind, most in shown._asdict().items():
        if most == 0:
            continue
        kept = getattr(estimator.tree_, kind, None)
        if kept is None:
            raise ValueError(
                f"{kind}={most} cannot be shown, because the {type(estimator).__name__} was "
                f"fitted without any; fit it with {kind}={most}."
            )
        for node in range(estimator.tree_.node_count):
            for split in kept.of(node)[:most]:
                words = alternative(estimator, split, names=names)
                line = f"{kind[:-1]}: {words} ({_figures(split)})"
                lines.setdefault(node, []).append(line)
    return lines


def _figures(split):
    if hasattr(split, "improvement"):
        return f"improvement {number(split.improvement)}"
    return f"agree {number(split.agree)}, adj {number(split.adj)}"


def add_to_text(text: str, tree: Any, lines: dict[int, list[str]], parameters: dict) -> str:
    """Add the lines of nodes to the result of `export_text`, which was called with `parameters`.

    A line's indentation tells the depth of its node. The text has a node's line twice: first before
    its left child, then before its right one.
    """
    spacing = parameters.get("spacing", 3)
    unit = "|" + " " * spacing
    most_levels = parameters.get("max_depth", _MOST_LEVELS)
    path, is_left, written = [0], [True], []  # path: the nodes from the root to the current one
    # Names may contain line breaks, so a line of the text is one that begins as a node's does.
    for line in re.split(rf"\n(?=(?:\| {{{spacing}}})*\|-{{{spacing}}} )", text.removesuffix("\n")):
        written.append(line)
        depth = 0
        while line.startswith(unit, depth * len(unit)):
            depth += 1
        node = path[depth]
        if depth > most_levels or tree.children_left[node] == LEAF:
            continue
        if is_left[depth]:
            written += [unit * (depth + 1) + below for below in lines.get(node, ())]
        child = tree.children_left[node] if is_left[depth] else tree.children_right[node]
        path[depth + 1 :], is_left[depth:] = [child], [False, True]
    return "\n".join([*written, ""])


def add_to_graphviz(dot: str, tree: Any, lines: dict[int, list[str]], parameters: dict) -> str:
    """As `add_to_text`, for the result of `export_graphviz`."""
    is_html = parameters.get("special_characters", False)

    def extended(found):
        node, label, rest = found.groups()
        if label == '"(...)"':  # the picture is cut off here by max_depth
            return found[0]
        added = [html.escape(line, quote=False) if is_html else line.replace('"', r"\"")
                 for line in lines.get(int(node), ())]  # fmt: skip
        label = ("<br/>" if is_html else r"\n").join([label[:-1], *added]) + label[-1]
        return f"{node} [label={label}{rest}"

    return _NODE.sub(extended, dot)
