"""Turn checked X, y and sample weights into what trees are grown from.

y, sample_weight --prepare--> target, weight, plan
X ------------------------------------+----encode--> table, columns
"""

from typing import Any, NamedTuple

import numpy as np

from cart.estimators.encoding import (
    encode_table,
    refuse_impossible_alternatives,
    refuse_impossible_bins,
)
from cart.estimators.grower import needs_complete_table
from cart.estimators.target import Target
from cart.estimators.validation import check_class_weight, check_criterion, check_sample_weight
from cart.growth.plan import Plan, make_plan
from cart.table.columns import Columns
from cart.table.precision import precision_of


class Preparation(NamedTuple):
    """What trees are grown from, before X is encoded."""

    X: Any  # ndarray of shape (n_samples, n_features), or sparse: checked
    target: Target
    weight: np.ndarray | float | None  # of the rows, with priors and losses
    plan: Plan
    splitter: str
    own_weight: np.ndarray | float | None  # of the rows, without priors and losses

    @property
    def class_factor(self):
        """Factor of each class's weights for priors and losses, (n_classes,); None without them."""
        return self.plan.alternatives.class_factor

    def encode(self, estimator, given, keeps_values=False):
        """Encode X as the table that trees are grown on.

        Parameters
        ----------
        estimator : estimator
            Gets `n_merged_values_`.
        given : array-like of shape (n_samples, n_features), or sparse
            X as the user gave it.
        keeps_values : bool, default=False
            True asks for a complete table, even if growth does not need one.

        Returns
        -------
        table : Table, FloatTable, SparseTable or CategoricalTable
        columns : cart.table.columns.Columns
        """
        columns = Columns(self.X, precision_of(estimator))
        keeps_values = keeps_values or needs_complete_table(self.plan, self.weight)
        return encode_table(estimator, given, columns, self.splitter, keeps_values), columns


def prepare(estimator, X, y, sample_weight, splitter):
    """Prepare the target, row weights and growth plan of a fit.

    Parameters
    ----------
    estimator : tree or forest
        Gets the attributes that its `_encode_target` learns from y. Its `_combine_weights` combines
        sample weights and class weights; its `_weigh_classes` applies priors and losses.
    X : ndarray of shape (n_samples, n_features), or sparse
        From `cart.estimators.validation.check_table`.
    y : ndarray of shape (n_samples,) or (n_samples, n_outputs)
    sample_weight : array-like of shape (n_samples,), or None
    splitter : {"best", "random"}

    Returns
    -------
    Preparation

    Raises
    ------
    ValueError
        If parameters contradict the data.
    """
    refuse_impossible_bins(estimator, X, splitter)
    refuse_impossible_alternatives(estimator, X)
    check_class_weight(estimator.class_weight)
    check_criterion(estimator.criterion, y)
    target = estimator._encode_target(y)
    own_weight = estimator._combine_weights(check_sample_weight(sample_weight, X), y, target)
    weight, factor = estimator._weigh_classes(own_weight, target)
    plan = make_plan(
        estimator, estimator._criteria[estimator.criterion], splitter, *X.shape,
        target.n_outputs, target.n_values,
    )  # fmt: skip
    plan = plan._replace(alternatives=plan.alternatives._replace(class_factor=factor))
    return Preparation(X, target, weight, plan, splitter, own_weight)
