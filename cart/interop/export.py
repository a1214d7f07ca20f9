"""Text, Graphviz and matplotlib pictures of a tree, drawn by scikit-learn.

scikit-learn cannot draw a split on a subset, nor a date. It draws a split on an extra feature
instead, which is named after the condition, and the threshold is removed from the result.
Surrogates and competitors are written below the splits, if they are asked for.
"""

import functools
import html
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np
import sklearn.tree
from sklearn.utils._param_validation import validate_parameter_constraints
from sklearn.utils.validation import check_is_fitted

from cart.estimators.reading.words import condition, is_of_dates
from cart.estimators.trees import BaseDecisionTree
from cart.interop.bridge import fitted_counterpart
from cart.interop.shown_alternatives import (
    PARAMETERS,
    Shown,
    add_to_graphviz,
    add_to_text,
    lines_of,
)
from cart.tree.tree import Tree

_NOTHING = Shown(0, 0)
T = TypeVar("T")


def _of_our_tree(
    draw: Callable[..., T], default_name: str, add: Callable[..., T] | None = None
) -> Callable[..., T]:
    """Extend scikit-learn's function `draw` to trees of `cart`.

    Features without names get the default. `add` writes surrogates and competitors into the result,
    if they are asked for.
    """

    @functools.wraps(draw)
    def draw_ours(decision_tree, *args, feature_names=None, **kwargs):
        if hasattr(decision_tree, "estimators_"):
            raise TypeError(
                f"{draw.__name__} draws a single tree, but {type(decision_tree).__name__} has "
                f"{len(decision_tree.estimators_)}; pass one of them, such as "
                f"{draw.__name__}(forest.estimators_[0])."
            )
        shown = Shown.of(kwargs) if add is not None else _NOTHING
        if not isinstance(decision_tree, BaseDecisionTree):
            if shown != _NOTHING:
                raise ValueError(
                    f"{type(decision_tree).__name__} keeps neither surrogates nor competitors; "
                    "trees of cart do, if fitted with surrogates= or competitors=."
                )
            return draw(decision_tree, *args, feature_names=feature_names, **kwargs)
        check_is_fitted(decision_tree)
        tree = decision_tree.tree_
        _refuse_costs(decision_tree)
        if kwargs.get("filled") and tree.n_outputs > 1 and not 0 < np.ptp(tree.impurity) < np.inf:
            kwargs["filled"] = False  # a single colour, for which scikit-learn would divide by 0
        spelled = _spelled_out(decision_tree)
        if not len(spelled) and shown == _NOTHING:
            # For a picture, double precision does not matter.
            peer = fitted_counterpart(decision_tree, tree)
            return draw(peer, *args, feature_names=feature_names, **kwargs)
        feature_names = _names_of(tree, feature_names, default_name, draw.__name__)
        lines = lines_of(decision_tree, feature_names, shown)
        conditions = _conditions(decision_tree, spelled, feature_names)
        if kwargs.get("special_characters"):  # labels of Graphviz in HTML
            conditions = [tuple(html.escape(c, quote=False) for c in both) for both in conditions]
        names = [*feature_names, *(left for left, _ in conditions)]
        peer = fitted_counterpart(decision_tree, _with_own_features(tree, spelled))
        peer.n_features_in_ = len(names)
        out_file = args[0] if args else kwargs.pop("out_file", None)  # of Graphviz
        drawn = _without_thresholds(draw(peer, feature_names=names, **kwargs), conditions)
        if lines:
            drawn = add(drawn, tree, lines, kwargs)
        return drawn if out_file is None else _write(drawn, out_file)

    if add is not None and draw_ours.__doc__ is not None:
        described = inspect.cleandoc(draw_ours.__doc__)  # as Python from 3.13 on compiles it
        end = "Returns\n-------"
        draw_ours.__doc__ = described.replace(end, PARAMETERS + end, 1)
    return draw_ours


def _names_of(tree, given, default_name, caller):
    """Names of all features: the given ones, or else the default."""
    if given is None:
        return [default_name.format(j) for j in range(tree.n_features)]
    names = {"feature_names": given}
    validate_parameter_constraints({"feature_names": ["array-like"]}, names, caller)
    if len(given) != tree.n_features:
        raise ValueError(f"feature_names must contain {tree.n_features} elements, got {len(given)}")
    return given


def _refuse_costs(estimator):
    """Raise a ValueError if the predicted class need not be that of the largest share, as shown.

    With two classes it always is: the class of least expected loss has the larger share under the
    altered priors, by which `tree_` has its shares.
    """
    if len(getattr(estimator, "loss_", ())) > 2:
        raise ValueError(
            "The picture would show the class with the largest share, but with loss= the tree "
            "predicts the class with the least expected loss; print cartwood.summary(tree) "
            "instead."
        )


def _write(text, out_file):
    if isinstance(out_file, str):
        Path(out_file).write_text(text, encoding="utf-8")
    else:
        out_file.write(text)


def _spelled_out(estimator):
    """The nodes whose condition scikit-learn cannot write: splits on subsets, and on dates."""
    tree = estimator.tree_
    dates = [j for j in range(tree.n_features) if is_of_dates(estimator, j)]
    return np.flatnonzero(tree.is_subset | np.isin(tree.feature, dates))


def _with_own_features(tree, nodes):
    """The tree with the splits of some nodes replaced by splits at 0 on new features."""
    feature, threshold = tree.nodes.feature.copy(), tree.nodes.threshold.copy()
    feature[nodes] = tree.n_features + np.arange(len(nodes))
    threshold[nodes] = 0.0
    replaced = tree.nodes._replace(feature=feature, threshold=threshold)
    return Tree(replaced, tree.n_features + len(nodes))


def _conditions(estimator, nodes, names):
    """The conditions of going left and of going right at each of some splits."""
    return [
        (condition(estimator, node, True, names), condition(estimator, node, False, names))
        for node in nodes
    ]


def _without_thresholds(drawn, conditions):
    """Text, or matplotlib's annotations, with the thresholds behind conditions removed."""
    if isinstance(drawn, list):
        for annotation in drawn:
            annotation.set_text(_without_thresholds(annotation.get_text(), conditions))
        return drawn
    escaped = [tuple(text.replace('"', r"\"") for text in either) for either in conditions]
    for left, right in dict.fromkeys([*conditions, *escaped]):  # Graphviz has the escaped ones
        if left not in drawn:  # as most are, below max_depth and in the texts of other nodes
            continue
        drawn = re.sub(re.escape(left) + r" (<=|&le;|&#8804;) 0(\.0*)?", lambda _, t=left: t, drawn)
        drawn = re.sub(re.escape(left) + r" > +0(\.0*)?", lambda _, t=right: t, drawn)
    return drawn


export_text = _of_our_tree(sklearn.tree.export_text, "feature_{}", add_to_text)
export_graphviz = _of_our_tree(sklearn.tree.export_graphviz, "x[{}]", add_to_graphviz)
plot_tree = _of_our_tree(sklearn.tree.plot_tree, "x[{}]")
