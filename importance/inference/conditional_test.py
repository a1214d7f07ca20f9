"""P-values from held-out rows: which features say something about y that the others do not."""

from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse
from scipy.special import stdtr

from cart.tree.packed import Packed, pack
from forest.inference.repeated_rows import warn_of_repeated_rows
from forest.voting.rules import soft_vote
from importance.conditional.sampler import ConditionalSampler
from importance.core.adoption import of_fitted_forest, refuse_refits
from importance.core.fitted_forest import check_forest, names_of
from importance.core.given import require_count
from importance.core.losses import choose_loss, of_predictions
from importance.core.result import Importances
from importance.drop_column.drop_column import drop_column
from importance.drop_column.refits import NO_COLUMNS, choose_design, require_folds
from importance.inference.p_values import Significance, false_discovery_p_values, holm
from importance.inference.refit import for_each, seeds_of

METHODS = ("resample", "drop")
_ROUNDING = 1e-12  # of the largest error: smaller differences are due to the order of sums
BIAS = (
    "A badly estimated conditional distribution makes rows that do not occur; a feature that "
    "others can replace then seems to carry information of its own."
)


@of_fitted_forest
def conditional_test(
    forest: Any, X: Any, y: Any, *, method: str = "resample", cv: int = 5, n_draws: int = 20,
    loss: str | None = None, random_state: Any = None, n_jobs: int | None = None,
    verbose: int = 0, callback: Callable | None = None,
) -> Significance:  # fmt: skip
    """P-value of every feature given all the others, from held-out rows.

    The rows are divided into folds. For each fold the forest is grown on the other folds, with the
    parameters and seeds of the fitted forest, and judges the rows of the fold twice: as they are,
    and without what x_j alone could tell. The p-value is that of a one-sided paired t-test over
    rows that the mean increase of the loss is above 0. Because forests of different folds share
    training rows, the variance is that of a mean of independent rows times 1 + J n_test / n_train
    for J folds (Nadeau and Bengio 2003): 2.25 times with five.

    - "resample": x_j is drawn anew given the other columns (`importance.conditional.sampler`), and
      the loss is the mean over `n_draws` draws: the conditional predictive impact (Watson and
      Wright 2021), or conditional feature importance (Chamma et al. 2023). If x_j says nothing
      given the others, and if the draws follow its conditional distribution, then drawn and
      observed rows are alike, and the mean increase is 0 for any forest. The draws do not follow it
      for a column that is computed from others in a nonlinear way, such as their logarithm, ratio
      or product: p is then far too small, while "drop" keeps its level.
    - "drop": the forest is grown without x_j (LOCO, Lei et al. 2018), as by `drop_column` on the
      same folds. This needs no conditional distribution, but a forest per column, and it has less
      power, because other features stand in for the dropped one.

    Parameters
    ----------
    %(refitted)s
    method : {"resample", "drop"}, default="resample"
    cv : int, default=5
        Number of random folds, stratified by class in classification.
    n_draws : int, default=20
        Number of draws with "resample".
    loss : str, default=None
        Loss of the forest's prediction; "brier" in classification and "squared_error" in
        regression by default.
    %(random_state)s
    %(progress)s

    Returns
    -------
    Significance
        `false_discovery` is adjusted by Benjamini and Yekutieli (2001), which holds for any
        dependence between the features, and `family_wise` by Holm (1979). There is no `null`.
        `importances.per_row` has the increases of the loss by row.

    Raises
    ------
    TypeError, ValueError
        If X is sparse or leaves a single row per fold; if the forest cannot be refitted, is part of
        a pipeline or was fitted with groups of rows; if (X, y) is not its training table; or if the
        loss does not fit the task.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from cartwood import RandomForestRegressor, conditional_test
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> forest = RandomForestRegressor(50, max_features=1 / 3, random_state=0).fit(X, y)
    >>> conditional_test(forest, X, y, random_state=0)
    <Significance of conditional_test, resample, 5 folds: bmi 790 (p = 1.6e-05), bp 133 (p = 0.1),
     sex 60.6 (p = 0.022), s4 47.3 (p = 0.081), s6 40.5 (p = 0.28), ...>
    """
    if method not in METHODS:
        raise ValueError(f"method={method!r} is not known; use one of {METHODS}.")
    require_count("n_draws", n_draws)
    refuse_refits(forest, "conditional_test")
    fitted = check_forest(forest, X, y, out_of_bag=False)
    warn_of_repeated_rows(fitted)
    name, make_loss = choose_loss(loss, forest)
    folds = _draw_folds(fitted, cv, random_state)
    if method == "drop":
        without = drop_column(
            forest, X, y, on=folds, loss=name, n_jobs=n_jobs, verbose=verbose, callback=callback
        )
        per_row, bias = np.asarray(without.per_row), without.bias
    else:
        _refuse_what_cannot_be_resampled(fitted)
        per_row = _resample(
            fitted, choose_design(forest, X, y, folds), n_draws, make_loss, random_state,
            (n_jobs, verbose, callback),
        )  # fmt: skip
        bias = BIAS
    found = Importances(
        "conditional_test", per_row.mean(axis=0), _standard_error(per_row, folds), None,
        names_of(forest),
        unit=f"increase in cross-validated {name.replace('_', '-')} loss of the forest",
        uncertainty=f"over rows and refits, {cv} folds",
        bias=bias,
        per_row=per_row,
        loss=name,
    )  # fmt: skip
    none = np.full(len(found.values), -np.inf)  # p is 1 if the rows do not differ
    error = found.standard_error
    t = np.divide(found.values, error, out=none, where=error > _ROUNDING * error.max())
    p_values = stdtr(len(per_row) - 1, -t)  # one-sided
    false_discovery = false_discovery_p_values(p_values, "by")
    return Significance(
        found, p_values, holm(p_values), false_discovery, None, f"{method}, {cv} folds"
    )


def _draw_folds(fitted, cv, random_state):
    """Training rows and test rows, a pair for each fold."""
    from sklearn.model_selection import KFold, StratifiedKFold  # slow to import

    labels = fitted.codes.astype(np.int64) if fitted.is_classification else fitted.codes
    require_folds("cv", cv, labels, fitted.is_classification)
    kind = StratifiedKFold if fitted.is_classification else KFold
    return list(kind(cv, shuffle=True, random_state=random_state).split(labels, labels))


def _refuse_what_cannot_be_resampled(fitted):
    voting = getattr(fitted.forest, "voting", "soft")
    if voting != "soft":
        raise ValueError(
            f"conditional_test judges the mean of the trees and does not support "
            f'voting={voting!r}; fit a forest with voting="soft".'
        )
    if issparse(fitted.X):
        raise TypeError(
            "conditional_test cannot redraw the columns of a sparse X, because they would not stay "
            'sparse: give the forest a dense table, X.toarray(), or use method="drop".'
        )


class _Fold(NamedTuple):
    """The forest of a fold, the rows that it was grown on, and those that judge it."""

    packed: Packed
    known: np.ndarray  # (n_train, n_features)
    X: np.ndarray  # (n_test, n_features)
    judge: Callable  # maps predictions, (n_test, n_values), to the loss by row
    loss: np.ndarray  # (n_test,): of the rows as they are
    rows: np.ndarray  # numbers of the test rows in the table
    is_used: np.ndarray  # (n_features,) bool: whether any tree splits on it


def _resample(fitted, design, n_draws, make_loss, random_state, progress):
    """Increase of each row's loss with a column drawn anew, (n_samples, n_features)."""
    n_features = fitted.X.shape[1]
    is_categorical = getattr(fitted.forest, "is_categorical_", np.zeros(n_features, bool))
    refits = design.refits(np.array(fitted.seeds), False)
    folds = for_each(partial(_grow, fitted, make_loss), list(refits), *progress)
    parts = list(product(folds, range(n_features)))
    seeds = seeds_of(random_state, len(parts))

    def judge(task):
        (fold, column), seed = task
        if not fold.is_used[column]:  # no draw changes a prediction
            return np.zeros(len(fold.X))
        stream = np.random.RandomState(seed)
        sampler = ConditionalSampler(fold.known, column, is_categorical, stream.randint(1 << 31))
        changed, total = fold.X.copy(), np.zeros(len(fold.X))
        for values in sampler.draw(fold.X, n_draws, stream):
            changed[:, column] = values
            total += fold.judge(soft_vote(fold.packed, changed))
        return total / n_draws - fold.loss

    found = for_each(judge, list(zip(parts, seeds, strict=True)), *progress)
    per_row = np.empty(fitted.X.shape)
    for (fold, column), increase in zip(parts, found, strict=True):
        per_row[fold.rows, column] = increase
    return per_row


def _grow(fitted, make_loss, refit_and_rows):
    """Grow the forest of a fold."""
    refit, rows = refit_and_rows
    trees = [tree for tree, _ in refit.grow_without(NO_COLUMNS, range(refit.n_trees))]
    X, codes = refit.evaluation.X, refit.evaluation.codes
    packed = pack(trees, X.dtype)
    features = np.concatenate([tree.feature[tree.feature >= 0] for tree in trees])
    is_used = np.bincount(features, minlength=X.shape[1]) > 0
    judge = partial(of_predictions, make_loss, codes=codes)
    known = np.delete(fitted.X, rows, axis=0)
    return _Fold(packed, known, X, judge, judge(soft_vote(packed, X)), rows, is_used)


def _standard_error(per_row, folds):
    """Standard error of the means over rows, (n_features,), by Nadeau and Bengio."""
    n, n_folds = len(per_row), len(folds)
    ratio = np.mean([len(test) / len(train) for train, test in folds])
    return per_row.std(axis=0, ddof=1) * np.sqrt((1.0 + n_folds * ratio) / n)
