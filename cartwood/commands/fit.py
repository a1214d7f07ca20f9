"""`cartwood fit`: fit a forest to a table and save it."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from cartwood.commands import fitting, saved
from cartwood.terminal import say

HELP = "fit a forest to a table and save it to a file"
EXAMPLES = (
    "cartwood fit houses.csv --target price --save houses.safetensors",
    "cartwood fit flights.parquet --target late --trees 500 --save late.model",
)


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of a fit, and the file to save to."""
    fitting.add_arguments(parser)
    fitting.add_groups(parser)
    for kind, are in (
        ("surrogates", "that can stand in for it"), ("competitors", "that were nearly as good")
    ):  # fmt: skip
        words = f"with every split keep N on other columns {are}, for `cartwood show` (0)"
        parser.add_argument(f"--{kind}", type=fitting.positive, default=0, metavar="N", help=words)
    parser.add_argument("--save", type=Path, required=True, metavar="FILE", help="where to save it")


def run(args: Namespace) -> None:
    """Fit, save, and say how good the forest is."""
    training = fitting.load(args)
    kept = {"surrogates": args.surrogates, "competitors": args.competitors}
    model = fitting.grow(fitting.new_forest(training, args, **kept), training)
    saved.save(model, training, args.save)
    quality = fitting.quality(model, training)
    say(f"{quality[0].upper()}{quality[1:]}.")
    say(*fitting.doubts_on_copies(model, training.X, training.task.y), f"the model is {args.save}")
