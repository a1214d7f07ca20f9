"""Refits of a forest: on some of the rows, with other columns, or with another target."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.utils import _safe_indexing, check_random_state

import forest as ours
from cart.primitives.progress import watched
from cart.table.precision import native_frame
from forest.growing.workers import results_of
from forest.inference.repeated_rows import warn_of_repeated_rows
from forest.sampling.plan import count_draws
from forest.sampling.weights import combine_weights
from importance.core.adoption import refuse_refits, refuse_steps
from importance.core.fitted_forest import check_forest, row_weight_of
from importance.core.given import require_function
from importance.core.result import Importances
from importance.permutation.oob import oob_permutation, values_out_of_bag

T = TypeVar("T")
Measure = Callable[[Any, Any, Any], Importances]


@dataclass(frozen=True)
class Refits:
    """All that is needed to refit a forest and measure the refit.

    `model` is an unfitted estimator with the parameters of the forest, without output, on one
    thread. X is as it was given, so that names and categories are kept (sparse matrices as csr).
    `weight` is the `sample_weight` of the fit. `measure(forest, X, y)` returns Importances of the
    fitted forest, `measure_again` those of refits, which need only the values and the error over
    trees.
    """

    model: Any
    X: Any
    y: np.ndarray
    weight: np.ndarray | None
    measure: Measure
    measure_again: Measure

    @classmethod
    def of(cls, forest: Any, X: Any, y: Any, measure: Measure | None = None) -> "Refits":
        """Refits of a fitted forest, ours or scikit-learn's, on its training table.

        Raises TypeError or ValueError if `forest` is not a fitted forest, if the table is not its
        training table, or if it was fitted in a way that a refit on other rows cannot repeat.
        """
        require_function("measure", measure, "importance.mdi")
        refuse_refits(forest, "A refit")
        refuse_steps(forest)
        warn_of_repeated_rows(check_forest(forest, X, y, out_of_bag=False))
        _require_draws_of(forest)
        X = X.tocsr() if issparse(X) else native_frame(X)
        y = np.asarray(y).ravel()
        if measure is not None:
            measure = _refusing_others(measure)
        measures = (measure, measure) if measure else (oob_permutation, values_out_of_bag)
        return cls(_unfitted(forest), X, y, _weight_of_fit(forest, y), *measures)

    def take(self, rows: np.ndarray) -> Any:
        """Rows of X, in the type of X."""
        return _safe_indexing(self.X, rows)

    def fit(
        self, seed: int, *, rows: np.ndarray | None = None, X: Any = None,
        y: np.ndarray | None = None, weight: np.ndarray | None = None,
    ) -> tuple[Any, Any, np.ndarray]:  # fmt: skip
        """Fit on some rows, other columns or another target; return the forest and its table.

        An integer `max_samples` shrinks in proportion to the rows.
        """
        model = clone(self.model).set_params(random_state=int(seed))
        X, y = self.X if X is None else X, self.y if y is None else y
        weight = self.weight if weight is None else weight
        if rows is not None:
            X, y = _safe_indexing(X, rows), y[rows]
            if _has_costs(self.model) and len(missing := np.setdiff1d(self.y, y)):
                raise ValueError(
                    f"The rows of a refit have none of class {missing[0]}, which the forest's "
                    "priors or loss mention. Draw more of the rows, or fit it without these."
                )
            weight = None if weight is None else weight[rows]
            if isinstance(model.max_samples, int | np.integer):
                model.max_samples = max(1, round(model.max_samples * len(rows) / len(self.y)))
        return model.fit(X, y, sample_weight=weight), X, y

    def measure_each(
        self, change: Callable[[np.random.RandomState], dict], keep: Callable[[Importances], T],
        n: int, random_state: Any, n_jobs: int | None, verbose: int, callback: Callable | None,
    ) -> list[T]:  # fmt: skip
        """Refit n times, each on the rows, X and y that `change(stream)` returns, and measure.

        Returns `keep(importances)` of each refit.
        """

        def measure_one(seed):
            stream = np.random.RandomState(seed)
            changed = change(stream)
            seed_of_fit = stream.randint(np.iinfo(np.int32).max)
            return keep(self.measure_again(*self.fit(seed_of_fit, **changed)))

        return for_each(measure_one, seeds_of(random_state, n), n_jobs, verbose, callback)


def _refusing_others(measure):
    """Wrap a measure so that results other than Importances are refused."""

    def measured(*given):
        found = measure(*given)
        if not isinstance(found, Importances):
            raise TypeError(
                f"measure returned {type(found).__name__}, but should return Importances, as "
                "importance.mdi does."
            )
        return found

    return measured


def seeds_of(random_state: Any, n: int) -> np.ndarray:
    """Seeds of n refits, (n,) int64."""
    return check_random_state(random_state).randint(np.iinfo(np.int32).max, size=n)


def for_each(
    function: Callable[[Any], T], items: Sequence | np.ndarray, n_jobs: int | None, verbose: int,
    callback: Callable | None,
) -> list[T]:  # fmt: skip
    """Call `function(item)` for every item in threads; results in order, each a "refit" step."""
    with results_of(((function, item) for item in items), n_jobs, require="sharedmem") as results:
        return list(watched(results, len(items), "refit", verbose, callback))


def _unfitted(forest):
    """An unfitted estimator of ours with the forest's parameters, quiet and on one thread."""
    alike = (getattr(ours, cls.__name__, None) for cls in type(forest).__mro__)
    kind = next(filter(None, alike), None)
    if kind is None:
        raise TypeError(f"{type(forest).__name__} cannot be refitted: Cartwood has no such forest.")
    draws = getattr(forest, "_bootstrap", None)
    for name, given in (("groups", "groups"), ("in_bag", "given")):
        if getattr(draws, given, None) is not None:
            raise ValueError(
                f"The forest was fitted with {name}, which its refits cannot repeat. Fit it "
                f"without {name}."
            )
    params = forest.get_params(deep=False)
    known = params.keys() & inspect.signature(kind).parameters.keys()
    quiet = {"n_jobs": 1, "verbose": 0, "warm_start": False, "oob_score": False}
    model = kind(**{name: params[name] for name in known})
    n_trees = {"n_estimators": len(forest.estimators_), "max_time": None, "max_memory": None}
    return model.set_params(**quiet, **n_trees, callback=None)


def _require_draws_of(forest):
    """Refuse a scikit-learn forest whose trees drew another number of rows than it now says."""
    n_drawn = getattr(forest, "_n_samples_bootstrap", None)
    if n_drawn is None:
        return
    said = count_draws(forest.max_samples, forest._n_samples, row_weight_of(forest))
    if said != n_drawn:
        raise ValueError(
            f"The forest has max_samples={forest.max_samples!r}, which means {said} rows, but its "
            f"trees drew {n_drawn}. Reset it with set_params, or fit it again."
        )


def _has_costs(forest):
    return any(getattr(forest, name, None) is not None for name in ("priors", "loss"))


def _weight_of_fit(forest, y):
    """The `sample_weight` that a forest was fitted with, or None; class weights are taken out."""
    weight = forest._own_weight if _has_costs(forest) else row_weight_of(forest)
    class_weight = getattr(forest, "class_weight", None)
    if class_weight is None:
        return weight
    of_classes = combine_weights(class_weight, None, y, [forest.classes_], forest.bootstrap)
    if of_classes is None:
        return weight
    if weight is None:
        raise ValueError(
            f"The forest has class_weight={class_weight!r}, but its rows had equal weights in the "
            "fit. Reset it with set_params, or fit it again."
        )
    if np.allclose(of_classes, weight, rtol=1e-12, atol=0.0):
        return None
    raise ValueError(
        "The forest was fitted with both class_weight and sample_weight, which its refits cannot "
        "separate. Fit it with their product as sample_weight and class_weight=None."
    )
