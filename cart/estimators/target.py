"""y as the kernels take it: class codes or numbers, one column per output."""

from typing import NamedTuple

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from cart.primitives.user_warning import warn_user
from cart.splitting.criterion import EPSILON


class Target(NamedTuple):
    """A training target."""

    codes: np.ndarray  # (n_samples, n_outputs) float64: position of the label, or the number
    labels: list | None  # per output (n_classes,): distinct labels, ascending; None in regression

    @property
    def n_outputs(self):
        return self.codes.shape[1]

    @property
    def n_values(self):
        """How many values a leaf holds per output."""
        return 1 if self.labels is None else max(len(labels) for labels in self.labels)


def doubt_on_small_target(trees, target):
    """A sentence on why no tree splits, if the target varies too little to count as impure.

    Parameters
    ----------
    trees : iterable of trees, ours or scikit-learn's
    target : ndarray of shape (n_samples,) or (n_samples, n_outputs), float64
        Numbers.

    Returns
    -------
    str
        Empty if a tree splits, or if the target is constant up to rounding.
    """
    # By Poisson deviance the impurity is infinite if the sum counts as 0.
    if any(tree.node_count > 1 or EPSILON < tree.impurity[0] < np.inf for tree in trees):
        return ""
    with np.errstate(all="ignore"):  # huge or tiny targets
        span, is_small = np.ptp(target, axis=0).max(), target.var(axis=0).max() <= EPSILON
        if not is_small or span <= 1e-12 * np.abs(target).max():
            return ""
    return (
        f"No tree splits, because y varies so little (its values span {span:.1g}): like "
        f"scikit-learn's, the trees treat an impurity of up to {EPSILON:.1g} as 0. Multiply y by "
        "a constant."
    )


def warn_of_small_target(trees, target):
    """Issue `doubt_on_small_target` of a regression target, if any, as a UserWarning."""
    if target.labels is None and (doubt := doubt_on_small_target(trees, target.codes)):
        warn_user(doubt)


def refuse_missing_target(y, name="y"):
    """Raise a ValueError if a target is masked, or is None, NaT or pandas.NA, which do not compare.

    Parameters
    ----------
    y : array-like
    name : str, default="y"
        Name of the target in error messages.

    Raises
    ------
    ValueError
    """
    is_missing = np.ma.getmaskarray(y) if np.ma.is_masked(y) else _find_missing(y)
    if is_missing is None:
        return
    rows = np.flatnonzero(is_missing.reshape(len(y), -1).any(axis=1))
    if len(rows):
        raise ValueError(
            f"{name} has missing values in {len(rows)} row(s), first in row {rows[0]}; leave "
            "these rows out."
        )


def _find_missing(y):
    """Which targets are None, NaT or pandas.NA; None if other checks find all that are missing."""
    if getattr(getattr(y, "dtype", None), "kind", "O") not in "OMU":  # U: also of Arrow's texts
        return None
    y = np.asarray(y)
    if y.ndim == 0 or y.dtype.kind not in "OM":
        return None
    if y.dtype.kind == "O":
        kinds = {kind.__name__ for kind in set(map(type, y.flat))}
        if not kinds & MISSING_TYPES:
            return None
    return (np.isnat if y.dtype.kind == "M" else is_missing)(y).astype(bool)


MISSING_TYPES = {"NoneType", "NAType", "NaTType"}  # by name, since pandas need not be installed
is_missing = np.frompyfunc(lambda label: type(label).__name__ in MISSING_TYPES, 1, 1)


def encode_labels(y):
    """Encode the target of a classifier, and find its labels.

    Parameters
    ----------
    y : ndarray of shape (n_samples,) or (n_samples, n_outputs)
        Labels of any type that can be sorted.

    Raises
    ------
    ValueError
        If y holds continuous numbers.
    """
    is_plain = y.ndim == 1 and (y.dtype.kind in "biu" or _are_words(y))
    columns = y.reshape(len(y), -1)
    if not is_plain:
        check_classification_targets(columns)  # accepts bytes, as scikit-learn's trees do
    codes = np.empty(columns.shape)
    labels = []
    for k in range(columns.shape[1]):
        labels_k, codes[:, k] = _find_labels(columns[:, k])
        labels.append(labels_k)
    # This check warns of many labels; it is slow, so it is called only where it would warn.
    if is_plain and 2 * len(labels[0]) > len(y):
        check_classification_targets(y)
    return Target(codes, labels)


def _find_labels(column):
    """The distinct values of a column, ascending, and the position of each value among them."""
    if np.can_cast(column.dtype, np.int64):
        lowest, highest = int(column.min()), int(column.max())
        if highest - lowest < len(column):  # a dense range of integers need not be sorted
            steps = column.astype(np.int64, copy=False) - lowest
            is_met = np.zeros(highest - lowest + 1, bool)
            is_met[steps] = True
            labels = (np.flatnonzero(is_met) + lowest).astype(column.dtype)
            return labels, (np.cumsum(is_met) - 1).take(steps)
    if _are_words(column):  # found by their hashes: to sort them all takes ten times as long
        words = column.tolist()
        labels = sorted(set(words))
        place = {label: k for k, label in enumerate(labels)}
        codes = np.fromiter(map(place.__getitem__, words), np.int64, len(words))
        return np.array(labels, object), codes
    return np.unique(column, return_inverse=True)


def _are_words(column):
    """Whether all labels are objects of type `str`."""
    return column.dtype.kind == "O" and set(map(type, column.flat)) == {str}


def encode_known_labels(y, labels):
    """Encode a target by the labels of a fitted classifier.

    Parameters
    ----------
    y : ndarray of shape (n_samples,) or (n_samples, n_outputs)
    labels : list of ndarray of shape (n_classes,), one per output
        The labels of the fit, ascending.

    Raises
    ------
    ValueError
        If y holds other labels, or has another number of outputs.
    """
    columns = y.reshape(len(y), -1)
    if columns.shape[1] != len(labels):
        raise ValueError(f"y has {columns.shape[1]} output(s), but the fit had {len(labels)}.")
    codes = np.empty(columns.shape)
    for k, known in enumerate(labels):
        position = np.searchsorted(known, columns[:, k]).clip(max=len(known) - 1)
        strange = columns[known[position] != columns[:, k], k]
        if len(strange):
            first = strange.tolist()[0]
            raise ValueError(f"y holds {first!r}, which is not among the classes {known}.")
        codes[:, k] = position
    return Target(codes, list(labels))


def encode_numbers(y):
    """Encode the target of a regressor: y as float64.

    A y that is read-only, as columns of DataFrames are, is copied, or kernels would be compiled.
    """
    return Target(np.require(y, np.float64, "CW").reshape(len(y), -1), None)
