"""One output of a model that predicts several, as a model of its own."""

from typing import Any

import numpy as np

from cart.estimators.validation import copy_of
from cart.tree.nodes import nodes_of
from cart.tree.tree import Tree, copied_nodes
from importance.core.adoption import forest_or_tree
from importance.core.given import require_count


def of_output(model: Any, output: int) -> Any:
    """One output of a fitted tree or forest of several, for importances and SHAP values.

    The trees split for the sake of all outputs; their leaves, and what is out of bag, say of each
    output what they predict. With its own column of y, one output is explained as the forest of
    one output is: by `oob_permutation`, `shap_values` and others, but not by what grows a forest
    again. `mdi` adds up what splits gain for all outputs, and takes the forest itself. For
    quantiles and intervals of one output, call its `keep_leaves(X, y)` first. If rows were
    weighted by `class_weight`, that is by the classes of all outputs, only SHAP values are
    supported.

    Parameters
    ----------
    model : fitted tree or forest, ours or scikit-learn's
        Bagging, pipelines and searches, too.
    output : int
        Number of the output: its column in y.

    Returns
    -------
    model
        It predicts that output, with the same nodes. Their impurities, and so
        `feature_importances_`, are still those of all outputs.

    Raises
    ------
    TypeError, ValueError
        If this is not a fitted tree or forest, or has no such output.

    Examples
    --------
    >>> from sklearn.datasets import load_linnerud
    >>> from cartwood import RandomForestRegressor, of_output, oob_permutation
    >>> X, y = load_linnerud(return_X_y=True, as_frame=True)
    >>> forest = RandomForestRegressor(200, random_state=0).fit(X, y)
    >>> oob_permutation(of_output(forest, 1), X, y["Waist"]).feature_names
    array(['Chins', 'Situps', 'Jumps'], dtype=object)
    """
    model = forest_or_tree(model)
    require_count("output", output, least=0)
    n_outputs = (model if hasattr(model, "tree_") else model.estimators_[0]).tree_.n_outputs
    if output >= n_outputs or n_outputs == 1:
        raise ValueError(
            f"output={output} must be one of several, but the model has {n_outputs} output(s)."
        )
    if hasattr(model, "tree_"):
        return _of_tree(model, model, output)
    found = _as_of_one(model, model, output)
    found.estimators_ = [_of_tree(tree, model, output) for tree in model.estimators_]
    # Which rows and predictions these are of is known of all outputs together.
    for name in ("_row_fingerprints", "oob_score_", "oob_decision_function_", "oob_prediction_"):
        vars(found).pop(name, None)
    return found


def _as_of_one(estimator, model, output):
    """A copy of a tree or forest, with the attributes of an estimator of one output."""
    found = copy_of(estimator, n_outputs_=1)
    if hasattr(model, "classes_"):
        found.classes_ = model.classes_[output]
    found.n_classes_ = len(getattr(found, "classes_", [0]))
    return found


def _of_tree(estimator, model, output):
    """A copy of a tree, whose nodes have the values of one output only."""
    found = _as_of_one(estimator, model, output)
    tree = estimator.tree_
    nodes = copied_nodes(nodes_of(tree))
    n_values = found.n_classes_
    value = np.ascontiguousarray(nodes.value[:, output : output + 1, :n_values])
    parts = (getattr(tree, name, None) for name in ("categories", "surrogates", "competitors"))
    found._output = output
    found.tree_ = Tree(nodes._replace(value=value), tree.n_features, *parts)
    return found
