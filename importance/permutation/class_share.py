"""How often the rows of each class are out of bag, and a warning where it is too seldom."""

import numpy as np

from cart.primitives.user_warning import warn_user
from importance.core.fitted_forest import FittedForest

# A class that is out of bag less than half as often as the others is warned of.
LEAST_SHARE = 0.5


def warn_of_rare_classes(fitted: FittedForest, n_times: np.ndarray) -> None:
    """Warn of classes that hardly count in out-of-bag losses, with the share of every class.

    Bootstraps that draw rows by their weight, as scikit-learn's class_weight="balanced" does, leave
    the rows of a small class almost never out of bag. `n_times` is how often each row is.
    """
    if fitted.n_classes < 2:
        return
    codes = fitted.codes.astype(np.int64)
    size = np.bincount(codes, minlength=fitted.n_classes)
    times = np.bincount(codes, n_times, minlength=fitted.n_classes)
    with np.errstate(invalid="ignore", divide="ignore"):
        share = times / size / len(fitted.trees)
        others = (times.sum() - times) / (size.sum() - size) / len(fitted.trees)
    is_rare = share < LEAST_SHARE * others  # False where a class has no rows
    if not is_rare.any():
        return
    labels = fitted.forest.classes_
    shares = ", ".join(f"{c}: {s:.1%}" for c, s in zip(labels, share, strict=True))
    rare = " and ".join(str(label) for label in labels[is_rare])
    warn_user(
        f"Rows of class {rare} are out of bag less than half as often as those of the other "
        f"classes (share of the trees: {shares}), so they hardly count in out-of-bag losses. "
        'class_weight="balanced_subsample" weighs the rows without drawing them more often; '
        "per_class=True judges every class by itself."
    )
