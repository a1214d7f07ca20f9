"""Importances of a forest's columns, and conclusions in words."""

from argparse import ArgumentParser, Namespace
from typing import Any

import numpy as np

from cartwood.commands import fitting
from cartwood.commands.fitting import Training
from cartwood.page import estimates
from cartwood.terminal import Phases, named_version, say

TITLES = {
    "oob_permutation": "permutation",
    "unbiased_mdi": "unbiased MDI",
    "mdi": "MDI",
    "drop_column": "drop column",
    "mean_absolute_shap": "mean |SHAP|",
    "mean_absolute_shap_oob": "mean |SHAP| out of bag",
}
MAX_ROWS = 10_000  # out-of-bag rows that judge a tree: more take longer and change little
PHASES = {
    "oob_permutation": "permuting columns out of bag",
    "unbiased_mdi": "judging splits out of bag",
    "drop_column": "growing the forest again without each column",
    "jointly": "permuting correlated columns together",
    "mean_absolute_shap": "explaining rows (SHAP)",
    "mean_absolute_shap_oob": "explaining rows out of bag (SHAP)",
}
PARTS = ("unbiased_mdi", "mdi", "jointly")  # can be left out
CLEAR = 2.0  # standard errors from 0
MANY = 20  # distinct values from which on a column may say whom rows belong to


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments for further measures, and for the number of rows that judge trees."""
    add = parser.add_argument
    add("--refits", action="store_true", help="also drop-column importance: one refit per column")
    add("--shap", action="store_true", help="also mean |SHAP|, by all trees and out of bag")
    add(
        "--exact", action="store_true",
        help=f"judge each tree on all its out-of-bag rows, not on {MAX_ROWS:,} drawn ones",
    )  # fmt: skip
    add(
        "--without", action="append", default=[], choices=(*PARTS, "pictures"), metavar="PART",
        help=f"leave out a part: {', '.join(PARTS)} or pictures; may be repeated",
    )  # fmt: skip


def judge(model: Any, training: Training, args: Namespace) -> Any:
    """Compute every measure that needs no refits, and drop-column importance if asked for."""
    from importance import compare

    names = ["oob_permutation", *(name for name in PARTS[:2] if name not in args.without)]
    if args.shap:
        names += ["mean_absolute_shap", "mean_absolute_shap_oob"]
    if not args.refits:
        say("drop-column importance is left out: it needs a forest per column (--refits)")
    elif training.X.shape[1] == 1:
        say("drop-column importance is left out: the table has only one column")
    else:
        names.append("drop_column")
    for name in args.without:
        say(f"{name} {'are' if name == 'pictures' else 'is'} left out (--without {name})")
    max_rows = None if args.exact else MAX_ROWS
    with Phases(PHASES) as step:
        comparison = compare(
            model, training.X, training.task.y, measures=names, max_rows=max_rows,
            without=["jointly"] if "jointly" in args.without else [],
            n_jobs=args.n_jobs, callback=step,
        )  # fmt: skip
    how = drawn(comparison.results["oob_permutation"])
    if how:
        say(f"{how}; --exact uses all")
    return comparison


def drawn(result: Any) -> str:
    """A phrase on how many rows judged each tree, if these were drawn; else empty."""
    n = result.max_rows
    return "" if n is None else f"each tree is judged on {n:,} out-of-bag rows, drawn at random"


def ordered(result: Any) -> np.ndarray:
    """Positions of the columns, the most important first."""
    return np.argsort(-result.values, kind="stable")


def is_regression(training: Training) -> bool:
    """Whether the target is a number."""
    return training.task.kind == "regression"


def table(comparison: Any) -> tuple[list[str], list[tuple[str, ...]]]:
    """Every column with value ± standard error for every measure, the most important first."""
    results = comparison.results
    order = ordered(results["oob_permutation"])
    columns = ["column", *(TITLES.get(name, name) for name in results)]
    cells = [
        estimates(result.values[order], result.standard_error[order]) for result in results.values()
    ]
    return columns, list(zip(map(str, comparison.feature_names[order]), *cells, strict=True))


def legend(comparison: Any) -> str:
    """The units of the measures in the table."""
    lines = [
        f"{TITLES.get(name, name)}: {result.unit}, ± standard error {result.uncertainty}."
        for name, result in comparison.results.items()
    ]
    how = drawn(comparison.results["oob_permutation"])
    if how:
        lines.append(f"permutation: {how}; the standard error includes the effect of the draw.")
    return "\n".join(lines)


def finding(model: Any, training: Training, comparison: Any) -> str:
    """The result in words: the finding, then the quality of the forest and reservations."""
    quality = fitting.quality(model, training)
    result = comparison.results["oob_permutation"]
    first, *others = ordered(result)
    positive = np.maximum(result.values, 0.0)
    share = positive / (positive.sum() or 1.0)
    is_clear = result.values > CLEAR * result.standard_error  # False if the error is nan
    clear = [j for j in others[:2] if is_clear[j]]
    then = " and ".join(f"{result.feature_names[j]} ({share[j]:.0%})" for j in clear)
    unit = result.unit.removeprefix("increase in ").replace("loss of a tree", "loss of the trees")
    name = result.feature_names[first]
    value, error = result.values[[first]], result.standard_error[[first]]
    harms = f"permuting it raises the {unit} by {estimates(value, error)[0]}"
    if fitting.is_useless(model, training.task.y):
        if not is_clear[first]:
            target = training.target
            return f"The forest finds nothing in this table that predicts {target}: {quality}."
        than = "its mean" if is_regression(training) else "the shares of its classes"
        return (
            f"The forest as a whole predicts {training.target} no better than {than}, though "
            f"{name} helps ({harms}): {quality}."
        )
    rivals = _rivals(result, first, others) if is_clear[first] else ""
    sentence = (
        f"{name} {'comes first' if rivals else 'matters most'} for {training.target}, with "
        f"{share[first]:.0%} of the importance of all columns"
        if is_clear[first]
        else f"Which column matters most for {training.target} is unknown, because even the first, "
        f"{name}, is not {CLEAR:g} standard errors above 0"
    )
    sentence += f": {harms}"
    sentence += f"; next {'come' if len(clear) > 1 else 'comes'} {then}." if then else "."
    leaders = [result.feature_names[j] for j in (first, *clear) if is_clear[j]]
    others = [
        text for text in (rivals, quality, _on_new_rows(training, leaders), drawn(result)) if text
    ]
    return " ".join((sentence, *(f"{text[0].upper()}{text[1:]}." for text in others)))


def _on_new_rows(training, leaders):
    """What a leading column does not say about new rows, in words.

    A column of many names, such as patients, says nothing about rows of other names; a date says
    nothing about later rows.
    """
    for name in leaders:
        values = training.X[name]
        if name in training.recipe.dates:
            last = np.datetime64(int(values.max()), "s").astype("M8[D]")
            return (
                f"what the trees learn from {name} holds up to {last}: they treat later rows like "
                "the last ones, and no out-of-bag row is later"
            )
        is_named = name in training.recipe.categorical and values.nunique() >= MANY
        if is_named and training.groups is None:
            return (
                f"what the trees learn from {name} holds only for its {values.nunique():,} values; "
                f"--groups {name} judges the other columns on rows with other values"
            )
    return ""


def _rivals(result, first, others):
    """A phrase on columns that may matter as much as the first, given the errors; else empty."""
    error = np.hypot(result.standard_error[first], result.standard_error)
    is_clear = result.values[first] - result.values > CLEAR * error
    names = [str(result.feature_names[j]) for j in others if not is_clear[j]]
    if not names:
        return ""
    *named, last = [*names[:2], f"{len(names) - 2} more"] if len(names) > 2 else names
    rivals = f"{', '.join(named)} and {last}" if named else last
    return f"within these errors, {rivals} may matter as much as {result.feature_names[first]}"


def how(model: Any, training: Training) -> str:
    """One sentence on how the page was made."""
    about = "" if training.groups is None else "about "
    is_drawn = model.max_samples is not None
    each = f", each on its own draw of {about}{fitting.MOST_ROWS:,} rows" if is_drawn else ""
    return (
        f"Made by {named_version()}: {type(model).__name__} of {len(model.estimators_)} "
        f"trees{each}, random_state={model.random_state}, on {training.name}."
    )
