"""Out-of-bag permutation importance, tree by tree."""

import numpy as np
from joblib import effective_n_jobs
from sklearn.utils import check_random_state
from sklearn.utils.parallel import Parallel, delayed

from cart.packed import pack
from cart.traverse import leaf_ids
from importance.adopt import adopt, is_classification, names_of
from importance.expectation import expected_increase, walk_tree
from importance.losses import choose_loss
from importance.narrow import narrow
from importance.result import Importances, mean_and_error

BIAS = (
    "Permuting one feature of a correlated group asks the trees about rows that do not occur, and "
    "measures how much single trees rely on the feature, not what is lost without it."
)


def oob_permutation(forest, X, y, *, loss=None, n_repeats=None, random_state=None, n_jobs=None):
    """How much worse each tree judges its out-of-bag rows when a feature is permuted among them.

    For tree t with out-of-bag rows O_t, d_tj is the mean loss on O_t with x_j permuted within O_t,
    less the mean loss as it is. The value is the mean of d_tj over the trees that have
    out-of-bag rows, its standard error sqrt((mean d^2 - mean(d)^2) / T) over those T trees
    (Breiman and Cutler's manual; R's randomForest). By default the expectation over all
    permutations is taken exactly. A feature that no tree uses has exactly 0.

    Parameters
    ----------
    forest : fitted random forest, ours or scikit-learn's
        With bootstrap=True.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        The table the forest was fitted on.
    y : array-like of shape (n_samples,)
    loss : {"zero_one", "brier", "squared_error"}, default=None
        Loss of a single tree; "zero_one" in classification and "squared_error" in regression
        by default.
    n_repeats : int, default=None
        Shuffle so often per tree and feature instead, and take the mean.
    random_state : int, RandomState instance or None, default=None
        Of the shuffles.
    n_jobs : int, default=None
        Threads; the result does not depend on it.

    Returns
    -------
    Importances

    Raises
    ------
    TypeError, ValueError
        If the forest is not one with out-of-bag rows, (X, y) cannot be its training table, or the
        loss does not fit the task.
    """
    fitted = adopt(forest, X, y)
    name, make_loss = choose_loss(loss, is_classification(forest))
    n_trees = len(fitted.trees)
    if n_repeats is None:
        shuffles = [None] * n_trees
    else:
        if n_repeats < 1:
            raise ValueError(f"n_repeats={n_repeats} must be at least 1, or None for exact values.")
        seeds = check_random_state(random_state).randint(np.iinfo(np.int32).max, size=n_trees)
        shuffles = [(int(n_repeats), seed) for seed in seeds]
    batches = np.array_split(np.arange(n_trees), min(n_trees, 4 * effective_n_jobs(n_jobs)))
    parts = Parallel(n_jobs=n_jobs, prefer="threads")(
        delayed(_of_trees)(fitted, batch, make_loss, shuffles) for batch in batches
    )
    per_tree = np.concatenate(parts)
    if np.isnan(per_tree).all():
        raise ValueError("No row is out of bag for any tree; draw fewer rows with max_samples.")
    return Importances(
        "oob_permutation",
        *mean_and_error(per_tree),
        per_tree,
        names_of(forest),
        unit=f"increase in out-of-bag {name.replace('_', '-')} loss of a tree",
        uncertainty="over trees",
        bias=BIAS,
    )


def _of_trees(fitted, batch, make_loss, shuffles):
    """d_tj of the trees in a batch, (n_batch, n_features)."""
    out = np.zeros((len(batch), fitted.X.shape[1]))
    for d, t in zip(out, batch, strict=True):
        rows = fitted.out_of_bag(t)
        if len(rows) == 0:
            d[:] = np.nan
        elif shuffles[t] is None:
            walked, values = walk_tree(fitted.trees[t], fitted.X, rows)
            loss = make_loss(values, fitted.codes[rows])
            d[walked.features] = expected_increase(walked, loss) / len(rows)
        else:
            d[:] = _sample(fitted, t, rows, make_loss, *shuffles[t])
    return out


def _sample(fitted, t, rows, make_loss, n_repeats, seed):
    """Mean increase over `n_repeats` shuffles of every feature, (n_features,)."""
    increase = np.zeros(fitted.X.shape[1])
    tree = fitted.trees[t]
    narrow_tree, features, X = narrow(tree, fitted.X, rows)
    if len(features) == 0:
        return increase
    packed = pack([narrow_tree], X.dtype)
    random_state = np.random.RandomState(seed)
    loss = make_loss(tree.value.reshape(tree.node_count, -1), fitted.codes[rows])
    base = loss.of(leaf_ids(packed, 0, X)).mean()
    for column, feature in enumerate(features):
        values = X[:, column].copy()
        for _ in range(n_repeats):
            X[:, column] = random_state.permutation(values)
            increase[feature] += loss.of(leaf_ids(packed, 0, X)).mean() - base
        X[:, column] = values
    return increase / n_repeats
