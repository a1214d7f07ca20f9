"""Priors of classes and losses of mistakes (Breiman et al. 1984, sections 1.4 and 4.4).

Trees are grown on weights under which each class weighs its altered prior: its prior times L, the
total cost of mistakes about it.

    weight of a row of class i   its own x prior(i) L(i) / (share(i) sum over h of prior(h) L(h))
    L(i)                         sum over j of loss(i, j); 1 without losses

The class shares s(i) in a node are then those under the altered priors. Dividing by L gives the
true shares, p(i) ~ s(i) / L(i). The predicted class is the one with the least expected loss:

    arg min over j of  sum over i of p(i) loss(i, j)
"""

import numpy as np

from cart.files.state import has_row_names


def check_priors(priors, labels):
    """Check the priors of the classes and return them as an array in the order of `labels`.

    Parameters
    ----------
    priors : dict of label to float, array-like of shape (n_classes,), or None
        A pandas Series is read by its labels, unless these are the default 0, 1, ...
    labels : ndarray of shape (n_classes,)

    Returns
    -------
    ndarray of shape (n_classes,), float64, or None

    Raises
    ------
    ValueError
        If they are not one positive number for each class, summing to 1.
    """
    if priors is None:
        return None
    if has_row_names(priors):
        priors = priors.to_dict()
    if isinstance(priors, dict):
        missing = [label for label in labels.tolist() if label not in priors]
        strange = [label for label in priors if label not in labels.tolist()]
        if missing or strange:
            raise ValueError(
                f"priors must name the classes {labels.tolist()}; missing: {missing}; not in y: "
                f"{strange}."
            )
        priors = [priors[label] for label in labels.tolist()]
    numbers = _as_numbers("priors", priors)
    if numbers.shape != labels.shape:
        raise ValueError(
            f"priors has shape {numbers.shape}, but there are {len(labels)} classes; pass one "
            "number per class, in the order of classes_, or a dict by class label."
        )
    if not ((numbers > 0.0).all() and np.isclose(numbers.sum(), 1.0, rtol=0.0, atol=1e-6)):
        raise ValueError(
            f"priors must be positive and sum to 1, but are {numbers.tolist()}; divide them by "
            "their sum."
        )
    return numbers / numbers.sum()


def _as_numbers(name, values):
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be an array of numbers, but is {values!r}.") from error


def check_loss(loss, labels):
    """Check the loss matrix and return it as an array in the order of `labels`.

    Parameters
    ----------
    loss : array-like of shape (n_classes, n_classes), or None
        loss[i][j] is the cost of predicting class j for class i. A DataFrame is read by its
        labels, as `check_priors` reads a Series.
    labels : ndarray of shape (n_classes,)

    Returns
    -------
    ndarray of shape (n_classes, n_classes), float64, or None

    Raises
    ------
    ValueError
        If its shape or labels do not match the classes, a number is negative or not finite, the
        diagonal is not 0, or a row has no positive number.
    """
    if loss is None:
        return None
    n_classes = len(labels)
    if has_row_names(loss) or has_row_names(getattr(loss, "T", None)):
        named = [loss.index.tolist(), loss.columns.tolist()]
        if any({*names} != {*labels.tolist()} for names in named):
            raise ValueError(
                f"loss must name the classes {labels.tolist()} in its rows and columns, but has "
                f"rows {named[0]} and columns {named[1]}."
            )
        loss = loss.loc[labels, labels]
    else:
        _refuse_another_order(getattr(loss, "columns", ()), labels)
    numbers = _as_numbers("loss", loss)
    if numbers.shape != (n_classes, n_classes):
        raise ValueError(
            f"loss has shape {numbers.shape}, but there are {n_classes} classes; pass a row per "
            "true class and a column per predicted class, in the order of classes_."
        )
    if not (np.isfinite(numbers).all() and (numbers >= 0.0).all()):
        raise ValueError("loss must hold finite, non-negative numbers.")
    if numbers.diagonal().any():
        raise ValueError(
            "The diagonal of loss must be 0: predicting the right class costs nothing."
        )
    if n_classes > 1 and not numbers.any(axis=1).all():
        raise ValueError(
            f"Row {int(np.argmin(numbers.any(axis=1)))} of loss is all 0: mistakes about that "
            "class would cost nothing, and it could not be told apart from the others. Leave the "
            "class out."
        )
    return numbers


def _refuse_another_order(columns, labels):
    """Refuse columns that name the classes in another order, of a frame without row names."""
    named, expected = [str(name) for name in columns], [str(label) for label in labels]
    if named != expected and sorted(named) == sorted(expected):
        raise ValueError(
            f"loss has the columns {named} and no row names, so it is read by position, but "
            f"classes_ are {labels.tolist()}; put its rows and columns into that order."
        )


def row_losses(loss):
    """L: the summed loss of mistakes about each class, (n_classes,) float64; 1 for a lone class."""
    total = loss.sum(axis=1)
    return np.where(total > 0.0, total, 1.0)


def class_factors(weight, codes, priors, loss, n_classes):
    """Factors for the row weights of each class under which it weighs its altered prior.

    Parameters
    ----------
    weight : ndarray of shape (n_samples,), or scalar, or None
    codes : ndarray of shape (n_samples,), float64
        Class of every row.
    priors : ndarray of shape (n_classes,), or None
        None: the classes' shares of the weight.
    loss : ndarray of shape (n_classes, n_classes), or None
    n_classes : int

    Returns
    -------
    ndarray of shape (n_classes,), float64
        Scaled so that the sum of all weights does not change.
    """
    codes = codes.astype(np.int64)
    weight = np.broadcast_to(1.0 if weight is None else weight, codes.shape)
    total = np.bincount(codes, weight, n_classes)
    factor = np.ones(n_classes) if priors is None else prior_weights(priors, total)
    if loss is not None:
        factor = factor * row_losses(loss)
    return factor * (total.sum() / (factor * total).sum())


def prior_weights(priors, total):
    """Factors for the weights of the classes under which they weigh their priors.

    Parameters
    ----------
    priors : ndarray of shape (n_classes,)
    total : ndarray of shape (n_classes,)
        Weight of each class.

    Returns
    -------
    ndarray of shape (n_classes,), float64
        0 for a class without weight.
    """
    share = total / total.sum()
    return np.divide(priors, share, out=np.zeros(len(priors)), where=share > 0.0)


def true_shares(altered, loss):
    """Convert class shares under the altered priors to shares under the priors.

    Parameters
    ----------
    altered : ndarray of shape (..., n_classes), float64
    loss : ndarray of shape (n_classes, n_classes), or None
        None: both are the same.

    Returns
    -------
    ndarray of shape (..., n_classes), float64
    """
    if loss is None:
        return altered
    shares = altered / row_losses(loss)
    return shares / shares.sum(axis=-1, keepdims=True)


def cheapest(shares, loss):
    """Position of the class with the least expected loss; the first one in a tie.

    Parameters
    ----------
    shares : ndarray of shape (..., n_classes), float64
        Class shares under the priors.
    loss : ndarray of shape (n_classes, n_classes), or None
        None: every mistake costs 1, so this is the class with the largest share.

    Returns
    -------
    ndarray of shape (...), int64
    """
    if loss is not None:
        return _of_least(shares @ loss).argmin(axis=-1)
    if shares.shape[-1] == 2:  # argmax would take as long as walking down a tree
        return (shares[..., 1] > shares[..., 0]).astype(np.intp)
    return shares.argmax(axis=-1)


def _of_least(costs):
    """Costs in which those that exceed the least by rounding errors only are set equal to it."""
    least = costs.min(axis=-1, keepdims=True)
    return np.where(costs <= least * (1.0 + 1e-12), least, costs)


def node_costs(tree, loss=None):
    """Expected cost of the class that each node predicts, per unit of the root's weight.

    This is the risk R(t) = p(t) r(t) of Breiman et al., of every node as if it were a leaf.

    Parameters
    ----------
    tree : cart.tree.tree.Tree
        A tree with one output.
    loss : ndarray of shape (n_classes, n_classes), or None
        None: every mistake costs 1.

    Returns
    -------
    ndarray of shape (node_count,), float64
    """
    altered = tree.value[:, 0]
    weight = tree.weighted_n_node_samples / tree.weighted_n_node_samples[0]
    if loss is None:
        return weight * (1.0 - altered.max(axis=1))
    shares = altered / row_losses(loss)
    return weight * (shares @ loss).min(axis=1) / shares[0].sum()
