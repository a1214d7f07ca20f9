"""Priors and losses: what classes and mistakes are worth (Breiman et al. 1984, sections 1.4, 4.4).

Rows weigh what makes each class weigh its altered prior, its prior times what it costs to be
mistaken about it; splits are chosen under these weights:

    weight of a row of class i   its own x prior(i) L(i) / (share(i) sum over h of prior(h) L(h))
    L(i)                         sum over j of loss(i, j); 1 without losses

A node's class shares are then those under the altered priors, s(i). Dividing by L leads back to
the true ones, p(i) ~ s(i) / L(i), by which the class is chosen that costs least:

    arg min over j of  sum over i of p(i) loss(i, j)
"""

import numpy as np

from cart.files.state import has_row_names


def check_priors(priors, labels):
    """The priors of the classes.

    Parameters
    ----------
    priors : dict of label to float, array-like of shape (n_classes,), or None
        A Series of pandas is by its labels, unless these are 0, 1, ... as by default.
    labels : ndarray of shape (n_classes,)

    Returns
    -------
    ndarray of shape (n_classes,), float64, or None

    Raises
    ------
    ValueError
        If they are not one positive number for each class, with the sum 1.
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
                f"priors must name the classes {labels.tolist()}; it lacks {missing} and has "
                f"{strange}, which y has not."
            )
        priors = [priors[label] for label in labels.tolist()]
    numbers = _as_numbers("priors", priors)
    if numbers.shape != labels.shape:
        raise ValueError(
            f"priors has shape {numbers.shape}, but there are {len(labels)} classes; give a number "
            "for each, in the order of classes_, or a dict by label."
        )
    if not ((numbers > 0.0).all() and np.isclose(numbers.sum(), 1.0, rtol=0.0, atol=1e-6)):
        raise ValueError(
            f"priors must be positive with the sum 1, but are {numbers.tolist()}; divide them by "
            "their sum."
        )
    return numbers / numbers.sum()


def _as_numbers(name, values):
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be an array of numbers, but is {values!r}.") from error


def check_loss(loss, labels):
    """The loss matrix.

    Parameters
    ----------
    loss : array-like of shape (n_classes, n_classes), or None
        loss[i][j]: of taking class i for class j. A DataFrame is by its labels, as priors are.
    labels : ndarray of shape (n_classes,)

    Returns
    -------
    ndarray of shape (n_classes, n_classes), float64, or None

    Raises
    ------
    ValueError
        If it has another shape or other labels, a negative number, another diagonal than 0, or a
        row without a positive number.
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
    numbers = _as_numbers("loss", loss)
    if numbers.shape != (n_classes, n_classes):
        raise ValueError(
            f"loss has shape {numbers.shape}, but there are {n_classes} classes; give a row for "
            "each true and a column for each predicted class, in the order of classes_."
        )
    if not (np.isfinite(numbers).all() and (numbers >= 0.0).all()):
        raise ValueError("loss must hold finite numbers that are not negative.")
    if numbers.diagonal().any():
        raise ValueError("The diagonal of loss must be 0: the right class costs nothing.")
    if n_classes > 1 and not numbers.any(axis=1).all():
        raise ValueError(
            f"Row {int(np.argmin(numbers.any(axis=1)))} of loss is 0: mistakes about that class "
            "would cost nothing, and it could not be told from the others. Leave the class out."
        )
    return numbers


def refuse_several_outputs(estimator, n_outputs):
    """Refuse priors and losses of several outputs.

    Raises
    ------
    ValueError
    """
    for name in ("priors", "loss"):
        if getattr(estimator, name, None) is not None and n_outputs > 1:
            raise ValueError(f"{name} is of one output, but y has {n_outputs}; fit one by one.")


def row_losses(loss):
    """What mistakes about each class cost in all, (n_classes,) float64; 1 of a lone class."""
    total = loss.sum(axis=1)
    return np.where(total > 0.0, total, 1.0)


def class_factors(weight, codes, priors, loss, n_classes):
    """What rows of each class weigh times their own weight, so that each class weighs its altered
    prior.

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
        The sum of all weights stays what it is.
    """
    codes = codes.astype(np.int64)
    weight = np.broadcast_to(1.0 if weight is None else weight, codes.shape)
    total = np.bincount(codes, weight, n_classes)
    factor = np.ones(n_classes) if priors is None else prior_weights(priors, total)
    if loss is not None:
        factor = factor * row_losses(loss)
    return factor * (total.sum() / (factor * total).sum())


def prior_weights(priors, total):
    """What a unit of a class's weight weighs, so that classes weigh their priors.

    Parameters
    ----------
    priors : ndarray of shape (n_classes,)
    total : ndarray of shape (n_classes,)
        Weight of each class.

    Returns
    -------
    ndarray of shape (n_classes,), float64
        0 of a class without weight.
    """
    share = total / total.sum()
    return np.divide(priors, share, out=np.zeros(len(priors)), where=share > 0.0)


def true_shares(altered, loss):
    """Class shares under the priors, from those under the altered priors.

    Parameters
    ----------
    altered : ndarray of shape (..., n_classes), float64
    loss : ndarray of shape (n_classes, n_classes), or None
        None: they are the same.

    Returns
    -------
    ndarray of shape (..., n_classes), float64
    """
    if loss is None:
        return altered
    shares = altered / row_losses(loss)
    return shares / shares.sum(axis=-1, keepdims=True)


def cheapest(shares, loss):
    """The class of least expected loss, the first of several.

    Parameters
    ----------
    shares : ndarray of shape (..., n_classes), float64
        Under the priors.
    loss : ndarray of shape (n_classes, n_classes), or None
        None: 1 for any mistake, so that it is the class of the highest share.

    Returns
    -------
    ndarray of shape (...), int64
    """
    if loss is not None:
        return _of_least(shares @ loss).argmin(axis=-1)
    if shares.shape[-1] == 2:  # argmax takes as long as a walk down a tree
        return (shares[..., 1] > shares[..., 0]).astype(np.intp)
    return shares.argmax(axis=-1)


def _of_least(costs):
    """Costs of which those count as equal that differ by rounding alone."""
    least = costs.min(axis=-1, keepdims=True)
    return np.where(costs <= least * (1.0 + 1e-12), least, costs)


def node_costs(tree, loss=None):
    """What the class that a node predicts costs, in expectation, per weight of the root.

    The risk R(t) = p(t) r(t) of the book, of every node as if it were a leaf.

    Parameters
    ----------
    tree : cart.tree.tree.Tree
        Of one output.
    loss : ndarray of shape (n_classes, n_classes), or None
        None: 1 for any mistake.

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
