"""Adopt the random forest in a fitted model, with the parameters that its trees were grown with.

fitted search     its best estimator
Pipeline          its last step; rows are transformed by the steps before it
Bagging of trees  its trees, on the columns of X, with their in-bag rows
set_params        undone: importances are those of the fit
"""

from collections.abc import Callable
from functools import wraps
from types import SimpleNamespace
from typing import Any, TypeVar, cast

import numpy as np
from sklearn.base import BaseEstimator, is_classifier, is_regressor
from sklearn.utils import Tags, get_tags
from sklearn.utils.validation import check_is_fitted

from cart.estimators.validation import as_of_now, copy_of
from cart.primitives.threads import require_n_jobs
from cart.primitives.user_warning import warn_user
from cart.table.precision import precision_of
from cart.tree.nodes import LEAF, Nodes
from forest.estimators.fitted_on import changed_parameters
from forest.sampling.bootstrap import Bootstrap
from importance.core.docs import with_shared_parameters
from importance.core.given import require_function

F = TypeVar("F", bound=Callable)

# Parameters of a forest that have another meaning in its trees.
_NOT_HANDED_ON = {"random_state", "class_weight", "n_jobs"}


def of_fitted_forest(function: F) -> F:
    """Decorate a function of a fitted forest: adopt its first argument, complete its docstring."""

    @with_shared_parameters
    @wraps(function)
    def call(forest, *args, **kwargs):
        require_function("callback", kwargs.get("callback"), "print")
        require_n_jobs(kwargs.get("n_jobs"))
        return function(adopt(forest), *args, **kwargs)

    return cast(F, call)


def adopt(model: Any) -> Any:
    """The fitted random forest in a model, with the parameters that it was grown with.

    Raises
    ------
    TypeError
        If there is none, or if it predicts neither classes nor numbers.
    ValueError
        If a forest of scikit-learn has other parameters than its trees.
    NotFittedError

    Warns
    -----
    UserWarning
        If parameters were changed since the fit: those of the fit are used.
    """
    steps: list = []
    while True:
        if hasattr(model, "best_estimator_"):
            model = model.best_estimator_
        elif hasattr(model, "steps") and hasattr(model, "named_steps"):
            steps += [step for _, step in model.steps[:-1] if step not in (None, "passthrough")]
            model = model.steps[-1][1]
        else:
            break
    if isinstance(model, BaggedTrees):  # adopted before
        return model
    _require_forest(model)
    model = as_of_now(model)
    if hasattr(model, "estimators_features_"):
        model = BaggedTrees(model)
    elif hasattr(model, "_grown_with"):
        model = _as_grown(model)
    else:
        _refuse_contradictions(model)
    return _with_steps_before(steps, model) if steps else model


def forest_or_tree(model: Any) -> Any:
    """The forest in a model, see `adopt`, or the model if it is a fitted tree."""
    holds_others = ("n_estimators", "steps", "best_estimator_")
    if not hasattr(model, "fit") or any(hasattr(model, name) for name in holds_others):
        return adopt(model)
    check_is_fitted(model)
    if not hasattr(model, "tree_"):
        raise TypeError(f"{type(model).__name__} is neither a forest nor a tree.")
    return model


def refuse_refits(forest: Any, does: str) -> None:
    """Raise a TypeError if an adopted forest cannot be grown again as it was.

    `does` begins the message with what would grow it again.
    """
    if is_one_of_several(forest) or forest.estimators_[0].tree_.n_outputs > 1:
        raise TypeError(
            f"{does} grows the forest again, but its trees were grown for several outputs; fit a "
            "forest for one."
        )
    if isinstance(forest, BaggedTrees):
        raise TypeError(
            f"{does} grows the forest again, which a {forest.name} does not support, because it "
            "draws columns and rows for each estimator; fit a random forest."
        )
    if len(getattr(forest, "_grown_with", ())) > 1:
        raise TypeError(
            f"{does} grows the forest again, but its trees were grown with several sets of "
            "parameters (warm_start=True); fit it with one set."
        )


def refuse_steps(forest: Any) -> None:
    """Raise a TypeError if an adopted forest has steps before it, which would need a refit, too."""
    if getattr(forest, "_steps_before", ()):
        raise TypeError(
            "A refit changes rows, columns or y, but the pipeline steps before the forest were "
            "fitted on the original ones. If these steps do not depend on y, give it the forest, "
            "pipeline[-1], and its table, pipeline[:-1].transform(X)."
        )


def is_one_of_several(forest: Any) -> bool:
    """Whether an adopted forest is that of one output of several, see `of_output`."""
    return hasattr(forest.estimators_[0], "_output")


def take_steps(forest: Any, X: Any) -> Any:
    """Transform X by the steps before an adopted forest in its pipeline."""
    for step in getattr(forest, "_steps_before", ()):
        X = step.transform(X)
    return X


def without_steps(forest: Any, X: Any) -> tuple[Any, Any]:
    """A copy of an adopted forest without the steps before it, and rows transformed by them."""
    return copy_of(forest, _steps_before=()), take_steps(forest, X)


def _require_forest(model):
    name = type(model).__name__
    if not hasattr(model, "fit") or not hasattr(model, "n_estimators"):
        raise TypeError(f"Importances need a fitted random forest, got {model!r}.")
    check_is_fitted(model)
    estimators = getattr(model, "estimators_", [None])
    several = np.ravel(estimators) if isinstance(estimators, np.ndarray) else estimators
    trees = [getattr(tree, "tree_", None) for tree in several]
    if None in trees or not hasattr(model, "bootstrap"):
        raise TypeError(f"{name} is not a random forest.")
    if not (is_classifier(model) or is_regressor(model)):
        raise TypeError(
            f"{name} does not predict a target, so no feature can be important for its "
            "predictions; fit a random forest with y."
        )


def _as_grown(forest):
    """The forest, or a copy of it with the parameters of its last fit if they were changed."""
    grown_with, now = forest._grown_with[-1], forest.get_params(deep=False)
    changed = changed_parameters(grown_with, now)
    if not changed:
        return forest
    changes = ", ".join(f"{k}={grown_with[k]!r} to {now[k]!r}" for k in changed)
    warn_user(
        f"Parameters of the {type(forest).__name__} were changed after the fit: {changes}. "
        "Its importances are those of the forest as it was fitted."
    )
    return copy_of(forest, **grown_with)


def _refuse_contradictions(forest):
    """Raise a ValueError if a forest has other parameters than it passed to its trees."""
    params = forest.get_params(deep=False)
    names = [k for k in forest.estimators_[0].get_params() if k in params.keys() - _NOT_HANDED_ON]
    for tree in forest.estimators_:
        theirs = {k: getattr(tree, k) for k in names}  # get_params would be slower than SHAP itself
        changed = changed_parameters(theirs, params)
        if changed:
            listed = ", ".join(f"{k}={params[k]!r} (trees: {theirs[k]!r})" for k in changed)
            raise ValueError(
                f"Parameters of the {type(forest).__name__} differ from those its trees were grown "
                f"with: {listed}. Reset them with set_params, or fit it again."
            )
    n_draws = getattr(forest, "_n_samples_bootstrap", None)
    if hasattr(forest, "_n_samples_bootstrap") and forest.bootstrap != (n_draws is not None):
        raise ValueError(
            f"The {type(forest).__name__} has bootstrap={forest.bootstrap!r}, but was fitted with "
            f"{not forest.bootstrap}. Reset it with set_params, or fit it again."
        )


def _with_steps_before(steps, forest):
    """A copy of the forest with the steps before it, and the names that they give its columns."""
    named = copy_of(forest, _steps_before=steps)
    if not hasattr(forest, "feature_names_in_"):
        try:
            names = None
            for step in steps:
                names = step.get_feature_names_out(names)
            named._column_names = np.asarray(names, dtype=object)
        except (AttributeError, ValueError, TypeError):
            pass  # a step does not name its columns
    return named


class BaggedTrees(BaseEstimator):
    """The trees of a fitted Bagging as a forest, with features numbered as the columns of X."""

    class_weight = None

    def __init__(self, bagging: Any):
        self.bagging = bagging
        self.name = type(bagging).__name__
        base = bagging.estimators_[0]
        if getattr(base, "categorical_features", None) is not None:
            raise TypeError(
                f"A {self.name} of trees with categorical_features numbers the categories of "
                "every tree separately, so importances cannot use it; fit a random forest with "
                "categorical_features."
            )
        self.precision = precision_of(base).name
        costs = ("class_weight", "priors", "loss")
        self._weighed_by = [name for name in costs if getattr(base, name, None) is not None]
        own = ("voting", "n_features_in_", "feature_names_in_", "classes_")
        of_trees = ("missing", "surrogate_style", "criterion", "monotonic_cst")
        for given, names in ((bagging, own), (base, of_trees)):
            self.__dict__.update({k: getattr(given, k) for k in names if hasattr(given, k)})
        pairs = zip(bagging.estimators_, bagging.estimators_features_, strict=False)
        self.estimators_ = [_on_columns(*pair, self.n_features_in_) for pair in pairs]
        drawn = bagging.estimators_samples_[: len(self.estimators_)]
        draws = getattr(bagging, "_draws", None)  # only ours; it has no `_n_samples`
        self._n_samples = bagging._n_samples if draws is None else draws[0][0].n_samples
        given = np.array([np.bincount(rows, minlength=self._n_samples) for rows in drawn], np.int32)
        self.bootstrap = bool((given == 0).any())  # whether any row is out of bag
        self._bootstrap = Bootstrap.plain(self._n_samples, None, given=given)
        self._allows_nan = get_tags(base).input_tags.allow_nan

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan, tags.input_tags.sparse = self._allows_nan, True
        return tags


def _on_columns(estimator, columns, n_features):
    """A tree with features numbered as the columns of X, and the attributes importances need."""
    tree = estimator.tree_
    kept = ("node_count", "n_outputs", "max_n_classes", "categories", "is_subset")
    mapped = SimpleNamespace(
        **{name: getattr(tree, name, None) for name in (*Nodes._fields, *kept)}
    )
    is_split = np.asarray(tree.children_left) != LEAF
    mapped.feature = np.array(tree.feature, np.int32)
    mapped.feature[is_split] = np.asarray(columns, np.int32)[mapped.feature[is_split]]
    mapped.n_features = n_features
    for name in ("surrogates", "competitors"):
        splits = getattr(tree, name, None)
        splits = splits and splits.on_columns(columns, mapped.feature)
        setattr(mapped, name, splits)
    return SimpleNamespace(tree_=mapped, random_state=0, splitter="best")
