"""Check a fit's parameters for drawing rows, and turn them into a Bootstrap."""

from numbers import Integral

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils._missing import is_pandas_na

from cart.primitives.user_warning import warn_user
from forest.sampling.bootstrap import Bootstrap

WITHOUT_REPLACEMENT = 0.632  # default share of the rows drawn without replacement
_DRAWS_MAX = 2**30  # the same limit as for rows


def plan_bootstrap(
    forest: BaseEstimator,
    codes: np.ndarray,
    weight: np.ndarray | None,
    groups: ArrayLike | None,
    in_bag: ArrayLike | None,
) -> Bootstrap:
    """Plan how a forest will draw its rows.

    Parameters
    ----------
    forest : estimator
        Its parameters `bootstrap`, `bootstrap_draw`, `max_samples`, `n_estimators`, `replace` and
        `stratify` are read.
    codes : ndarray of shape (n_samples, n_outputs), float64
        Positions of the classes, for `stratify`.
    weight : ndarray of shape (n_samples,), float64, or None
        Rows are drawn with probabilities proportional to it; not all 0.
    groups, in_bag : array-like or None
        As given to `fit`.

    Returns
    -------
    Bootstrap
        Without seeds.

    Raises
    ------
    ValueError
        If the parameters contradict each other.
    """
    n_samples = len(codes)
    named = {
        "groups": groups is not None,
        "in_bag": in_bag is not None,
        "stratify=True": forest.stratify,
        "replace=False": not forest.replace,
    }
    wanted = [name for name, is_wanted in named.items() if is_wanted]
    if not forest.bootstrap:
        if wanted:
            raise ValueError(
                f"{wanted[0]} sets how rows are drawn, but bootstrap=False draws none; set "
                "bootstrap=True."
            )
        return Bootstrap.plain(n_samples, None)
    if forest.bootstrap_draw == "keyed":
        return _by_blocks(forest, n_samples, [*wanted, *["weights"] * (weight is not None)])
    if in_bag is not None:
        if len(wanted) > 1 or forest.max_samples is not None or weight is not None:
            raise ValueError(
                "in_bag already sets which rows are in bag; leave out groups, weights, "
                "max_samples, stratify and replace."
            )
        given = _check_in_bag(in_bag, forest.n_estimators, n_samples)
        return Bootstrap.plain(n_samples, None, given=given)
    if groups is not None:
        if forest.stratify or weight is not None:
            raise ValueError(
                "groups are drawn whole and with equal probability, so they cannot be combined "
                "with stratify=True or with weights of rows or classes."
            )
        groups, n_groups = _check_groups(groups, n_samples)
        n_draws = count_draws(forest.max_samples, n_groups, None, forest.replace)
        return Bootstrap.plain(n_samples, n_draws, replace=forest.replace, groups=groups)
    n_draws = count_draws(forest.max_samples, n_samples, weight, forest.replace)
    strata = None
    if forest.stratify:
        strata = np.unique(codes, axis=0, return_inverse=True)[1].ravel()
    drawn = Bootstrap.plain(n_samples, n_draws, weight, replace=forest.replace, strata=strata)
    if forest.stratify:
        drawn.require_weight_in_strata()
        _warn_of_weights_without_effect(weight, strata)
    return drawn


def draws_ignore_class_weight(
    forest: BaseEstimator, groups: ArrayLike | None, in_bag: ArrayLike | None
) -> bool:
    """Whether a row's probability of being in bag does not depend on the weight of its class.

    Priors and losses are then weights inside the trees. `forest`, `groups` and `in_bag` are those
    of `plan_bootstrap`.
    """
    is_keyed = forest.bootstrap_draw == "keyed"
    is_given = groups is not None or in_bag is not None
    return forest.bootstrap and (is_given or is_keyed or forest.stratify)


def _warn_of_weights_without_effect(weight, strata):
    """Warn if weights differ only between classes, since stratified draws ignore such weights."""
    if weight is None:
        return
    least, most = np.full(strata.max() + 1, np.inf), np.zeros(strata.max() + 1)
    np.minimum.at(least, strata, weight)
    np.maximum.at(most, strata, weight)
    if (least == most).all() and most.min() < most.max():
        warn_user(
            "stratify=True draws each class in proportion to its rows, so weights that differ "
            'only between classes have no effect. Use class_weight="balanced_subsample", which '
            "weighs rows inside the trees, or set stratify=False."
        )


def _by_blocks(forest, n_samples, wanted):
    if wanted:
        raise ValueError(
            'bootstrap_draw="keyed" draws rows one by one, with replacement and equal '
            f'probability; leave out {wanted[0]}, or set bootstrap_draw="sequence".'
        )
    n_draws = count_draws(forest.max_samples, n_samples)
    return Bootstrap.plain(n_samples, n_draws, by_blocks=True)


def _check_groups(groups, n_samples):
    """Check groups, and return them as 0, 1, ..., with their number."""
    is_masked = np.ma.is_masked(groups) and np.ma.getmaskarray(groups)
    groups = np.asarray(groups)
    if groups.shape != (n_samples,):
        raise ValueError(
            f"groups must have one entry per row, shape ({n_samples},), but has shape "
            f"{groups.shape}."
        )
    is_missing = _is_missing(groups).astype(bool) if groups.dtype == object else groups != groups
    is_missing |= is_masked
    if is_missing.any():  # missing values do not sort, which would split groups
        raise ValueError(
            f"groups has {is_missing.sum()} missing value(s), first in row "
            f"{is_missing.argmax()}; name a group for these rows, or leave them out."
        )
    try:
        names, groups = np.unique(groups, return_inverse=True)
    except TypeError:
        kinds = sorted({type(name).__name__ for name in groups})
        raise ValueError(
            f"groups mixes types that cannot be sorted together ({', '.join(kinds)}); convert "
            "them to one type, for example with groups.astype(str)."
        ) from None
    return groups, len(names)


_is_missing = np.frompyfunc(lambda name: name is None or is_pandas_na(name) or name != name, 1, 1)


def _check_in_bag(in_bag, n_trees, n_samples):
    """Check given in-bag counts, and return them as int64."""
    if n_trees == "auto":
        raise ValueError(
            'n_estimators="auto" cannot be combined with in_bag, which sets the number of trees; '
            "set n_estimators to that number."
        )
    if np.ma.is_masked(in_bag):
        raise ValueError("in_bag has masked values; write 0 where a row is not in bag.")
    given = np.asarray(in_bag)
    if given.shape != (n_trees, n_samples):
        raise ValueError(
            f"in_bag must have a row per tree and a column per row of X, shape ({n_trees}, "
            f"{n_samples}), but has shape {given.shape}."
        )
    if given.dtype.kind not in "biu" or given.min() < 0 or not given.any(axis=1).all():
        raise ValueError(
            "in_bag must hold non-negative whole numbers, with some row in bag for every tree."
        )
    return given.astype(np.int64)


def count_draws(
    max_samples: float | None,
    n_samples: int,
    weight: np.ndarray | None = None,
    replace: bool = True,
) -> int:
    """How many rows, or groups, to draw per estimator.

    Parameters
    ----------
    max_samples : None, int or float
        A number; or a share of n_samples, or of the total weight if there are weights (and draws
        are with replacement). None is n_samples; without replacement it is 0.632 of them, the
        expected share of distinct rows among n_samples draws with replacement.
    n_samples : int
        Number of rows, or of groups.
    weight : ndarray of shape (n_samples,) or None
    replace : bool

    Raises
    ------
    ValueError
        If `max_samples` is a bool, or more than can be drawn without replacement or counted.
    """
    if isinstance(max_samples, bool):
        raise ValueError(f"max_samples={max_samples} is neither a number of rows nor a share.")
    if not replace:
        weight, n_most = None, n_samples if weight is None else np.count_nonzero(weight)
        max_samples = WITHOUT_REPLACEMENT if max_samples is None else max_samples
    if max_samples is None:
        return n_samples
    if isinstance(max_samples, Integral):
        n_draws = int(max_samples)
    else:
        total = n_samples if weight is None else weight.sum()
        what = "number of samples" if weight is None else "total sum of sample weights"
        n_draws = max(int(max_samples * total), 1)
        if n_draws < max(10, n_samples ** (1 / 3)):
            warn_user(
                f"Using the fractional value max_samples={max_samples} when the {what} is {total} "
                f"results in a low number ({n_draws}) of bootstrap samples. We recommend passing "
                "`max_samples` as an integer instead."
            )
    if n_draws > _DRAWS_MAX:
        raise ValueError(
            f"max_samples={max_samples} asks for {n_draws:,} draws for each tree, but at most "
            f"{_DRAWS_MAX:,} are supported."
        )
    if not replace and n_draws > n_most:
        raise ValueError(
            f"{n_draws} draws without replacement need as many rows (or groups) with a weight, "
            f"but there are only {n_most}; set max_samples to at most that, or replace=True."
        )
    return n_draws
