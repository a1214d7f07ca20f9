"""`cartwood importance`: which columns matter, as a table on standard output and as a page."""

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from functools import partial
from html import escape
from pathlib import Path
from typing import Any

from cartwood import page
from cartwood.commands import fitting, judging
from cartwood.terminal import Steps, print_table, say

HELP = "show which columns matter for a target, with uncertainties, as a table and a page"
EXAMPLES = (
    "cartwood importance houses.csv --target price",
    "cartwood importance flights.parquet --target delay --drop flight_id --output delay.html",
    "cartwood importance houses.csv --target price --refits   # what nothing else can replace",
    "cartwood importance visits.csv --target pressure --groups patient   # rows go together",
)
TOP = 25  # columns that plots show


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of a fit, of judging, and where the page goes."""
    fitting.add_arguments(parser)
    fitting.add_groups(parser)
    judging.add_arguments(parser)
    where = "where to write the page (importance-TABLE.html)"
    parser.add_argument("--output", type=Path, metavar="FILE", help=where)


def run(args: Namespace) -> None:
    """Fit and judge a forest, print the table, and write the page."""
    training = fitting.load(args)
    model = fitting.grow(fitting.new_forest(training, args), training)
    comparison = judging.judge(model, training, args)
    lead = judging.finding(model, training, comparison)
    columns, rows = judging.table(comparison)
    say("", lead)
    print_table(columns, rows)
    say(*(f"! {text}" for text in comparison.warnings))
    path = args.output
    with Steps("drawing", 1):
        blocks_ = _blocks(model, training, comparison, "pictures" not in args.without)
        page.write(path, f"What matters for {training.target}", lead, blocks_)
    say(f"the page is {path.resolve().as_uri() if path.is_absolute() else path}")


def _blocks(
    model: Any, training: fitting.Training, comparison: Any, has_pictures: bool
) -> Iterator[str]:
    """The blocks of the page."""
    from importance.core.numbers import leading  # slow to import

    result = comparison.results["oob_permutation"]
    shown = leading(result.values, TOP, comparison.named)[::-1]
    n_columns, n_trees = len(result.values), len(model.estimators_)
    score = "R² out of bag" if judging.is_regression(training) else "accuracy out of bag"
    yield page.facts([
        (f"{len(training.X):,}", "rows"), (f"{n_columns}", "columns"),
        (f"{n_trees}", "trees" if n_trees > 1 else "tree"), (f"{model.oob_score_:z.3f}", score),
    ])  # fmt: skip
    yield page.heading("Which columns matter")
    yield page.bars(
        result.feature_names[shown], result.values[shown], result.standard_error[shown],
        page.estimates(result.values[shown]),
    )  # fmt: skip
    some = f"{len(shown)} of {n_columns} columns. " if len(shown) < n_columns else ""
    yield page.note(
        f"{some}{result.unit[0].upper()}{result.unit[1:]} when a column is permuted; "
        f"lines: ± one standard error {result.uncertainty}."
    )
    if comparison.warnings:
        yield page.heading("Caveats")
        yield page.listing(comparison.warnings)
    yield page.heading("All measures")
    columns, rows = judging.table(comparison)
    yield page.table(columns, rows, judging.legend(comparison))
    if has_pictures:
        yield from _pictures(comparison)
    yield page.heading("How the columns were prepared")
    yield f"<p>{escape(training.recipe.in_words(training.X))}.</p>"
    if training.doubts:
        yield page.listing(training.doubts)
    yield page.note(judging.how(model, training))


def _pictures(comparison: Any) -> Iterator[str]:
    """Plots of the measures, or a note if matplotlib is not installed."""
    yield page.heading("In pictures")
    if not page.has_pictures():
        yield page.note('Pictures need matplotlib; pip install "cartwood[plot]" brings it.')
        return
    results, some = comparison.results, {"max_features": TOP}
    ranks = partial(comparison.plot_ranks, **some)
    drawings: dict[str, Callable] = {
        "Permutation, tree by tree.": partial(results["oob_permutation"].plot, "trees", **some),
        "Ranks by every measure; crossings are disagreements.": ranks,
    }
    if comparison.jointly is not None:
        drawings["Correlated columns share their importance."] = comparison.plot_clusters
    if "mean_absolute_shap_oob" in results:
        shap = partial(results["mean_absolute_shap_oob"].plot, **some)
        drawings["Mean |SHAP| by trees that have not seen the row."] = shap
    for caption, plot in drawings.items():
        yield page.figure(caption, page.draw(plot))
