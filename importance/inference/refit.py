"""A forest fitted anew, again and again: on some of the rows, other columns or another target."""

import inspect
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _num_samples

import forest as ours
from forest.growing.progress import ProgressReporter
from forest.sampling.weights import combine_weights
from importance.core.fitted_forest import is_classification, trees_of
from importance.permutation.oob import oob_permutation


@dataclass(frozen=True)
class Refits:
    """What it takes to fit a forest anew.

    Parameters
    ----------
    model : unfitted estimator of `forest`
        With the parameters of the forest; quiet, on one thread.
    X : table of shape (n_samples, n_features)
        As it was given, so that names and categories are kept; sparse ones as csr.
    y : ndarray of shape (n_samples,)
    weight : ndarray of shape (n_samples,), float64, or None
        The `sample_weight` of the fit.
    """

    model: object
    X: object
    y: np.ndarray
    weight: np.ndarray | None

    @classmethod
    def of(cls, forest, X, y):
        """From a fitted forest, ours or scikit-learn's, and its training table.

        Raises
        ------
        TypeError, ValueError
            If it is not a fitted forest, the table has other rows, or it was fitted with what
            a refit on other rows cannot repeat.
        """
        trees_of(forest)
        X = X.tocsr() if issparse(X) else X
        y = np.asarray(y)
        y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
        n_samples = _num_samples(X)
        if y.shape != (n_samples,):
            raise ValueError(f"y has shape {y.shape}, but X has {n_samples} rows.")
        if n_samples != forest._n_samples:
            raise ValueError(
                f"X has {n_samples} rows, but the forest was fitted on {forest._n_samples}: refits "
                "need the training table."
            )
        return cls(_unfitted(forest), X, y, _weight_of_fit(forest, y))

    @property
    def n_samples(self):
        """Rows of the training table."""
        return len(self.y)

    def take(self, rows):
        """Rows of X, of the kind that X is."""
        return _safe_indexing(self.X, rows)

    def fit(self, seed, *, rows=None, X=None, y=None):
        """Fit it.

        Parameters
        ----------
        seed : int
            `random_state` of the refit.
        rows : ndarray of int, optional
            On these only; whole numbers of `max_samples` shrink with them.
        X : table of n_samples rows, optional
            Other columns.
        y : ndarray of shape (n_samples,), optional
            Another target.

        Returns
        -------
        forest, X, y
            The refit, and the table that it was fitted on.
        """
        model = clone(self.model).set_params(random_state=int(seed))
        X, y, weight = self.X if X is None else X, self.y if y is None else y, self.weight
        if rows is not None:
            X, y = _safe_indexing(X, rows), y[rows]
            weight = None if weight is None else weight[rows]
            if isinstance(model.max_samples, int | np.integer):
                model.max_samples = max(1, round(model.max_samples * len(rows) / self.n_samples))
        return model.fit(X, y, sample_weight=weight), X, y


def default_measure(forest):
    """Exact out-of-bag permutation: with the Brier score, or squared error in regression.

    (0-1 loss ties where no tree changes its mind; p-values would be coarse.)
    """
    loss = "brier" if is_classification(forest) else "squared_error"
    return partial(oob_permutation, loss=loss)


def seeds_of(random_state, n):
    """Seeds of n refits, (n,) int64."""
    return check_random_state(random_state).randint(np.iinfo(np.int32).max, size=n)


def for_each(function, items, n_jobs, verbose, callback):
    """`function(item)` of every item over threads, in the order of the items.

    Parameters
    ----------
    function : callable
    items : sequence
    n_jobs : int or None
        joblib's.
    verbose, callback
        See `forest.growing.progress.ProgressReporter`; a step is a refit.

    Returns
    -------
    list
    """
    with ProgressReporter(len(items), "refit", verbose, callback) as watch:

        def call(item):
            result = function(item)
            watch.step()
            return result

        return Parallel(n_jobs=n_jobs, require="sharedmem")(delayed(call)(i) for i in items)


def _unfitted(forest):
    for cls in type(forest).__mro__:
        kind = getattr(ours, cls.__name__, None)
        if kind is not None:
            break
    else:
        raise TypeError(f"{type(forest).__name__} cannot be refitted: no forest of ours is alike.")
    plan = getattr(forest, "_bootstrap", None)
    for name, given in (("groups", "groups"), ("in_bag", "given")):
        if getattr(plan, given, None) is not None:
            raise ValueError(
                f"The forest was fitted with {name}, which its refits cannot repeat. Fit it "
                f"without {name}."
            )
    params = forest.get_params(deep=False)
    known = params.keys() & inspect.signature(kind).parameters.keys()
    quiet = {"n_jobs": 1, "verbose": 0, "warm_start": False, "oob_score": False}
    model = kind(**{name: params[name] for name in known})
    return model.set_params(**quiet, callback=None, n_estimators=len(forest.estimators_))


def _weight_of_fit(forest, y):
    """The `sample_weight` a forest was fitted with, or None; not its `class_weight`."""
    weight = getattr(forest, "_row_weight", getattr(forest, "_sample_weight", None))
    class_weight = getattr(forest, "class_weight", None)
    if weight is None or class_weight is None:
        return weight
    of_classes = combine_weights(class_weight, None, y, [forest.classes_], forest.bootstrap)
    if of_classes is None:
        return weight
    if np.allclose(of_classes, weight, rtol=1e-12):
        return None
    raise ValueError(
        "The forest was fitted with both class_weight and sample_weight, which cannot be told "
        "apart for its refits. Fit it with their product as sample_weight and class_weight=None."
    )
