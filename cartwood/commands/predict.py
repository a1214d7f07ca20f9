"""`cartwood predict`: predictions of a saved model for the rows of a table, as CSV."""

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from cartwood.commands import saved
from cartwood.table import read
from cartwood.terminal import say, writing

HELP = "predict the rows of a table with a saved model, as CSV"
EXAMPLES = (
    "cartwood predict houses.safetensors new.csv > predictions.csv",
    "cartwood predict late.model new.parquet --output predictions.csv",
)


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments for the model, the table, and where the predictions go."""
    add = parser.add_argument
    add("model", type=Path, metavar="FILE", help="a model that `cartwood fit --save` wrote")
    add("data", type=Path, metavar="TABLE", help="a .csv or .parquet file with the same columns")
    add("--output", type=Path, metavar="FILE", help="where to write them (standard output)")


def run(args: Namespace) -> None:
    """Write a row of predictions for every row of the table."""
    model, training = saved.load(args.model)
    frame = read(args.data, training.recipe.texts)
    X = training.recipe.apply(frame)
    say(*training.recipe.doubts_on_new(frame))
    _say_what_is_new(model, X)
    predictions = _predictions(model, training.target, X)
    if args.output is None:
        predictions.to_csv(sys.stdout, index=False)
    else:
        with writing(args.output):
            predictions.to_csv(args.output, index=False)
        say(f"{len(X):,} predictions are in {args.output}")


def _predictions(model: Any, target: str, X: Any) -> Any:
    """The predictions and, in classification, the share of every class."""
    import pandas as pd

    if not hasattr(model, "classes_"):
        return pd.DataFrame({target: model.predict(X)})
    shares = model.predict_proba(X)
    frame = pd.DataFrame({target: model.classes_[shares.argmax(axis=1)]})
    for label, column in zip(model.classes_, shares.T, strict=True):
        frame[f"{target}={label}"] = column
    return frame


def _say_what_is_new(model, X):
    """Report how many rows have categories that training did not have."""
    from cart import count_unseen

    for name, n_new in zip(X.columns, count_unseen(model, X), strict=True):
        if n_new:
            rows, them = ("row has", "it") if n_new == 1 else ("rows have", "them")
            say(
                f"{name}: {n_new:,} {rows} a value that training did not have; trees send {them} "
                "the way of most rows"
            )
