"""Slow, obvious twins of what forests do: out-of-bag predictions and the three importances."""

import numpy as np


def leaf(tree, x, precision=np.float32):
    """Number of the leaf that one row reaches, one node after the other."""
    node = 0
    while tree.children_left[node] != -1:
        value = precision(x[tree.feature[node]])
        goes_left = value <= tree.threshold[node]
        if np.isnan(value):
            goes_left = tree.missing_go_to_left[node]
        node = (tree.children_left if goes_left else tree.children_right)[node]
    return node


def values(tree, X):
    """Values of the leaves that the rows of X reach, (n_rows, n_values)."""
    return np.array([tree.value[leaf(tree, x)].ravel() for x in X])


def out_of_bag(draws, n_samples):
    """Rows that were not drawn, ascending."""
    drawn = set(draws.tolist())
    return np.array([i for i in range(n_samples) if i not in drawn], dtype=np.int64)


def out_of_bag_values(trees, samples, X, leave_out=None):
    """Mean value over the trees for which a row is out of bag; nan where there is none."""
    X = X if leave_out is None else np.delete(X, leave_out, axis=1)
    total, count = 0.0, np.zeros((len(X), 1))
    for tree, draws in zip(trees, samples, strict=True):
        mine = np.zeros((len(X), tree.value.shape[2]))
        rows = out_of_bag(draws, len(X))
        mine[rows] = values(tree, X[rows])
        count[rows] += 1
        total = total + mine
    with np.errstate(invalid="ignore"):
        return total / count


def row_losses(values, codes, loss):
    """Loss of each row by its definition."""
    if loss == "squared_error":
        return (values[:, 0] - codes) ** 2
    if loss == "zero_one":
        return (np.argmax(values, axis=1) != codes).astype(float)
    truth = np.eye(values.shape[1])[codes.astype(int)]
    return ((values - truth) ** 2).sum(axis=1)


def impurity_decrease(tree):
    """MDI of one tree, split by split, divided by its sum."""
    total = np.zeros(tree.n_features)
    for node in range(tree.node_count):
        left, right = tree.children_left[node], tree.children_right[node]
        if left == -1:
            continue
        total[tree.feature[node]] += (
            tree.weighted_n_node_samples[node] * tree.impurity[node]
            - tree.weighted_n_node_samples[left] * tree.impurity[left]
            - tree.weighted_n_node_samples[right] * tree.impurity[right]
        )
    return total / total.sum() if total.sum() > 0 else total


def permutation_of_every_donor(tree, X, codes, loss):
    """Mean increase of the loss of one tree: every row gets every row's value, in turn."""
    base = row_losses(values(tree, X), codes, loss).mean()
    increase = np.zeros(X.shape[1])
    for feature in range(X.shape[1]):
        for donor in range(len(X)):
            permuted = X.copy()
            permuted[:, feature] = X[donor, feature]
            increase[feature] += row_losses(values(tree, permuted), codes, loss).mean() - base
    return increase / len(X)
