"""Warn if the rows of a class are out of bag too rarely."""

import numpy as np

from cart.primitives.user_warning import warn_user
from importance.core.fitted_forest import FittedForest

LEAST_SHARE = 0.5  # least ratio of how often a class is out of bag to how often the others are
MOST_NAMED = 10  # the warning lists at most this many classes


def warn_of_rare_classes(fitted: FittedForest, n_times: np.ndarray | None = None) -> None:
    """Warn about classes that hardly count out of bag, with the shares of the rarest.

    If rows are drawn by weight, as with class_weight="balanced", the rows of a small class are
    almost never out of bag. `n_times` is how often each row is out of bag. Without it, uniform
    draws are not checked.
    """
    if fitted.n_classes < 2 or (n_times is None and fitted.bootstrap.is_uniform):
        return
    if n_times is None:
        n_times = sum(fitted.counts(t) == 0 for t in range(len(fitted.trees)))
    codes = fitted.codes.astype(np.int64)
    size = np.bincount(codes, minlength=fitted.n_classes)
    times = np.bincount(codes, n_times, minlength=fitted.n_classes)
    with np.errstate(invalid="ignore", divide="ignore"):
        share = times / size / len(fitted.trees)
        others = (times.sum() - times) / (size.sum() - size) / len(fitted.trees)
    is_rare = share < LEAST_SHARE * others  # False for a class without rows
    if not is_rare.any():
        return
    labels = fitted.forest.classes_
    listed = np.sort(np.argsort(share, kind="stable")[:MOST_NAMED])
    shares = ", ".join(f"{labels[c]}: {share[c]:.1%}" for c in listed)
    shares += f", {len(labels) - len(listed)} more: above" if len(labels) > len(listed) else ""
    rare = " and ".join(str(label) for label in labels[listed][is_rare[listed]])
    n_others = is_rare.sum() - is_rare[listed].sum()
    rare += f" and {n_others} more" if n_others else ""
    warn_user(
        f"Rows of class {rare} are out of bag less than half as often as those of the other "
        f"classes (share of the trees: {shares}), so they hardly count out of bag. Fit with "
        'class_weight="balanced_subsample", which weights the rows without drawing them more '
        "often, or judge every class by itself with oob_permutation(..., per_class=True)."
    )
