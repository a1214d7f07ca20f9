"""Slow, obvious permutation importance: over every donor, or with given permutations."""

import numpy as np


def row_losses(values, codes, loss):
    """Loss of each row by definition; values are class shares or one number, (n_rows, k)."""
    if loss == "zero_one":
        return (np.argmax(values, axis=1) != codes).astype(float)
    if loss == "brier":
        return ((values - np.eye(values.shape[1])[codes.astype(int)]) ** 2).sum(axis=1)
    if loss == "true_class":
        return (1.0 - values[np.arange(len(codes)), codes.astype(int)]) ** 2
    mean = values[:, 0]
    if loss == "squared_error":
        return (mean - codes) ** 2
    if loss == "absolute_error":
        return np.abs(mean - codes)
    assert loss == "poisson"
    ratio = np.where(codes > 0, codes, 1.0) / mean
    return 2.0 * (codes * np.log(ratio) + mean - codes)


def out_of_bag(draws, n_samples):
    """Rows that were not drawn, ascending."""
    return np.array(sorted(set(range(n_samples)) - set(draws.tolist())), dtype=np.int64)


def exchanged(X, columns, donors):
    """X with the values of the donors in some columns."""
    X = X.copy()
    X[:, columns] = X[np.ix_(donors, columns)]
    return X


def losses_in(tree, X, codes, loss):
    """Loss of every row in the leaf it reaches."""
    return row_losses(tree.value[tree.apply(X)].reshape(len(X), -1), codes, loss)


def every_donor(tree, X, codes, loss, columns):
    """Increase of each row's loss, averaged over all donors of the values in some columns."""
    base = losses_in(tree, X, codes, loss)
    total = np.zeros(len(X))
    for donor in range(len(X)):
        total += losses_in(tree, exchanged(X, columns, [donor] * len(X)), codes, loss) - base
    return total / len(X)


def given(tree, X, codes, loss, columns, order):
    """Increase of each row's loss for one permutation of the values in some columns."""
    return losses_in(tree, exchanged(X, columns, order), codes, loss) - losses_in(
        tree, X, codes, loss
    )


def vote(trees, samples, X_of_tree, n_samples, is_hard=False):
    """Sum of the trees' votes on their out-of-bag rows, and the number of votes per row.

    `X_of_tree(t, rows)` returns the out-of-bag rows of tree t in the form it predicts them.
    """
    total, times = 0.0, np.zeros(n_samples)
    for t, (tree, draws) in enumerate(zip(trees, samples, strict=True)):
        rows = out_of_bag(draws, n_samples)
        said = tree.value[tree.apply(X_of_tree(t, rows))].reshape(len(rows), -1)
        if is_hard:
            said = np.eye(said.shape[1])[said.argmax(axis=1)]
        mine = np.zeros((n_samples, said.shape[1]))
        mine[rows] = said
        total, times[rows] = total + mine, times[rows] + 1
    return total, times
