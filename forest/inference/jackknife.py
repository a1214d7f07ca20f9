"""Standard errors of predictions: the infinitesimal jackknife for bagging."""

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import gen_batches

from cart.primitives.user_warning import warn_user
from forest.inference.training_rows import is_of_one_table
from forest.sampling.bootstrap import bootstrap_of
from forest.voting.rules import values_of_trees

_BLOCK_VALUES = 1 << 22  # values of trees, and centred counts, held at a time: 32 MB each
_ROUNDING = 2.0**-46  # a tree that differs from the mean by a smaller share does so by rounding


def standard_error(forest: BaseEstimator, X: np.ndarray) -> np.ndarray:
    """Standard error of every value that a forest predicts as a mean over trees.

    With N_bi the count of row i in bag for tree b, t_b(x) the value of tree b, and B trees on n
    rows, the variance is (Wager, Hastie and Efron 2014, equations 5 and 7)

        V = sum_i Cov_i^2 - n / B^2 * sum_b (t_b(x) - t(x))^2,
        Cov_i = 1 / B * sum_b (N_bi - 1) (t_b(x) - t(x)),

    where t(x) is the mean over trees. The second term corrects the bias of the first one due to the
    finite number of trees. This is the error of the prediction as an estimate of its expectation
    over training tables; it does not include the noise of y.

    V is a first-order estimate, and too small for trees of full depth. With 5 trees per row it is
    0.83 of the variance over fresh tables (`python -m benchmarks forest`), and about two thirds of
    it if half of y is noise: two errors to either side then contain the expectation in about 80 %
    of cases, or about 90 % with 10 rows per leaf. With as many trees as rows, or fewer, many
    estimates are negative, and it is 60 % or less.

    Parameters
    ----------
    forest : fitted forest
    X : ndarray of shape (n_rows, n_features), float32 or float64, C order, or csr_matrix

    Returns
    -------
    ndarray of shape (n_rows, n_outputs, n_values), float64

    Raises
    ------
    ValueError
        If the trees do not draw as many rows as the table has, with replacement, all with the same
        probability; if `voting` is not "soft"; or if there is only one tree.

    Warns
    -----
    UserWarning
        If an estimated variance is negative, and counts as 0.

    References
    ----------
    Wager, S., Hastie, T. and Efron, B. (2014). Confidence intervals for random forests: the
    jackknife and the infinitesimal jackknife. Journal of Machine Learning Research 15.
    """
    _require_plain_bootstrap(forest)
    packed, bootstrap = forest._packed(), bootstrap_of(forest)
    n_trees, n_values = len(forest.estimators_), packed.value.shape[1]
    counts = np.array([bootstrap.counts(t).astype(np.uint16) for t in range(n_trees)])
    block = max(1, _BLOCK_VALUES // (n_trees * n_values))
    is_gram = min(block, X.shape[0]) * n_values > n_trees
    # With the products of the trees' counts computed once, the sum over training rows is a small
    # product for every x. All terms are whole numbers, so the products are exact.
    gram = sum(part @ part.T for part in _centred(counts)) if is_gram else None
    variance = np.empty((X.shape[0], n_values))
    for some in gen_batches(X.shape[0], block):
        values = values_of_trees(packed, X[some], forest.n_jobs).reshape(n_trees, -1)
        mean = values.mean(axis=0)
        values -= mean
        values[np.abs(values) <= _ROUNDING * np.abs(mean)] = 0.0
        spread = np.einsum("bj,bj->j", values, values)
        if is_gram:
            squares = np.einsum("bj,bj->j", values, gram @ values)
        else:
            squares = sum(((part.T @ values) ** 2).sum(axis=0) for part in _centred(counts))
        of_block = (squares - counts.shape[1] * spread) / n_trees**2
        variance[some] = of_block.reshape(-1, n_values)
    n_negative, n_samples = np.count_nonzero(variance < 0.0), counts.shape[1]
    if n_negative:
        warn_user(
            f"{n_negative} of {variance.size} estimated variances are negative and count as 0: "
            f"{n_trees} trees are too few for {n_samples} training rows. Use about as many trees "
            f"as rows: n_estimators={max(2 * n_trees, n_samples)}."
        )
    error = np.sqrt(np.maximum(variance, 0.0))
    return error.reshape(X.shape[0], forest.n_outputs_, -1)


def _require_plain_bootstrap(forest):
    advice = "Fit with bootstrap=True, max_samples=None and no weights."
    if not forest._bootstrap.is_drawn:
        raise ValueError(f"The infinitesimal jackknife needs a bootstrap. {advice}")
    fits = getattr(forest, "_grown_with", [vars(forest)])  # older pickles have none
    if forest._row_weight is not None or any(fit.get("class_weight") for fit in fits):
        raise ValueError(
            "The infinitesimal jackknife needs all rows to be drawn with the same probability, "
            f"but sample_weight, class_weight or priors were given. {advice}"
        )
    if not forest._bootstrap.is_plain:
        raise ValueError(
            "The infinitesimal jackknife needs trees that draw as many rows as there are, with "
            f"replacement: no max_samples, replace=False, stratify, groups or in_bag. {advice}"
        )
    if not is_of_one_table(forest):
        raise ValueError(
            "The infinitesimal jackknife needs one table and one way of drawing, but with "
            "warm_start=True the forest was fitted on several tables, or in several ways. "
            f"{advice}"
        )
    if forest.voting != "soft":
        raise ValueError(
            'The infinitesimal jackknife needs means over trees (voting="soft"), but '
            f"voting={forest.voting!r}."
        )
    if len(forest.estimators_) < 2:
        raise ValueError("A standard error needs at least two trees.")


def _centred(counts):
    """Yield the centred counts N - 1 in blocks of rows, float64 of shape (n_trees, n_rows)."""
    n_trees, n_samples = counts.shape
    for some in gen_batches(n_samples, max(1, _BLOCK_VALUES // n_trees)):
        yield counts[:, some] - 1.0
