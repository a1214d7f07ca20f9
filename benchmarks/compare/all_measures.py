"""The results of `importance.compare` for our forest: tables, pictures and numbers."""

from copy import copy
from functools import partial
from typing import NamedTuple

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from benchmarks.harness import display, plot
from importance import Comparison, compare, oob_permutation
from importance.core.result import Importances

LEVEL = 0.95  # of the intervals in the pictures


class AllMeasures(NamedTuple):
    """Every measure of one forest."""

    comparison: Comparison
    casewise: Importances  # out-of-bag permutation, with importances of single rows
    X: pd.DataFrame  # the training table


def measure(forest, X, y, names):
    """Compute every measure of a forest that was fitted on an array.

    Parameters
    ----------
    forest : fitted forest of ours
    X : ndarray of shape (n_samples, n_features)
    y : ndarray of shape (n_samples,)
    names : list of str
        Names of the features.

    Returns
    -------
    AllMeasures
    """
    frame = pd.DataFrame(X, columns=names)
    named = copy(forest)
    named.feature_names_in_ = np.array(names, dtype=object)  # as if fitted on the frame
    return AllMeasures(
        compare(named, frame, y, n_jobs=forest.n_jobs),
        oob_permutation(named, frame, y, per_row=True, n_jobs=forest.n_jobs),
        frame,
    )


def table(found, top=None):
    """Table: value, standard error and rank by every measure, sorted by OOB permutation."""
    frame = found.comparison.to_frame()
    results = found.comparison.results
    columns, cells = ["feature"], [frame.index]
    for name in results:
        column = frame[name]
        columns += [name, "rank"]
        cells += [
            display.estimates(column["importance"], column["standard_error"]),
            column["rank"].astype(str),
        ]
    return display.Table(
        "All measures of Cartwood's forest",
        columns,
        list(zip(*cells, strict=True))[:top],
        "\n".join(
            f"{name}: {result.unit}, ± standard error {result.uncertainty}."
            for name, result in results.items()
        ),
    )


def pictures(found):
    """Pictures of all measures, and details of out-of-bag permutation.

    Yields
    ------
    caption, svg : str
    """
    comparison, casewise, X = found
    drawings = {
        "Every measure, ± one standard error.": comparison.plot,
        f"OOB permutation with {LEVEL:.0%} intervals over data.": partial(
            casewise.plot, "bars", level=LEVEL
        ),
        "OOB permutation, tree by tree.": partial(casewise.plot, "trees"),
        "OOB permutation, row by row.": partial(casewise.plot, "rows", X=X),
        "Ranks by every measure; crossings are disagreements.": comparison.plot_ranks,
        "Correlated features share their importance.": comparison.plot_clusters,
    }
    for caption, draw in drawings.items():
        with matplotlib.rc_context(plot.STYLE):
            figure = draw().figure
        yield caption, plot.svg(figure)
        plt.close(figure)


def numbers(found):
    """The contents of the table and the warnings, for a file.

    Returns
    -------
    dict
    """
    comparison = found.comparison
    frame = comparison.to_frame()
    return {
        "features": list(frame.index),
        "measures": {name: frame[name].to_dict("list") for name in comparison.results},
        "warnings": comparison.warnings,
    }
