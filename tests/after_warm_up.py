"""After `cartwood warm-up` work of every kind compiles nothing: `python -m tests.after_warm_up`.

The work is not that of the warm-up: the rows of `python -m benchmarks kinds` on their tables of
20,000 rows, tables with more than 65,536 distinct values, and measures of forests of other data.
"""

import sys
import warnings
from collections.abc import Callable, Iterator

import numpy as np
from numba.core.dispatcher import Dispatcher
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris

from cart.jit.disk_cache import KernelCache

PACKAGES = ("cart", "forest", "importance")
MANY = 70_000
_OTHER = np.array([0.5, 0.5, 0.5, 0.5, 0.0])  # makes rows that were not fitted; categories stay


def kernels() -> set[Dispatcher]:
    """All that are imported, and kept on disk."""
    modules = [m for name, m in [*sys.modules.items()] if name.partition(".")[0] in PACKAGES]
    return {
        k for m in modules for k in vars(m).values()
        if isinstance(k, Dispatcher) and isinstance(k._cache, KernelCache)
    }  # fmt: skip


def n_compiled() -> dict[str, int]:
    """Of each kernel, for how many types it was compiled in this process."""
    return {
        f"{kernel.py_func.__module__}.{kernel.py_func.__qualname__}":
            sum(kernel.stats.cache_misses.values())
        for kernel in kernels()
    }  # fmt: skip


def kinds() -> Iterator[tuple[str, Callable]]:
    """Rows of the benchmark of kinds, without those that need another package."""
    from benchmarks.studies.kinds import KINDS

    for kind in KINDS:
        if not kind.case.data.startswith("flights"):
            yield kind.name, lambda case=kind.case: _fit(case)


def _fit(case):
    from benchmarks.identity.cases import training
    from benchmarks.identity.run import create_both

    X, y, weights = training(case, 0)
    model, _ = create_both(case, 0)
    if "n_estimators" in model.get_params():
        model.set_params(n_estimators=2)
    model.fit(X, y, sample_weight=weights).predict(X[:100])


def large_tables() -> Iterator[tuple[str, Callable]]:
    """More distinct values than 16 bits number."""
    import forest

    rng = np.random.default_rng(1)
    X, classes = rng.random((MANY, 4)), rng.integers(0, 3, MANY)
    missing = np.where(rng.random(X.shape) < 0.05, np.nan, X)
    few = {"n_estimators": 2, "max_depth": 4, "random_state": 0}
    for what, table in (("", X), (" with missing values", missing)):
        for Model, y in (
            (forest.RandomForestClassifier, classes), (forest.ExtraTreesClassifier, classes),
            (forest.RandomForestRegressor, X[:, 0]), (forest.ExtraTreesRegressor, X[:, 0]),
        ):  # fmt: skip
            yield (
                f"{Model.__name__} of {MANY} rows{what}",
                (lambda Model=Model, table=table, y=y: Model(**few).fit(table, y).predict(table)),
            )


def measures() -> Iterator[tuple[str, Callable]]:
    """What is asked of forests: of columns with categories, too."""
    import forest
    import importance

    rng = np.random.default_rng(2)
    for Model, load in (
        (forest.RandomForestClassifier, load_iris),
        (forest.RandomForestClassifier, load_breast_cancer),
        (forest.RandomForestRegressor, load_diabetes),
    ):
        X, y = load(return_X_y=True)
        X = np.column_stack([X[:, :4], rng.integers(0, 6, len(X))])
        for parameters in ({}, {"categorical_features": [4]}):
            model = Model(30, random_state=1, oob_score=True, **parameters).fit(X, y)
            for call in (
                importance.compare, importance.conditional_permutation, importance.optimism,
                lambda f, X, y: importance.held_out_permutation(f, X + _OTHER, y),
                lambda f, X, y: importance.forest_permutation(f, X, y, n_repeats=1),
                lambda f, X, y: importance.shap_values(f, X[:20], interactions=True),
                lambda f, X, y: importance.shap_values(f, X, out_of_bag=True),
                lambda f, X, y: forest.proximity(f, X),
                lambda f, X, y: f.out_of_bag(X, y),
            ):  # fmt: skip
                name = getattr(call, "__name__", "")
                yield (
                    f"{name} of {Model.__name__} {parameters}",
                    (lambda call=call, model=model, X=X, y=y: call(model, X, y)),
                )
            if load is load_diabetes:
                yield "quantiles", lambda model=model, X=X: (
                    model.predict_quantiles(X, [0.5]), model.predict(X, return_std=True)
                )  # fmt: skip


def main() -> int:
    """Do all of it; 1 if anything was compiled."""
    warnings.simplefilter("ignore")
    failed = n_calls = 0
    for part in (kinds, large_tables, measures):
        for name, call in part():
            before = n_compiled()
            call()
            n_calls += 1
            compiled = [kernel for kernel, n in n_compiled().items() if n > before.get(kernel, 0)]
            if compiled:
                failed += 1
                print(f"{name}: compiled {', '.join(sorted(compiled))}", flush=True)
    print(f"{n_calls} kinds of work, {failed} compiled something")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
