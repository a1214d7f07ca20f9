"""Importances of a forest's columns, and what they say in words."""

from argparse import Namespace
from typing import Any

import numpy as np

from cartwood.commands import fitting
from cartwood.commands.fitting import Training
from cartwood.page import estimates, significant
from cartwood.terminal import Steps, named_version, say

TITLES = {
    "oob_permutation": "permutation",
    "unbiased_mdi": "unbiased MDI",
    "mdi": "MDI",
    "drop_column": "drop column",
    "mean_absolute_shap": "mean |SHAP|",
    "mean_absolute_shap_oob": "mean |SHAP| out of bag",
}
_CLEAR = 2.0  # standard errors from 0


def judge(model: Any, training: Training, args: Namespace) -> Any:
    """Every measure of the forest that does not need refits, and drop-column where asked for."""
    from importance import compare

    names = ["oob_permutation", "unbiased_mdi", "mdi"]
    if args.shap:
        names += ["mean_absolute_shap", "mean_absolute_shap_oob"]
    if args.refits:
        names.append("drop_column")
    else:
        say("drop-column importance is left out: it needs a forest per column (--refits)")
    with Steps("judging columns out of bag", 1):
        return compare(model, training.X, training.task.y, measures=names, n_jobs=args.n_jobs)


def ordered(result: Any) -> np.ndarray:
    """Positions of the columns, the most important first."""
    return np.argsort(-result.values, kind="stable")


def is_regression(training: Training) -> bool:
    """Is the target a number?"""
    return training.task.kind == "regression"


def table(comparison: Any) -> tuple[list[str], list[tuple[str, ...]]]:
    """Every column with value ± standard error by every measure, the most important first."""
    results = comparison.results
    order = ordered(results["oob_permutation"])
    columns = ["column", *(TITLES.get(name, name) for name in results)]
    cells = [
        estimates(result.values[order], result.standard_error[order]) for result in results.values()
    ]
    return columns, list(zip(map(str, comparison.feature_names[order]), *cells, strict=True))


def legend(comparison: Any) -> str:
    """What the measures of the table count."""
    return "\n".join(
        f"{TITLES.get(name, name)}: {result.unit}, ± standard error {result.uncertainty}."
        for name, result in comparison.results.items()
    )


def finding(model: Any, training: Training, comparison: Any) -> str:
    """What the table says: the finding in one sentence, the forest's quality in another."""
    quality = fitting.quality(model, training)
    if fitting.is_useless(model, training):
        return f"Nothing in this table predicts {training.target}: {quality}."
    result = comparison.results["oob_permutation"]
    first, *others = ordered(result)
    positive = np.maximum(result.values, 0.0)
    share = positive / (positive.sum() or 1.0)
    clear = [j for j in others[:2] if result.values[j] > _CLEAR * result.standard_error[j]]
    then = " and ".join(f"{result.feature_names[j]} ({share[j]:.0%})" for j in clear)
    unit = result.unit.removeprefix("increase in ").replace("loss of a tree", "loss of the trees")
    sentence = (
        f"{result.feature_names[first]} matters most for {training.target}, with "
        f"{share[first]:.0%} of the importance of all columns: permuting it raises the {unit} by "
        f"{significant(result.values[first])} ± {significant(result.standard_error[first], 2)}"
    )
    sentence += f"; then {'come' if len(clear) > 1 else 'comes'} {then}." if then else "."
    return f"{sentence} {quality[0].upper()}{quality[1:]}."


def how(model: Any, training: Training) -> str:
    """How the page was made."""
    return (
        f"Made by {named_version()}: {type(model).__name__} of {len(model.estimators_)} "
        f"trees, random_state={model.random_state}, on {training.name}."
    )
