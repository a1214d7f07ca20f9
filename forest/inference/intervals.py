"""Prediction intervals: a band of residual quantiles, calibrated on out-of-bag rows."""

from dataclasses import dataclass, field, replace
from math import ceil
from numbers import Real

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from cart.estimators.target import encode_numbers
from cart.estimators.validation import as_of_now
from cart.files import require, storable
from cart.table.precision import precision_of
from forest.inference import training_rows
from forest.inference.quantiles import out_of_bag_quantiles, quantiles_of
from forest.voting.out_of_bag import NO_ROW

_SPREAD_LEAF = 20  # rows per leaf of the forest of the spread: with fewer, it fits noise
_MIN_WIDTH = 1e-3  # least width that scores are divided by, as a share of the mean width


@dataclass
class Spread:
    """A forest that predicts how large residuals are, and the residuals of its training rows."""

    trees: list  # of cart.tree.tree.Tree: the trees whose residuals these are
    forest: object
    rows: training_rows.TrainingRows  # in the order of the residuals
    margins: dict = field(default_factory=dict)  # coverage -> see `_find_margin`

    def check(self) -> None:
        """Check that the rows belong to the trees of the forest."""
        trees = [estimator.tree_ for estimator in self.forest.estimators_]  # type: ignore[attr-defined]
        require(isinstance(self.rows, training_rows.TrainingRows), "residuals have no rows")
        require(self.rows.trees == trees, "the residuals belong to other trees")


storable("Spread", Spread)


def predict_interval(forest: BaseEstimator, X: ArrayLike, coverage: float = 0.9) -> np.ndarray:
    """Intervals that contain y with a given probability, calibrated on out-of-bag rows.

    The method is conformalised quantile regression (Romano, Patterson and Candes 2019), with
    out-of-bag rows instead of a calibration set, and residuals instead of y:

    1. r_i = y_i - the out-of-bag prediction of row i.
    2. A second forest is grown on |r_i|, with at least 20 rows per leaf, so that its leaves hold
       rows with residuals of similar size. (Trees grown on y divide rows by their mean. If the
       noise depends on other features, their quantiles are too wide where it is low and too narrow
       where it is high.) This forest is grown at the first call and kept with the first one. It
       draws features by position, even if `feature_draw` is "keyed".
    3. Band: quantiles (1 - coverage) / 2 and (1 + coverage) / 2 of the residuals, under the
       weights of the second forest (Meinshausen 2006), see `predict_quantiles`.
    4. Score of row i: max(low_i - r_i, r_i - high_i) / (high_i - low_i). Its band is taken from
       the trees of the second forest for which it is out of bag, without the row itself and others
       of its group. Dividing by the width makes the correction proportional to the spread
       (Kivaranovic, Johnson and Leeb 2020); a width counts as at least 0.001 of the mean width.
    5. With Q the ceil((n + 1) * coverage)-th smallest of the n scores, the interval is the
       prediction plus [low - Q * width, high + Q * width]. If the forest draws groups of rows, new
       rows are assumed to be in new groups: n counts groups, and a row counts as its share of the
       group (Lee, Barber and Willett 2023).

    The coverage is an average over all x, for new rows like those of the training table. It is not
    guaranteed, since out-of-bag scores are not independent of the forest, but holds closely:
    `python -m benchmarks intervals`. Row weights count in both forests; in the calibration every
    row counts the same.

    Parameters
    ----------
    forest : fitted forest regressor with one output, grown with a bootstrap
    X : array-like of shape (n_samples, n_features)
    coverage : float, default=0.9
        Probability, between 0 and 1.

    Returns
    -------
    ndarray of shape (n_samples, 2), float64
        Lower and upper bound.

    Raises
    ------
    ValueError
        If coverage is not between 0 and 1, or is too high for the number of rows (or groups) that
        were ever out of bag; if the forest has no bootstrap, has several outputs, or does not know
        its training table (see `keep_leaves`).
    sklearn.exceptions.NotFittedError

    References
    ----------
    Romano, Y., Patterson, E. and Candes, E. (2019). Conformalized quantile regression. NeurIPS 32.
    Kivaranovic, D., Johnson, K. D. and Leeb, H. (2020). Adaptive, distribution-free prediction
    intervals for deep networks. AISTATS 23.
    Lee, Y., Barber, R. F. and Willett, R. (2023). Distribution-free inference with hierarchical
    data. arXiv 2306.06342.
    Johansson, U., Bostrom, H., Lofstrom, T. and Linusson, H. (2014). Regression conformal
    prediction with random forests. Machine Learning 97. (Calibration on out-of-bag rows.)
    """
    forest = as_of_now(forest)
    X = forest._check_X(X)
    if not (isinstance(coverage, Real) and 0.0 < coverage < 1.0):
        raise ValueError(f"coverage must lie between 0 and 1, got {coverage!r}.")
    trees = [estimator.tree_ for estimator in forest.estimators_]
    if not hasattr(forest, "_spread") or forest._spread.trees != trees:
        forest._spread = _find_spread(forest, trees)
    spread = forest._spread  # kept from the first call on
    if coverage not in spread.margins:  # replace the dict: another thread may be copying it
        margins = {**spread.margins, coverage: _find_margin(spread, coverage)}
        forest._spread = spread = replace(spread, margins=margins)
    margin, least_width = spread.margins[coverage]
    rows = spread.rows
    band = quantiles_of(
        spread.forest, spread.forest._check_X(X), rows.members, rows.mass, rows.y,
        _levels(coverage),
    )  # fmt: skip
    widened = margin * np.maximum(band[:, 1] - band[:, 0], least_width)
    band += forest.predict(X, check_input=False)[:, np.newaxis]
    band[:, 0] -= widened
    band[:, 1] += widened
    return band


def _levels(coverage):
    return np.array([(1.0 - coverage) / 2.0, (1.0 + coverage) / 2.0])


def _find_spread(forest, trees):
    """The Spread of a forest: a second forest, fitted to its absolute out-of-bag residuals."""
    if not forest._bootstrap.is_drawn:
        raise ValueError(NO_ROW)
    training_rows.keep_leaves(forest)  # raises an error if the table was changed since the fit
    X, y = training_rows.training_table(forest)
    votes, _ = forest._predict_out_of_bag(X, encode_numbers(y), judges=False)
    known = votes.n_models > 0
    if not known.any():
        raise ValueError(NO_ROW)
    weight = None if forest._row_weight is None else forest._row_weight[known]
    if weight is not None and not weight.any():
        raise ValueError(
            "Every row that was ever out of bag has weight 0, but residuals count by weight; fit "
            "more trees, or draw fewer rows with max_samples."
        )
    residuals = y[known] - votes.values[known, 0, 0]
    grown = type(forest)(
        len(trees), min_samples_leaf=_SPREAD_LEAF, bootstrap=True, n_jobs=forest.n_jobs,
        random_state=forest.estimators_[0].random_state, precision=precision_of(forest).name,
        categorical_features=getattr(forest, "is_categorical_", None),
    )  # fmt: skip
    groups = forest._bootstrap.groups
    groups = None if groups is None else groups[known]
    grown.fit(X[known], np.abs(residuals), weight, groups=groups)
    rows = training_rows.list_rows(grown, grown._check_X(X[known]), residuals)
    training_rows.forget(grown)  # its table is not needed any more, only the residuals
    return Spread(trees, grown, rows)


def _find_margin(spread, coverage):
    """Q, the number of widths by which to widen the band on either side, and the least width."""
    band = out_of_bag_quantiles(spread.forest, spread.rows, _levels(coverage))
    known = ~np.isnan(band[:, 0])
    low, high = band[known].T
    groups = spread.forest._bootstrap.groups
    units = np.flatnonzero(known) if groups is None else groups[spread.rows.order][known]
    size = np.bincount(units)
    n_units, kind = np.count_nonzero(size), "rows" if groups is None else "groups of rows"
    goal = (n_units + 1) * coverage  # + 1 for the new row, or its group
    if goal > n_units:
        needed = ceil(round(coverage / (1.0 - coverage), 9))  # 9, not 9.000000000000002
        raise ValueError(
            f"coverage={coverage} needs at least {needed} {kind} that were ever out of bag, but "
            f"there are only {n_units}."
        )
    least_width = _MIN_WIDTH * np.mean(high - low) or 1.0  # any number, if all widths are 0
    beyond = np.maximum(low - spread.rows.y[known], spread.rows.y[known] - high)
    scores = beyond / np.maximum(high - low, least_width)
    order = np.argsort(scores)
    place = np.searchsorted(np.cumsum(1.0 / size[units[order]]), goal)
    # Rounding of the sum of shares may put the place one too far.
    return scores[order[min(place, len(order) - 1)]], least_width
