"""What commands that fit share: loading the table and the task, growing the forest."""

import os
import warnings
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cartwood.table import Recipe, Task, read
from cartwood.table.columns import doubts_on_numbers
from cartwood.table.task import KINDS
from cartwood.table.thousands import doubts_on_points
from cartwood.terminal import Steps, UserError, counted, nearest, say

MIN_ROWS = 8
_SINGLE_MAX = 2**24  # up to here single precision represents all whole numbers
MOST_ROWS = 100_000  # per tree: more take longer and change little


class Training(NamedTuple):
    """A table, prepared for fitting a forest.

    Attributes
    ----------
    name : str
        Name of the file.
    target : str
        Name of the column that is predicted.
    recipe : Recipe
    task : Task
    X : pandas.DataFrame
    doubts : tuple of str
        Sentences on columns that may mean something else than they were taken for.
    groups : ndarray of shape (n_rows,) or None
        Group number of each row; the rows of a group are in or out of bag together.
    """

    name: str
    target: str
    recipe: Recipe
    task: Task
    X: Any
    doubts: tuple[str, ...]
    groups: np.ndarray | None = None


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments for the table, and for how a forest is grown on it."""
    add = parser.add_argument
    add("data", type=Path, metavar="FILE", help="a .csv or .parquet file")
    add("--target", required=True, metavar="COLUMN", help="column to predict")
    add("--task", choices=KINDS, help="default: by the target's values")
    more = "leave out a column; may be repeated"
    add("--drop", action="append", default=[], metavar="COLUMN", help=more)
    add("--trees", type=positive, default=100, metavar="N", help="number of trees (100)")
    add("--seed", type=seed, default=0, metavar="N", help="the same seed gives the same forest (0)")
    add("--n-jobs", type=positive, default=os.cpu_count(), metavar="N", help="threads (all)")


def add_groups(parser: ArgumentParser) -> None:
    """Add the argument that says which rows belong together."""
    parser.add_argument(
        "--groups", metavar="COLUMN",
        help="rows with the same value, such as those of one patient or day, are out of bag "
        "together, so only trees that have seen none of them judge them; the column itself is "
        "left out",
    )  # fmt: skip


def positive(text: str) -> int:
    """A whole number of at least 1."""
    return _at_least(1, text)


def seed(text: str) -> int:
    """A whole number that can seed NumPy's generators."""
    number = not_negative(text)
    if number >= 2**32:
        raise ArgumentTypeError("must be below 2**32")
    return number


def not_negative(text: str) -> int:
    """A whole number of at least 0."""
    return _at_least(0, text)


def _at_least(least, text):
    number = int(text)
    if number < least:
        raise ArgumentTypeError(f"must be at least {least}")
    return number


def load(args: Namespace) -> Training:
    """Load the table of the arguments; print one line on how its columns are converted."""
    frame, grouped_by = read(args.data), getattr(args, "groups", None)
    left_out = [*args.drop, *([grouped_by] if grouped_by else [])]
    for name in (args.target, *left_out):
        if name not in frame.columns:
            hint = nearest(name, frame.columns)
            if frame.shape[1] == 1:
                hint += " Column names must be separated by commas, semicolons, tabs or |."
            raise UserError(f"{args.data} has no column {name!r}; {hint}")
    if args.target in left_out:
        what = "drop" if args.target in args.drop else "groups"
        raise UserError(f"--{what} {args.target}: this is the target, which cannot be left out.")
    table, target = frame, frame[args.target]
    task = Task.of(target, args.task)
    groups = _groups_of(frame.loc[task.has_target, grouped_by]) if grouped_by else None
    frame = frame.loc[task.has_target].drop(columns=[args.target, *left_out])
    n_dropped = np.count_nonzero(~task.has_target)
    if len(frame) < MIN_ROWS:
        rows = counted(len(frame), "row") + (f" with {args.target}" if n_dropped else "")
        raise UserError(f"{args.data} has {rows}; at least {MIN_ROWS} are needed.")
    recipe = Recipe.of(frame)
    X = recipe.apply(frame)
    dropped = f" ({n_dropped:,} more have no {args.target} and are left out)" if n_dropped else ""
    say(f"{args.data.name}: {len(X):,} rows{dropped}; {recipe.in_words(X)}")
    points = doubts_on_points(args.data, table[[args.target, *frame.columns]])
    on_target = (*doubts_on_numbers(target), *(f"{args.target}: {x}" for x in task.doubts()))
    doubts = (*on_target, *recipe.doubts(frame), *points)
    say(*doubts)
    return Training(args.data.stem, args.target, recipe, task, X, doubts, groups)


def _groups_of(column):
    """The group number of every row; prints how many groups there are."""
    groups, names = column.factorize()
    n_missing = np.count_nonzero(groups < 0)
    if n_missing:
        raise UserError(
            f"--groups {column.name}: the column is empty in {counted(n_missing, 'row')}; fill in "
            "these cells, or remove the rows."
        )
    if len(names) < MIN_ROWS:
        raise UserError(
            f"--groups {column.name}: the column divides the rows into "
            f"{counted(len(names), 'group')}; at least {MIN_ROWS} are needed, so that some are in "
            "bag and some out."
        )
    if len(names) == len(column):
        raise UserError(
            f"--groups {column.name}: every row has a value of its own, so the column does not "
            "group rows; use one that rows share, such as the day instead of the time."
        )
    say(f"rows with the same {column.name} are in or out of bag together: {len(names):,} groups")
    return groups


def new_forest(training: Training, args: Namespace, **parameters: Any) -> Any:
    """An unfitted forest for the table, precise enough to keep dates and ids exact."""
    import forest

    kind = "Classifier" if training.task.kind == "classification" else "Regressor"
    if (training.X.select_dtypes("number").abs() > _SINGLE_MAX).any(axis=None):
        parameters["precision"] = "float64"
    if kind == "Regressor":  # as in R's forests: trees differ more, and take a third of the time
        parameters["max_features"] = 1 / 3
    if len(training.X) > MOST_ROWS:
        is_grouped = training.groups is not None  # then a number would count groups
        parameters["max_samples"] = MOST_ROWS / len(training.X) if is_grouped else MOST_ROWS
        about = "about " if is_grouped else ""
        say(f"every tree is grown on its own draw of {about}{MOST_ROWS:,} rows")
    return getattr(forest, f"RandomForest{kind}")(
        args.trees, oob_score=True, random_state=args.seed, n_jobs=args.n_jobs,
        categorical_features=training.recipe.categorical or None, **parameters,
    )  # fmt: skip


def grow(model: Any, training: Training) -> Any:
    """Fit the forest, with a progress bar over its trees."""
    n_trees = model.n_estimators
    with Steps(f"growing {counted(n_trees, 'tree')}", n_trees) as step:
        model.set_params(callback=step)
        with quiet_about_rows_in_every_bag():
            model.fit(training.X, training.task.y, groups=training.groups)
        return model.set_params(callback=None)


@contextmanager
def quiet_about_rows_in_every_bag() -> Iterator[None]:
    """Silence warnings about rows that are never out of bag: the user chose few trees."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*(never out of bag|OOB scores)")
        yield


def quality(model: Any, training: Training) -> str:
    """One phrase on how well the forest predicts out-of-bag rows."""
    score = model.oob_score_
    if training.task.kind == "regression":
        return f"out of bag, the forest explains {score:z.1%} of the variance of {training.target}"
    return (
        f"out of bag, the forest is right in {score:.1%} of the rows, while always predicting the "
        f"most frequent class would be right in {_largest_share(training.task.y):.1%}"
    )


def doubts_on_copies(model: Any, X: Any, y: Any) -> Iterator[str]:
    """A sentence on training rows that occur more than once in the table, if there are many."""
    from forest.inference.repeated_rows import doubts_on_repeated_rows
    from importance.core.fitted_forest import check_forest  # slow to import

    return doubts_on_repeated_rows(check_forest(model, X, y))


def is_useless(model: Any, y: Any) -> bool:
    """Whether the forest is no better out of bag than always predicting the mean.

    A classifier is useless if it is neither right in more rows than the most frequent class would
    be, nor better by the Brier loss than the class shares. The latter matters for a rare class:
    a forest may know much about it without being right in more rows.
    """
    said = getattr(model, "oob_decision_function_", None)
    if said is None:
        return model.oob_score_ <= 0.0
    share = _largest_share(y)
    if model.oob_score_ > share + np.sqrt(share * (1.0 - share) / len(y)):
        return False
    known = said.sum(axis=1) > 0.0  # not nan, nor scikit-learn's 0 for rows never out of bag
    truth = (np.asarray(y)[:, np.newaxis] == model.classes_)[known].astype(np.float64)
    return ((said[known] - truth) ** 2).sum() >= ((truth.mean(axis=0) - truth) ** 2).sum()


def _largest_share(y):
    """Share of the most frequent class."""
    return np.unique(y, return_counts=True)[1].max() / len(y)
