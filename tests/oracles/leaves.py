"""Slow, obvious twins of what forests say of the rows in their leaves, in exact arithmetic."""

from fractions import Fraction

import numpy as np

from tests.oracles.forests import leaf


def leaves(forest, X):
    """Leaf of every row in every tree, (n_rows, n_trees), one node after the other."""
    precision = np.float64 if forest.precision == "float64" else np.float32
    return np.array([[leaf(tree.tree_, x, precision) for tree in forest.estimators_] for x in X])


def counts(forest, n_samples):
    """How often each row is in bag, (n_samples, n_trees)."""
    return np.array(
        [[np.sum(draws == i) for draws in forest.estimators_samples_] for i in range(n_samples)]
    )


def weights(at, leaves_of_rows, mass, trees):
    """Meinshausen's weights of the training rows for a row with the leaves `at`.

    Parameters
    ----------
    at : (n_trees,) leaf of the row in each tree
    leaves_of_rows : (n_samples, n_trees)
    mass : (n_samples, n_trees) of int: what each training row counts in each tree
    trees : the trees that have a say
    """
    total = [Fraction(0)] * len(leaves_of_rows)
    for t in trees:
        mine = [i for i in range(len(leaves_of_rows)) if leaves_of_rows[i, t] == at[t]]
        in_leaf = sum(int(mass[i, t]) for i in mine)
        for i in mine:
            total[i] += Fraction(int(mass[i, t]), in_leaf * len(trees))
    return total


def quantile(y, weight, q, tolerance=Fraction(1, 10**10)):
    """The smallest y of positive weight whose cumulative weight reaches q."""
    reached = Fraction(0)
    support = [(value, w) for value, w in sorted(zip(y.tolist(), weight, strict=True)) if w > 0]
    for value, w in support:
        reached += w
        if reached >= Fraction(q) - tolerance:
            return value
    raise AssertionError("the weights do not sum to 1")


def jackknife_variance(in_bag, values):
    """V_IJ-U of Wager, Hastie and Efron (2014): equation 5 less the correction of equation 7.

    Parameters
    ----------
    in_bag : (n_samples, n_trees)
    values : (n_rows, n_trees)
    """
    n_samples, n_trees = in_bag.shape
    variance = np.empty(len(values))
    for row, t in enumerate(values):
        beyond = t - t.mean()
        covariance = [((n - n.mean()) * beyond).sum() / n_trees for n in in_bag]
        variance[row] = np.sum(np.square(covariance))
        variance[row] -= n_samples / n_trees**2 * (beyond**2).sum()
    return variance


def proximities(at, drawn, pairs, others=None):
    """Proximities of `forest.inference.proximity`, pair by pair: (n_rows, n_others) of float.

    Parameters
    ----------
    at, others : (n_rows, n_trees) leaves
    drawn : (n_rows, n_trees) how often each row is in bag
    """
    n_trees = at.shape[1]
    others = at if others is None else others
    found = np.zeros((len(at), len(others)))
    for i in range(len(at)):
        for j in range(len(others)):
            if pairs == "all":
                trees = list(range(n_trees))
                shares = [at[i, t] == others[j, t] for t in trees]
            elif pairs == "out_of_bag":
                trees = [t for t in range(n_trees) if drawn[i, t] == 0 and drawn[j, t] == 0]
                shares = [at[i, t] == at[j, t] for t in trees]
            else:
                trees = [t for t in range(n_trees) if drawn[i, t] == 0]
                shares = [
                    (at[i, t] == at[j, t]) * drawn[j, t] / drawn[at[:, t] == at[i, t], t].sum()
                    for t in trees
                ]
            found[i, j] = np.mean(shares) if trees else 0.0
    return found
