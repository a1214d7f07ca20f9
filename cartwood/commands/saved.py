"""Saved models, together with the recipe that converts tables for them."""

from pathlib import Path
from typing import Any, NamedTuple

from cartwood.commands.fitting import Training
from cartwood.table import Recipe
from cartwood.terminal import UserError, writing


class Asked(NamedTuple):
    """The target of a saved model, and the recipe of its columns."""

    target: str
    recipe: Recipe


def save(model: Any, training: Training, path: Path) -> None:
    """Save a model; its attribute `table_` holds the target and the recipe of the columns."""
    model.table_ = {"target": training.target, **training.recipe._asdict()}
    with writing(path):
        model.save(path)


def load(path: Path) -> tuple[Any, Asked]:
    """Load a model, its target and its recipe.

    Raises
    ------
    UserError
        If the file was not written by `save`.
    """
    import forest

    try:
        model = forest.load(path)
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise UserError(str(error)) from error
    table = getattr(model, "table_", None)
    if table is None:
        raise UserError(
            f"{path} was not saved by `cartwood fit --save`, so the columns of its table are "
            "unknown; save the model with that command."
        )
    recipe = Recipe(table["kinds"], table["left_out"], table.get("units", {}))  # older: none
    return model, Asked(table["target"], recipe)
