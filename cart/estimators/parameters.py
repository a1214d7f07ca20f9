"""The permitted values of the parameters of trees; how estimators keep and document them."""

import inspect
import re
from functools import cache
from numbers import Integral, Real
from threading import local
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import (
    Interval,
    RealNotInt,
    StrOptions,
    validate_parameter_constraints,
)

from cart.primitives.user_warning import warn_user
from cart.splitting import criteria
from cart.table.bins import MAX_BINS

# Parameters of trees that a forest describes itself, since they mean something else there.
_OF_FORESTS = ("splitter", "random_state", "class_weight")

# What users pass as X and y: array-like, DataFrame or sparse matrix.
MatrixLike = Any
RandomState = int | np.random.RandomState | None
Priors = dict[Any, float] | ArrayLike | None
ClassWeight = dict[Any, float] | list[dict[Any, float]] | str | None

# The largest integer that kernels and arrays take.
INT_MAX = 2**63 - 1

TREE_CONSTRAINTS = {
    "max_depth": [Interval(Integral, 1, INT_MAX, closed="both"), None],
    "min_samples_split": [
        Interval(Integral, 2, INT_MAX, closed="both"),
        Interval(RealNotInt, 0.0, 1.0, closed="right"),
    ],
    "min_samples_leaf": [
        Interval(Integral, 1, INT_MAX, closed="both"),
        Interval(RealNotInt, 0.0, 1.0, closed="neither"),
    ],
    "min_weight_fraction_leaf": [Interval(Real, 0.0, 0.5, closed="both")],
    "max_features": [
        Interval(Integral, 1, INT_MAX, closed="both"),
        Interval(RealNotInt, 0.0, 1.0, closed="right"),
        StrOptions({"sqrt", "log2"}),
        None,
    ],
    "random_state": ["random_state"],
    "max_leaf_nodes": [Interval(Integral, 2, INT_MAX, closed="both"), None],
    "min_impurity_decrease": [Interval(Real, 0.0, None, closed="left")],
    "ccp_alpha": [Interval(Real, 0.0, None, closed="left")],
    "monotonic_cst": ["array-like", None],
    "categorical_features": ["array-like", StrOptions({"from_dtype"}), None],
    "min_category_ratio": [Interval(Real, 0.0, None, closed="left")],
    "feature_draw": [StrOptions({"sequence", "keyed"})],
    "precision": [StrOptions({"float32", "float64"})],
    "max_bins": [Interval(Integral, 2, MAX_BINS, closed="both"), None],
    "missing": [StrOptions({"learned", "surrogate", "majority", "refuse"})],
    "surrogates": [Interval(Integral, 0, INT_MAX, closed="both"), StrOptions({"auto"})],
    "surrogate_style": [StrOptions({"all", "known"})],
    "surrogate_features": [StrOptions({"all", "drawn"})],
    "competitors": [Interval(Integral, 0, INT_MAX, closed="both")],
}
# Defaults of missing, surrogates, surrogate_style, surrogate_features, competitors.
NO_ALTERNATIVES = "learned", 0, "all", "all", 0
# Parameters that only classifiers have, see `cart.estimators.class_costs`.
CLASS_COSTS: dict[str, list[Any]] = {
    "priors": ["array-like", dict, None],
    "loss": ["array-like", None],
}
CLASSIFIER_CRITERION = [StrOptions(set(criteria.CLASSIFICATION))]
REGRESSOR_CRITERION = [StrOptions(set(criteria.REGRESSION))]


_EXAMPLE = """
Examples
--------
>>> from sklearn.datasets import {data}
>>> from cartwood import {name}
>>> X, y = {data}(return_X_y=True)
>>> model = {name}({arguments}).fit(X, y)
>>> {shown}
{output}
"""


def with_docs_of(
    base: type, first_line: str, *, of_trees: type | None = None,
    without: tuple[str, ...] = _OF_FORESTS, defaults: dict[str, Any] | None = None, **example: str,
) -> str:  # fmt: skip
    """The docstring of an abstract estimator, with another first line and an example.

    Parameters
    ----------
    base : type
        The abstract estimator.
    first_line : str
    of_trees : type, default=None
        Class whose descriptions of parameters replace the line `%(of_trees)s`.
    without : tuple of str, optional
        Parameters of `of_trees` that are left out.
    defaults : dict, optional
        Defaults of the parameters for which the estimators have different ones.
    **example : str
        `name` of the estimator, `data` to load, `arguments` to construct it, the expression that
        is `shown`, and its `output`.
    """
    docstring = inspect.getdoc(base) or ""
    if of_trees is not None:
        docstring = docstring.replace("%(of_trees)s", _parameters_of_trees(of_trees, without))
    for parameter, default in (defaults or {}).items():
        said = f'"{default}"' if isinstance(default, str) else repr(default)
        docstring = re.sub(
            rf"^({parameter} : .*?)(?:, default=.*)?$",
            rf"\1, default={said}",
            docstring,
            flags=re.MULTILINE,
        )
    return first_line + "\n" + docstring.partition("\n")[2] + "\n" + _EXAMPLE.format(**example)


def _parameters_of_trees(trees, without):
    """The descriptions of the parameters of trees, for an estimator that passes them on."""
    section = (inspect.getdoc(trees) or "").partition("Parameters\n----------\n")[2]
    section = section.partition("\n\nAttributes")[0]
    each = re.split(r"\n(?=\w)", section)
    return "\n".join(text for text in each if text.partition(" :")[0] not in without)


class GivenParameters:
    """Mixin that validates only the parameters that differ from their (valid) defaults.

    A tree has thirty parameters, and validating them all takes longer than growing a small tree.
    Their names are read from the signature once, not by every `clone` and `set_params`.
    """

    @classmethod
    def _get_param_names(cls):
        return list(_defaults_of(cls, cls.__init__))

    def _validate_params(self):
        defaults = _defaults_of(type(self), type(self).__init__)
        all_of_them = ((name, getattr(self, name)) for name in defaults)
        given = {name: value for name, value in all_of_them if value is not defaults[name]}
        validate_parameter_constraints(self._parameter_constraints, given, type(self).__name__)


@cache
def _defaults_of(estimators, constructor):
    """The defaults of a class's parameters; if its `__init__` is replaced, they are read again."""
    names = super(GivenParameters, estimators)._get_param_names()
    parameters = inspect.signature(constructor).parameters
    return {name: parameters[name].default for name in names}


def keep_parameters(estimator: BaseEstimator, parameters: dict[str, Any]) -> None:
    """Set a constructor's parameters as attributes of the same names, as scikit-learn requires.

    Parameters
    ----------
    estimator : estimator
    parameters : dict
        `locals()` at the end of its `__init__`, which must have no other local variables.
    """
    for name, value in parameters.items():
        if name != "self":
            setattr(estimator, name, value)  # subclasses may have properties


def without_deprecated(criterion: Any) -> Any:
    """The criterion under its current name.

    Warns
    -----
    FutureWarning
        For "friedman_mse", which is "squared_error".
    """
    if not isinstance(criterion, str) or criterion != "friedman_mse":
        return criterion
    warn_user(
        'Value `"friedman_mse"` for `criterion` is deprecated, as in scikit-learn. It has always '
        'meant `"squared_error"`; use that.',
        FutureWarning,
    )
    return "squared_error"


_of_thread = local()


def first_draw(random_state, high):
    """Return what `check_random_state(random_state).randint(high)` draws.

    Creating a RandomState takes longer than growing a small tree, as it first asks the system for
    a seed that is not used. So each thread keeps one, and seeds it again.
    """
    if not isinstance(random_state, Integral):
        return check_random_state(random_state).randint(high)
    # Nobody else has it meanwhile, not even a signal's handler that calls this.
    stream = vars(_of_thread).pop("stream", None) or np.random.RandomState(0)
    stream.seed(random_state)
    drawn = stream.randint(high)
    _of_thread.stream = stream
    return drawn
