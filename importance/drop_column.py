"""Drop-column importance: what is lost when the forest has to do without a feature."""

from types import SimpleNamespace

import numpy as np
from scipy.sparse import issparse

from cart import criteria
from cart.packed import Rows, pack
from cart.plan import make_plan
from cart.traverse import leaf_ids
from forest.grow import grow_trees
from forest.weights import balance_subsample
from importance.adopt import adopt, is_classification, names_of
from importance.losses import choose_loss
from importance.result import Importances

BIAS = (
    "Of two features that carry the same information neither is missed, so both can have 0: it "
    "measures what nothing else can replace."
)


def drop_column(forest, X, y, *, loss=None, n_jobs=None):
    """How much worse the out-of-bag predictions are after a refit without the feature.

    The forest is refitted without each feature on the same bootstraps with the same seeds. The
    value is the mean over rows of the loss of the aggregated out-of-bag prediction without the
    feature, less that with it; its standard error is that of the mean of these paired differences
    over rows. Refits are made by our trees, for an adopted forest too.

    Parameters
    ----------
    forest : fitted random forest, ours or scikit-learn's
        With bootstrap=True.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        The table the forest was fitted on; two features at least.
    y : array-like of shape (n_samples,)
    loss : {"zero_one", "brier", "squared_error"}, default=None
        Loss of an out-of-bag prediction; "zero_one" in classification and "squared_error" in
        regression by default.
    n_jobs : int, default=None
        Threads; the result does not depend on it.

    Returns
    -------
    Importances
        `per_tree` compares each tree's own loss on its out-of-bag rows with that of its refit:
        single trees, so its mean is not the value.

    Raises
    ------
    TypeError, ValueError
        If the forest is not one with out-of-bag rows, votes otherwise than soft, has parameters
        that our trees do not support, (X, y) cannot be its training table, or the loss does not
        fit the task.
    """
    fitted = adopt(forest, X, y)
    if getattr(forest, "voting", "soft") != "soft":
        raise ValueError(
            f'drop_column judges the mean over trees (voting="soft"), not voting='
            f'{forest.voting!r}; fit a forest with voting="soft".'
        )
    name, make_loss = choose_loss(loss, is_classification(forest))
    n_features = fitted.X.shape[1]
    if n_features < 2:
        raise ValueError("Without its only feature nothing is left to fit; X needs at least two.")
    table = fitted.encode()
    row_loss, tree_loss = _judge(fitted, fitted.trees, fitted.X, make_loss)
    known = ~np.isnan(row_loss)
    if not known.any():
        raise ValueError("No row is out of bag for any tree; draw fewer rows with max_samples.")
    values, error = np.empty((2, n_features))
    per_tree = np.empty((len(fitted.trees), n_features))
    for feature in range(n_features):
        trees = grow_trees(
            table.without(feature), fitted.codes, _plan_without(feature, fitted), fitted.seeds,
            _weigh(fitted), n_jobs,
        )  # fmt: skip
        row_loss_without, tree_loss_without = _judge(
            fitted, trees, _without(feature, fitted.X), make_loss
        )
        difference = (row_loss_without - row_loss)[known]
        values[feature] = difference.mean()
        error[feature] = difference.std() / np.sqrt(len(difference))
        per_tree[:, feature] = tree_loss_without - tree_loss
    return Importances(
        "drop_column", values, error, per_tree, names_of(forest),
        unit=f"increase in out-of-bag {name.replace('_', '-')} loss of the forest",
        uncertainty="over rows, for this pair of forests",
        bias=BIAS,
    )  # fmt: skip


def _without(feature, X):
    others = np.delete(np.arange(X.shape[1]), feature)
    return X[:, others] if issparse(X) else X.take(others, axis=1)


def _plan_without(feature, fitted):
    """How the forest's trees are grown, on the other features."""
    forest = fitted.forest
    params = SimpleNamespace(**{"feature_draw": "sequence", **forest.get_params()})
    if params.monotonic_cst is not None:
        params.monotonic_cst = np.delete(params.monotonic_cst, feature)
    names = getattr(forest, "feature_names_in_", np.arange(forest.n_features_in_))
    params.feature_names_in_ = np.delete(names, feature)
    task = criteria.CLASSIFICATION if is_classification(forest) else criteria.REGRESSION
    n_samples, n_features = fitted.X.shape
    return make_plan(
        params, task[forest.criterion], forest.estimators_[0].splitter, n_samples, n_features - 1,
        1, fitted.n_classes,
    )  # fmt: skip


def _weigh(fitted):
    """The function that gives the weight of every row in the i-th tree."""
    if getattr(fitted.forest, "class_weight", None) == "balanced_subsample":
        return lambda i: balance_subsample(fitted.counts(i), fitted.draws[i], fitted.codes)
    return fitted.counts


def _judge(fitted, trees, X, make_loss):
    """Out-of-bag losses: of the aggregated prediction, per row, and of each tree, its mean.

    Returns
    -------
    row_loss : ndarray of shape (n_samples,)
        nan in rows that were never out of bag.
    tree_loss : ndarray of shape (n_trees,)
        nan in trees without out-of-bag rows.
    """
    packed = pack(trees, X.dtype)
    total = np.zeros((X.shape[0], packed.value.shape[1]))
    n_trees = np.zeros(X.shape[0], np.int64)
    tree_loss = np.full(len(trees), np.nan)
    X = X if issparse(X) else Rows.of(packed, X)
    for t, tree in enumerate(trees):
        rows = fitted.out_of_bag(t)
        if len(rows) == 0:
            continue
        leaves = leaf_ids(packed, t, X, rows)
        node_values = tree.value.reshape(tree.node_count, -1)
        tree_loss[t] = make_loss(node_values, fitted.codes[rows]).of(leaves).mean()
        total[rows] += node_values[leaves]
        n_trees[rows] += 1
    known = np.flatnonzero(n_trees)
    row_loss = np.full(len(n_trees), np.nan)
    mean = total[known] / n_trees[known, np.newaxis]
    row_loss[known] = make_loss(mean, fitted.codes[known]).of(np.arange(len(known)))
    return row_loss, tree_loss
