"""`cartwood show`: a tree of a saved model, as text or as a picture."""

import re
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from textwrap import wrap
from typing import Any

import numpy as np

from cartwood.commands import saved
from cartwood.commands.fitting import not_negative, positive
from cartwood.terminal import UserError, counted, require, say

KINDS = ("surrogates", "competitors")
_LETTERS, _LINES = 20, 9  # width and height of a node's text in a picture
HELP = "show a tree of a saved model, as text or as a picture"
EXAMPLES = (
    "cartwood show houses.safetensors",
    "cartwood show houses.safetensors --tree 3 --depth 4 --output tree.svg",
)


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments for the model, which tree, how deep, and where to."""
    add = parser.add_argument
    add("model", type=Path, metavar="FILE", help="a model that `cartwood fit --save` wrote")
    add("--tree", type=int, default=0, metavar="N", help="number of the tree, from 0 (0)")
    add("--depth", type=not_negative, default=3, metavar="N", help="levels to show (3)")
    for kind in KINDS:
        words = f"show N {kind} of every split, in text only (0); see `cartwood fit --{kind}`"
        add(f"--{kind}", type=positive, default=0, metavar="N", help=words)
    add("--output", type=Path, metavar="FILE", help="draw a picture: .svg, .png or .pdf")


def run(args: Namespace) -> None:
    """Print the tree, or draw it."""
    model, training = saved.load(args.model)
    tree = _tree_of(model, args.tree)
    names, labels = list(training.recipe.kinds), getattr(model, "classes_", None)
    labels = None if labels is None else [str(label) for label in labels]
    say(f"{type(model).__name__} for {training.target}: {training.recipe.in_words()}")
    _refuse_to_show(tree, args)
    if args.output is None:
        from cart import export_text

        shown = {kind: getattr(args, kind) for kind in KINDS}
        parameters = {"class_names": labels, "max_depth": args.depth, **shown}
        text = export_text(tree, feature_names=names, **parameters)
        print(_with_dates(text, training.recipe.dates), end="")
        return
    require("matplotlib", "plot").use("Agg")
    _save(draw(tree, names, labels, args.depth, training.recipe.dates), args.output)
    say(f"the picture is {args.output}")


def _with_dates(text: str, names: Iterable[str]) -> str:
    """Replace the seconds in conditions on these columns by dates, which people can read."""
    for name in names:
        said = rf"{re.escape(name)} (<=| >|>)( *)(-?\d+(?:\.\d+)?)"
        condition = rf"^(|\|.*(?:--- |surrogate: |competitor: )){said}(?=$| \()"
        text = re.sub(condition, partial(_with_date, name), text, flags=re.MULTILINE)
    return text


def _with_date(name, found):
    before, sign, blanks, seconds = found.groups()
    time = np.datetime64(int(float(seconds)), "s")
    date = str(time).replace("T", " ").removesuffix(" 00:00:00")
    return f"{before}{name} {sign}{blanks}{date}"


def _tree_of(model: Any, number: int) -> Any:
    trees = getattr(model, "estimators_", [model])
    if not 0 <= number < len(trees):
        has = counted(len(trees), "tree")
        raise UserError(f"--tree {number}: the model has {has}, numbered from 0.")
    return trees[number]


def _refuse_to_show(tree, args):
    """Refuse surrogates and competitors that the model did not keep, or that a picture lacks."""
    for kind in KINDS:
        most = getattr(args, kind)
        if most and args.output is not None:
            raise UserError(f"--{kind}: pictures do not show {kind}; omit --output.")
        if most and getattr(tree.tree_, kind) is None:
            raise UserError(f"--{kind}: the model has none; fit it with --{kind} {most}.")


def draw(
    tree: Any, names: Sequence[str], labels: Sequence[str] | None, depth: int,
    dates: Sequence[str] = (),
) -> Any:  # fmt: skip
    """A figure of the upper levels of a tree, wide enough for its nodes to be readable.

    `dates` are the columns whose values are dates in seconds.
    """
    import matplotlib.pyplot as plt

    from cart import plot_tree
    from importance.core.plots import short_names

    depth = min(depth, tree.get_depth())
    size = 2.7 * 2**depth + 1.0, 1.7 * (depth + 2)
    figure, ax = plt.subplots(figsize=size, layout="constrained")
    with plt.rc_context({"text.parse_math": False}):  # a name may be "$a^$"
        nodes = plot_tree(
            tree, feature_names=list(short_names(names)), class_names=labels, max_depth=depth,
            filled=True, rounded=True, fontsize=8, ax=ax,
        )  # fmt: skip
    for node in nodes:
        node.set_text(_folded(_with_dates(node.get_text(), short_names(dates))))
    return figure


def _folded(text):
    """The text of a node, wrapped to the width and cut to the height that it has room for."""
    lines = [part for line in text.split("\n") for part in wrap(line, _LETTERS)]
    return "\n".join(lines if len(lines) <= _LINES else [*lines[: _LINES - 4], "…", *lines[-3:]])


def _save(figure, path):
    try:
        figure.savefig(path, dpi=150)
    except ValueError as error:
        raise UserError(f"--output {path}: {error}") from error
