"""Permutation importance on rows that no tree has seen."""

import numpy as np
from joblib import effective_n_jobs
from sklearn.utils.parallel import Parallel, delayed

from cart.estimators.target import encode_known_labels
from cart.estimators.validation import check_rows
from forest.inference.training_rows import is_table_of
from importance.core.docs import with_shared_parameters
from importance.core.fitted_forest import is_classification, names_of, trees_of
from importance.core.losses import choose_loss
from importance.core.result import Importances, mean_and_error
from importance.permutation.expectation import expected_increase
from importance.permutation.oob import BIAS
from importance.permutation.prepared_tree import prepare_tree


@with_shared_parameters
def held_out_permutation(forest, X, y, *, loss=None, n_jobs=None):
    """How much worse each tree judges held-out rows when a feature is permuted among them.

    `oob_permutation` with the same rows for every tree: the exact expectation over all
    permutations of a feature within these rows, per tree, and the mean over trees.

    Parameters
    ----------
    forest : fitted forest, ours or scikit-learn's
        With or without bootstrap.
    X : array-like or sparse matrix of shape (n_rows, n_features)
        Rows that the forest was not fitted on.
    y : array-like of shape (n_rows,)
    loss : str, default=None
        As in `oob_permutation`.
    %(n_jobs)s

    Returns
    -------
    Importances

    Raises
    ------
    TypeError, ValueError
        If it is not a forest, (X, y) is its training table, y holds classes that it does not
        know, or the loss does not fit the task.
    """
    trees = trees_of(forest)
    X, y = check_rows(forest, X), np.asarray(y)
    if y.shape != (X.shape[0],):
        raise ValueError(f"y has shape {y.shape}, but X has {X.shape[0]} rows.")
    if is_classification(forest):
        codes = encode_known_labels(y, [forest.classes_]).codes[:, 0]
    else:
        codes = y.astype(np.float64)
    if is_table_of(forest, X, codes):
        raise ValueError(
            "(X, y) is the table that the forest was fitted on: its rows are not held out. Use "
            "oob_permutation."
        )
    name, make_loss = choose_loss(loss, is_classification(forest))
    rows = np.arange(X.shape[0])

    def of_trees(batch):
        out = np.zeros((len(batch), X.shape[1]))
        for d, t in zip(out, batch, strict=True):
            prepared, values = prepare_tree(trees[t], X, rows)
            d[prepared.groups] = expected_increase(prepared, make_loss(values, codes)) / len(rows)
        return out

    n_trees = len(trees)
    batches = np.array_split(np.arange(n_trees), min(n_trees, 4 * effective_n_jobs(n_jobs)))
    parts = Parallel(n_jobs=n_jobs, require="sharedmem")(delayed(of_trees)(b) for b in batches)
    per_tree = np.concatenate(parts)
    return Importances(
        "held_out_permutation",
        *mean_and_error(per_tree),
        per_tree,
        names_of(forest),
        unit=f"increase in held-out {name.replace('_', '-')} loss of a tree",
        uncertainty="over trees",
        bias=BIAS,
    )
