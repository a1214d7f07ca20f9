"""Other packages that compute path-dependent SHAP values, each run in a separate process."""

import multiprocessing
import warnings
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

LIMIT = 40.0  # seconds
LEAST_SECONDS = 0.3  # for which calls are repeated; their mean is more reliable than one call


class Answer(NamedTuple):
    """The SHAP values of a package for some rows."""

    values: np.ndarray | None  # (n_rows, n_features[, n_classes]); None if it failed
    seconds: float  # of explaining, after the model was read
    error: str


def ask(name: str, model: Any, X: np.ndarray, limit: float = LIMIT) -> Answer:
    """Values of a package for a scikit-learn model, unless it takes longer than `limit`."""
    ours, theirs = multiprocessing.get_context("fork").Pipe()
    work = multiprocessing.get_context("fork").Process(
        target=_answer, args=(PEERS[name], model, X, theirs)
    )
    work.start()
    theirs.close()
    try:
        if not ours.poll(limit):
            return Answer(None, limit, f"more than {limit:.0f} s")
        return ours.recv()
    except EOFError:
        return Answer(None, np.nan, "its process ended")
    finally:
        work.kill()
        work.join()


def name_of(name: str) -> str:
    """The package with its version, if it is installed, and its variant."""
    package, _, variant = name.partition(" ")
    try:
        return f"{package} {version(package)} {variant}".strip()
    except PackageNotFoundError:
        return name


def _answer(explain, model, X, pipe):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            run = explain(model)
            run(X[:1])  # what is compiled or read only once is not counted
            start, n = perf_counter(), 0
            while n == 0 or perf_counter() - start < LEAST_SECONDS:
                values, n = np.asarray(run(X)), n + 1
            pipe.send(Answer(values, (perf_counter() - start) / n, ""))
    except BaseException as error:  # for example, a package built for another NumPy
        pipe.send(Answer(None, np.nan, f"{type(error).__name__}: {error}"[:80]))


def _by_shap(model) -> Callable:
    explainer = import_module("shap").TreeExplainer(model)
    return lambda X: explainer.shap_values(X, check_additivity=False)


def _by_fasttreeshap(package, algorithm):
    def explain(model):
        tree_explainer = import_module(package).TreeExplainer
        explainer = tree_explainer(model, algorithm=algorithm, n_jobs=2)
        return lambda X: explainer.shap_values(X, check_additivity=False)

    return explain


def _by_shapiq(model):
    kind = {"class_index": 1} if hasattr(model, "classes_") else {}
    explainer = import_module("shapiq").TreeExplainer(model, index="SV", max_order=1, **kind)

    def explain(X):
        return [explainer.explain(x).get_n_order_values(1) for x in X]

    return explain


def _by_woodelf(model):
    pandas = import_module("pandas")
    explainer = import_module("woodelf").WoodelfExplainer(
        model, feature_perturbation="tree_path_dependent"
    )
    return lambda X: explainer.shap_values(pandas.DataFrame(X))


PEERS = {
    "shap": _by_shap,
    "fasttreeshap": _by_fasttreeshap("fasttreeshap", "v1"),
    "fasttreeshap-fixed v1": _by_fasttreeshap("fasttreeshap_fixed", "v1"),
    "fasttreeshap-fixed v2": _by_fasttreeshap("fasttreeshap_fixed", "v2"),
    "shapiq": _by_shapiq,
    "woodelf-explainer": _by_woodelf,
}
