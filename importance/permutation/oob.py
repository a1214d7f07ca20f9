"""Permutation importance by trees: on the out-of-bag rows of each, or on held-out rows."""

from collections.abc import Callable
from typing import Any

from importance.core.adoption import of_fitted_forest
from importance.core.class_share import warn_of_rare_classes
from importance.core.fitted_forest import check_evaluation_rows, check_forest
from importance.core.given import require_count
from importance.core.groups import group_columns
from importance.core.held_out_rows import EvaluatedForest, require_held_out
from importance.core.losses import choose_loss
from importance.core.result import OVER_TREES, Importances, importances_over_trees, mean_and_error
from importance.permutation.definitions import DEFINITIONS
from importance.permutation.drawn_rows import DrawnRows
from importance.permutation.forest_level import forest_permutation
from importance.permutation.tree_level import Options, evaluate_trees

OVER_ROWS = "over data, from the rows"
BIAS = (
    "Permuting one feature of a correlated group asks the trees about rows that do not occur, and "
    "measures how much single trees rely on the feature, not what is lost without it."
)


@of_fitted_forest
def oob_permutation(
    forest: Any, X: Any, y: Any, *, loss: str | None = None, sample_weight: Any = None,
    groups: Any = None, per_row: bool = False, per_class: bool = False, level: str | None = None,
    metric: Callable | None = None, definition: str | None = None, scale: bool = False,
    n_repeats: int | None = None, max_rows: int | None = None, random_state: Any = None,
    n_jobs: int | None = None, verbose: int = 0, callback: Callable | None = None,
) -> Importances:  # fmt: skip
    """How much worse each tree judges its out-of-bag rows when a feature is permuted among them.

    For tree t with out-of-bag rows O_t, d_tj is the mean loss on O_t with x_j permuted within O_t,
    less the mean loss as it is. The value is the mean of d_tj over the trees that have
    out-of-bag rows (Breiman and Cutler's manual; R's randomForest). By default the expectation over
    all permutations is taken exactly. A feature that no tree uses has exactly 0.

    Its standard error is over data: how much another table of as many rows would change the value,
    estimated from what each row adds, without refits (`importance.permutation.influence`). At 100
    to 1,000 rows 95 % intervals cover the mean over tables in 92 to 98 % of cases, pooled over
    features: nearly always for noise, which is seldom taken for signal, and in 88 to 99 % for
    strong features (`python -m benchmarks calibration --only rows`). They cover less often

    - where features are strongly correlated and y has little noise (78 to 84 %, `--only
      elsewhere`): use `over_data`, whose error by refits covers there;
    - where y has heavy tails, since squared errors then depend on rows that most tables lack: of a
      strong feature about two thirds cover if y is the exponential of normal numbers. Use
      loss="absolute_error".

    Rows that the forest draws in groups count as one. The standard error over trees,
    sqrt((mean d^2 - mean(d)^2) / T) as in R's randomForest, is among `other_errors`; it shrinks
    with more trees and cannot tell noise from signal.

    Parameters
    ----------
    %(bootstrapped)s
    loss : {"brier", "zero_one", "squared_error", "absolute_error", "poisson"}, default=None
        Loss of a single tree; "brier" in classification and "squared_error" in regression by
        default, as in every measure and test; `Importances.loss` names it.
    sample_weight : array-like of shape (n_samples,), default=None
        What a row counts in the mean loss; donors of a value stay equally likely.
    %(permuted_groups)s
    per_row : bool, default=False
        Give `per_row` too: of each row the mean, over the trees where it is out of bag, of the
        increase of its own loss.
    per_class : bool, default=False
        Give `per_class` too: d_tj over the rows of one class, the mean over the trees that have
        out-of-bag rows of it.
    level : {"tree", "forest"}, default=None
        "forest" is another estimand, see `forest_permutation`; "tree" by default, or what the
        definition says.
    metric : callable, default=None
        What judges the forest with level="forest", larger being better.
    definition : {"randomForest", "ranger", "rfpimp", "breiman2001"}, default=None
        Compute what that paper or package does, see `importance.permutation.definitions`.
    scale : bool, default=False
        Divide by the standard error, as randomForest and ranger can.
    n_repeats : int, default=None
        Shuffle so often instead, and take the mean: per tree and feature, or, with
        level="forest" (5 by default), per feature.
    max_rows : int, default=None
        Judge each tree on so many of its out-of-bag rows at most, drawn at random without
        replacement: large tables take as long as small ones. Values are those of all rows on
        average over draws, with unequal `sample_weight` up to a part of about 1 / max_rows; what
        the draws change is in every standard error, and `Importances.max_rows` says how many there
        were. All rows by default.
    random_state : int, RandomState instance or None, default=None
        Of the shuffles, and of the draws of rows, which by default follow from the forest's seeds.
    %(watched)s

    Returns
    -------
    Importances
        `other_errors["over permutations"]` is 0 for the expectation; with `n_repeats` what other
        shuffles would change (nan for one per tree).

    Raises
    ------
    TypeError, ValueError
        If the forest is not one with out-of-bag rows, (X, y) cannot be its training table, groups
        overlap, the loss does not fit the task, or options do not go together.

    Warns
    -----
    UserWarning
        If the rows of a class are out of bag less than half as often as those of the others.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from cartwood import RandomForestRegressor, oob_permutation
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> forest = RandomForestRegressor(50, max_features=1 / 3, random_state=0).fit(X, y)
    >>> result = oob_permutation(forest, X, y)
    >>> result
    <Importances oob_permutation, squared_error, ± over data, from the rows: s5 1,570 ± 310, bmi
     1,470 ± 330, bp 620 ± 230, s4 430 ± 160, s3 240 ± 150, ...>
    >>> result.interval(0.95)[2].round()  # of bmi
    array([ 827., 2110.])
    """
    level = _choose_level(level, definition)
    _refuse_foreign_options(
        level, definition, loss=loss, per_row=per_row, per_class=per_class, metric=metric,
        scale=scale, sample_weight=sample_weight, max_rows=max_rows,
    )  # fmt: skip
    if n_repeats is not None:
        require_count("n_repeats", n_repeats)
    if level == "forest" and definition is None:
        return forest_permutation(
            forest, X, y, loss=loss, metric=metric, sample_weight=sample_weight, groups=groups,
            n_repeats=5 if n_repeats is None else n_repeats, random_state=random_state,
            n_jobs=n_jobs, verbose=verbose, callback=callback,
        )  # fmt: skip
    fitted = check_forest(forest, X, y, sample_weight)
    if per_class and not fitted.is_classification:
        raise ValueError("per_class=True judges every class, and numbers have none.")
    columns = group_columns(groups, forest)
    options = Options(
        per_row, per_class, scale, loss, n_repeats, random_state, n_jobs, verbose=verbose,
        callback=callback,
    )  # fmt: skip
    if definition is not None:
        return DEFINITIONS[definition].evaluate(fitted, columns, options)
    drawn = None if max_rows is None else DrawnRows.of(max_rows, fitted.seeds, random_state)
    return _importances(forest, fitted, columns, options._replace(has_influence=True, drawn=drawn))


def values_out_of_bag(forest: Any, X: Any, y: Any) -> Importances:
    """`oob_permutation` without the error over data: refits need its values only, in less time.

    Parameters are those of `oob_permutation`; the error is that over trees.
    """
    return _importances(forest, check_forest(forest, X, y), group_columns(None, forest), Options())


def _importances(forest, fitted, columns, options):
    """The increase of the out-of-bag loss of trees, with the error over data if it is asked for."""
    name, make_loss = choose_loss(options.loss, forest)
    result = evaluate_trees(fitted, make_loss, columns, options)
    warn_of_rare_classes(fitted, result.n_times)
    values, over_trees = mean_and_error(result.per_tree)
    errors = {OVER_TREES: over_trees, "over permutations": result.error_over_permutations()}
    uncertainty = OVER_TREES
    if options.has_influence:
        uncertainty = OVER_ROWS
        errors[OVER_ROWS] = result.error_over_data(fitted, over_trees)
    return Importances(
        "oob_permutation", values, errors.pop(uncertainty), result.per_tree, columns.names,
        uncertainty=uncertainty, bias=BIAS,
        unit=f"increase in out-of-bag {name.replace('_', '-')} loss of a tree", loss=name,
        other_errors=errors,
        max_rows=options.drawn.most if options.drawn and result.share.min() < 1.0 else None,
        per_row=result.row_mean() if options.per_row else None,
        per_class=result.class_mean() if options.per_class else None,
    )  # fmt: skip


def _choose_level(level: str | None, definition: str | None) -> str:
    """The level asked for; refuse one that is not known or not the definition's."""
    if level not in (None, "tree", "forest"):
        raise ValueError(f'level={level!r} must be "tree" or "forest".')
    if definition is None:
        return level or "tree"
    if not isinstance(definition, str) or definition not in DEFINITIONS:
        raise ValueError(f"definition={definition!r} must be one of {list(DEFINITIONS)}.")
    known = DEFINITIONS[definition].level
    if level not in (None, known):
        raise ValueError(f'definition="{definition}" judges at level="{known}"; leave out level.')
    return known


def _refuse_foreign_options(level, definition, **options):
    """Refuse options that mean nothing at the level or in the definition."""
    if definition is not None:
        known, place = DEFINITIONS[definition].options, f'definition="{definition}"'
    elif level == "forest":
        known, place = ("loss", "metric", "sample_weight"), 'level="forest"'
    else:
        known, place = ("loss", "per_row", "per_class", "sample_weight", "max_rows"), 'level="tree"'
    for name, value in options.items():
        if value is not None and value is not False and name not in known:
            raise ValueError(f"{name} has no meaning with {place}; leave it out.")


@of_fitted_forest
def held_out_permutation(
    forest: Any, X: Any, y: Any, *, loss: str | None = None, training: tuple | None = None,
    n_jobs: int | None = None, verbose: int = 0, callback: Callable | None = None,
) -> Importances:  # fmt: skip
    """How much worse each tree judges held-out rows when a feature is permuted among them.

    `oob_permutation` with the same rows for every tree: the exact expectation over all
    permutations of a feature within these rows, per tree, and the mean over trees.

    Parameters
    ----------
    forest : fitted forest, ours or scikit-learn's
        With or without bootstrap.
    X : array-like or sparse matrix of shape (n_rows, n_features)
        Rows that the forest was not fitted on.
    y : array-like of shape (n_rows,)
    loss : str, default=None
        As in `oob_permutation`.
    training : (X_train, y_train), default=None
        The training table, to find rows that are in it. Our forests know theirs without; of
        others (and of Bagging) only the whole of it is recognised, in any order, by the leaves.
    %(watched)s

    Returns
    -------
    Importances

    Raises
    ------
    TypeError, ValueError
        If it is not a forest, rows were in its training table (more of them than fresh rows would
        equal by chance, and more than a tenth), y holds classes that it does not know, or the loss
        does not fit the task.

    Warns
    -----
    UserWarning
        If a few rows were in the training table.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from cartwood import RandomForestRegressor, held_out_permutation
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> forest = RandomForestRegressor(50, max_features=1 / 3, random_state=0).fit(X, y)
    >>> forest = forest.fit(X[:300], y[:300])
    >>> held_out_permutation(forest, X[300:], y[300:])
    <Importances held_out_permutation, squared_error, ± over trees: bmi 1,670 ± 120, s5 1,520 ±
     140, bp 574 ± 86, s4 283 ± 87, s1 195 ± 69, ...>
    """
    if training is not None and not (isinstance(training, list | tuple) and len(training) == 2):
        raise TypeError(f"training={training!r} must be the training table, (X_train, y_train).")
    require_held_out(forest, *check_evaluation_rows(forest, X, y), training and tuple(training))
    return judge_held_out(forest, X, y, loss, n_jobs, verbose, callback)


def judge_held_out(
    forest: Any, X: Any, y: Any, loss: str | None = None, n_jobs: int | None = None,
    verbose: int = 0, callback: Callable | None = None,
) -> Importances:  # fmt: skip
    """`held_out_permutation` of rows that are known to be held out."""
    rows, codes, weight = check_evaluation_rows(forest, X, y)
    name, make_loss = choose_loss(loss, forest)
    columns = group_columns(None, forest)
    held_out = EvaluatedForest(forest, rows, codes, weight)
    options = Options(n_jobs=n_jobs, verbose=verbose, callback=callback)
    result = evaluate_trees(held_out, make_loss, columns, options)
    return importances_over_trees(
        "held_out_permutation", result.per_tree, columns.names, bias=BIAS,
        unit=f"increase in held-out {name.replace('_', '-')} loss of a tree", loss=name,
    )  # fmt: skip
