"""The report of a comparison: on the terminal, as a page, and as numbers."""

import re
from pathlib import Path

import numpy as np

from benchmarks.compare import all_measures
from benchmarks.harness import display, plot, results
from benchmarks.harness.display import Table
from benchmarks.identity.agreement import NOTE, share_of_trees
from cartwood import page

SIDES = ("Cartwood", "scikit-learn")
SHORT = {"Cartwood": "Cartwood", "scikit-learn": "sklearn"}
TOP = 20  # features that the terminal and the plot show


def show(result):
    """Print a comparison."""
    display.heading(result["data"]["name"])
    display.say(headline(result), "")
    found = result["all_measures"]
    tables = models(result), times(result), importances(result, TOP), all_measures.table(found, TOP)
    for table in tables:
        display.show(table)
    hidden = len(result["data"]["features"]) - TOP
    if hidden > 0:
        display.say(f"{hidden} more features are in the report.", "")
    if found.comparison.warnings:
        display.say("Caveats:", *(f"- {text}" for text in found.comparison.warnings), "")


def write(result, folder):
    """Write compare-NAME.html and compare-NAME.json.

    Returns
    -------
    list of pathlib.Path
    """
    stem = folder / f"compare-{re.sub('[^A-Za-z0-9_.-]+', '-', result['data']['name'])}"
    written, numbers = Path(f"{stem}.html"), Path(f"{stem}.json")
    found = all_measures.numbers(result["all_measures"])
    results.write_json(numbers, {**result, "all_measures": found})
    _write_page(result, written)
    return [written, numbers]


def headline(result):
    """One line on what was compared."""
    data, parameters = result["data"], result["parameters"]
    return (
        f"{data['task'].capitalize()}, {data['rows']:,} rows x {len(data['features'])} features: "
        f"{data['rows_fitted']:,} rows fitted, {data['rows_held_out']:,} held out; "
        f"{parameters['n_estimators']} trees, random_state={parameters['seed']}, "
        f"n_jobs={parameters['n_jobs']} on both sides."
    )


def models(result):
    """Table: how many trees and nodes of the models are the same, and their scores."""
    rows = []
    for name in ("forest", "tree"):
        model = result[name]
        scores = [*model["test"], *model.get("oob", ())]
        rows.append(
            [
                name,
                share_of_trees(model, model["ties"]),
                display.share(model["identical_nodes"], model["nodes"]),
                *(f"{score:.4f}" for score in scores),
                *["-"] * (4 - len(scores)),
            ]
        )
    score = result["score"]
    columns = ["", "trees\nthe same", "nodes\nthe same"]
    columns += [f"{kind} {score}\n{side}" for kind in ("test", "OOB") for side in SIDES]
    note = "A node is the same if no node on its path from the root differs."
    if first := result["forest"]["first_difference_rows"]:
        n_trees = result["forest"]["trees"] - result["forest"]["identical_trees"]
        note += (
            f" The first differing nodes of {n_trees} trees have {first[0]} to {first[-1]} rows."
        )
        if result["forest"]["ties"]:
            note += f" The first of these was examined. {NOTE}"
    if never := result["forest"]["never_out_of_bag"]:
        note += (
            f" {never} rows were never out of bag: Cartwood leaves them out of the OOB score, "
            "scikit-learn counts them as predicted 0 or the first class."
        )
    return Table("The models", columns, rows, note)


def times(result):
    """Table: median times and their ratio."""
    rows = [
        [
            row["work"],
            display.seconds(row["ours"]),
            display.seconds(row["peer"]),
            display.ratio(row["peer"] / row["ours"]),
            str(row["repeats"]),
        ]
        for row in result["seconds"]
    ]
    return Table(
        "Time",
        ["", *SIDES, "ratio", "runs"],
        rows,
        "Medians of alternating runs after a warm-up, with compiled kernels.",
    )


def importances(result, top=None):
    """Table: the measures of both sides, sorted by OOB permutation."""
    measures = result["importances"]
    order = ranking(result)[:top]
    cells = [display.estimates(measure["values"], measure["spread"]) for measure in measures]
    names = result["data"]["features"]
    return Table(
        "Importance on both sides",
        ["feature", *(f"{SHORT[m['side']]}\n{m['title']}" for m in measures)],
        [[names[j], *(column[j] for column in cells)] for j in order],
        "\n".join(_describe(measure) for measure in measures),
    )


def ranking(result):
    """Features by decreasing OOB permutation importance."""
    return np.argsort(-plot.find(result["importances"], "oob_permutation")["values"], kind="stable")


def _describe(measure):
    """Description of a column of importances, for the note below the table."""
    spread = measure["spread_unit"] and f", ± {measure['spread_unit']}"
    return (
        f"{SHORT[measure['side']]} {measure['title']} ({measure['name']}): "
        f"{measure['unit']}{spread}."
    )


def _write_page(result, path):
    found = result["all_measures"]
    order = ranking(result)[:TOP]
    names = [result["data"]["features"][j] for j in order]
    drawn = plot.draw(result["importances"], order, names, f"increase in {result['loss']}")
    shown = "All features" if len(names) == len(result["data"]["features"]) else f"The first {TOP}"
    caption = (
        f"{shown}, sorted by OOB permutation; lines show the ± of the table below. "
        "Permutation is out of bag in Cartwood and on the held-out rows in scikit-learn."
    )
    warnings = found.comparison.warnings
    page.write(
        path,
        f"Cartwood and scikit-learn on {result['data']['name']}",
        headline(result),
        [
            page.facts(_facts(result)),
            *_table(models(result)),
            *_table(times(result)),
            page.heading("Which features matter"),
            page.figure(caption, plot.svg(drawn)),
            *_table(importances(result)),
            *_table(all_measures.table(found)),
            *([page.heading("Caveats"), page.listing(warnings)] if warnings else []),
            page.heading("All measures in pictures"),
            *(page.figure(*each) for each in all_measures.pictures(found)),
            page.heading("Environment"),
            page.table(("", ""), result["environment"].items()),
        ],
    )


def _facts(result):
    """The headline numbers, each with its description."""
    forest, seconds = result["forest"], result["seconds"]
    yield share_of_trees(forest, forest["ties"]), "the forest's trees are scikit-learn's"
    yield display.share(forest["identical_nodes"], forest["nodes"]), "of its nodes are the same"
    for row, what in zip(seconds, ("fit", "predict"), strict=False):
        yield display.ratio(row["peer"] / row["ours"]), f"scikit-learn's speed in {what} (forest)"


def _table(table):
    return page.heading(table.title), page.table(table.columns, table.rows, table.note)
