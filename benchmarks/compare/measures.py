"""Measures of importance from both sides, on one table and one split."""

from copy import copy
from functools import partial
from time import perf_counter
from typing import NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.inspection import permutation_importance

from benchmarks.compare import all_measures

N_REPEATS = 5
LOSS = {"classification": "zero-one loss", "regression": "squared-error loss"}
SCORING = {"classification": "accuracy", "regression": "neg_mean_squared_error"}


class Measure(NamedTuple):
    """One column of the table of importances."""

    side: str  # the library
    name: str  # the library's name for the measure
    title: str  # its name in tables
    unit: str
    spread_unit: str  # meaning of the uncertainty; "" without one
    values: np.ndarray  # (n_features,)
    spread: np.ndarray | None  # (n_features,)


def n_steps(n_features):
    """How often `measure_all` counts a step."""
    return 3 + n_features


def measure_all(data, ours, peer, split, step):
    """Compute all measures of both forests.

    Parameters
    ----------
    data : Dataset
    ours, peer : fitted forests, the peer with out-of-bag predictions
    split : X_train, X_test, y_train, y_test
    step : callable
        See `display.progress`.

    Returns
    -------
    measures : list of Measure
        The measures that both sides have.
    found : AllMeasures
        The measures of our forest.
    seconds : dict
        The time of each measure by name, from one run.
    """
    X, X_test, y, y_test = split
    permute = partial(
        permutation_importance, scoring=SCORING[data.task], n_repeats=N_REPEATS,
        random_state=0, n_jobs=ours.n_jobs,
    )  # fmt: skip
    small, peer_small = (
        clone(side).set_params(n_estimators=2, oob_score=False).fit(X, y) for side in (ours, peer)
    )
    all_measures.measure(small, X, y, data.feature_names)  # compiles its kernels
    permute(peer_small.set_params(n_jobs=1), X_test, y_test)  # starts its workers
    taken = {}

    def take(name, measure, *args, **kwargs):
        step(name)
        start = perf_counter()
        found = measure(*args, **kwargs)
        taken[name] = perf_counter() - start
        step()
        return found

    found = take("importance.compare", all_measures.measure, ours, X, y, data.feature_names)
    results = found.comparison.results
    taken |= found.comparison.seconds
    columns = [
        _ours("MDI", results["mdi"]),
        _ours("OOB permutation", results["oob_permutation"]),
        _ours("drop column", results["drop_column"]),
    ]
    # One level of parallelism is faster than two.
    peer_alone = copy(peer).set_params(n_jobs=1)
    sampled = take("permutation_importance", permute, peer_alone, X_test, y_test)
    dropped = take("drop-column loop", drop_column_loop, peer, X, y, step)
    columns += [
        Measure("scikit-learn", "feature_importances_", "MDI", columns[0].unit, "",
                peer.feature_importances_, None),
        Measure("scikit-learn", "permutation_importance", "held-out permutation",
                f"increase in {LOSS[data.task]} on the held-out rows",
                f"standard deviation over {N_REPEATS} permutations",
                sampled.importances_mean, sampled.importances_std),
        Measure("scikit-learn", "drop-column loop", "drop column", columns[2].unit, "",
                dropped, None),
    ]  # fmt: skip
    return columns, found, taken


def _ours(title, found):
    return Measure(
        "Cartwood", found.measure, title, found.unit, f"standard error {found.uncertainty}",
        found.values, found.standard_error,
    )  # fmt: skip


def drop_column_loop(forest, X, y, step):
    """Increase of the out-of-bag loss of a scikit-learn forest, refitted without each feature.

    Returns
    -------
    ndarray of shape (n_features,)
    """
    loss = oob_loss(forest, y)
    increase = np.empty(X.shape[1])
    for j in range(X.shape[1]):
        increase[j] = oob_loss(clone(forest).fit(np.delete(X, j, axis=1), y), y) - loss
        step()
    return increase


def oob_loss(forest, y):
    """Error rate of the out-of-bag vote, or mean squared error, over the rows ever out of bag."""
    always_drawn = np.all(
        [np.bincount(rows, minlength=len(y)) > 0 for rows in forest.estimators_samples_], axis=0
    )
    if hasattr(forest, "classes_"):
        loss = forest.classes_[forest.oob_decision_function_.argmax(axis=1)] != y
    else:
        loss = (forest.oob_prediction_ - y) ** 2
    return loss[~always_drawn].mean()
