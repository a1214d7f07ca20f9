"""Permutation importance tree by tree, on out-of-bag rows or on held-out rows."""

from collections.abc import Callable
from typing import Any

from importance.core.adoption import of_fitted_forest
from importance.core.class_share import warn_of_rare_classes
from importance.core.fitted_forest import check_evaluation_rows, check_forest, names_of
from importance.core.given import require_count
from importance.core.groups import parse_groups
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
    """Increase in each tree's out-of-bag loss when a feature is permuted, averaged over trees.

    For tree t with out-of-bag rows O_t, d_tj is the mean loss on O_t with x_j permuted within O_t,
    minus the mean loss on O_t as it is. The importance is the mean of d_tj over the trees that have
    out-of-bag rows (Breiman and Cutler's manual; R's randomForest). By default the expectation over
    all permutations is computed exactly. A feature that no tree uses has importance exactly 0.

    The standard error is over data: how much the value would change with another table of as many
    rows. It is estimated, without refits, from what each row contributes
    (`importance.permutation.influence`). With 100 to 1,000 rows, 95 % intervals cover the mean over
    tables in 92 to 98 % of cases, pooled over features: nearly always for noise, which is seldom
    taken for signal, and in 88 to 99 % for strong features
    (`python -m benchmarks calibration --only rows`). They cover less often

    - where features are strongly correlated and y has little noise (78 to 84 %, `--only
      elsewhere`): use `over_data`, whose standard error from refits does cover there;
    - where y has heavy tails, because squared errors then depend on rows that most tables lack: if
      y is the exponential of normal numbers, about two thirds of the intervals of a strong feature
      cover. Use loss="absolute_error".

    Rows that the forest draws as a group count as one. `other_errors` also holds the standard error
    over trees, sqrt((mean d^2 - mean(d)^2) / T) as in R's randomForest; it shrinks with more trees
    and cannot tell noise from signal.

    Parameters
    ----------
    %(bootstrapped)s
    loss : {"brier", "zero_one", "squared_error", "absolute_error", "poisson"}, default=None
        Loss of a single tree; "brier" in classification and "squared_error" in regression by
        default, as in every measure and test; `Importances.loss` names it.
    sample_weight : array-like of shape (n_samples,), default=None
        Weight of each row in the mean loss; all donors of a value stay equally likely.
    %(permuted_groups)s
    per_row : bool, default=False
        Also return `per_row`: for each row, the mean increase of its own loss over the trees where
        it is out of bag.
    per_class : bool, default=False
        Also return `per_class`: d_tj computed on the rows of one class, averaged over the trees
        that have out-of-bag rows of that class.
    level : {"tree", "forest"}, default=None
        "forest" estimates another quantity, see `forest_permutation`. Default: the level of
        `definition` if one is given, otherwise "tree".
    metric : callable, default=None
        Scores the forest's predictions with level="forest"; larger is better.
    definition : {"randomForest", "ranger", "rfpimp", "breiman2001"}, default=None
        Compute what that paper or package computes, see `importance.permutation.definitions`.
    scale : bool, default=False
        Divide by the standard error, as randomForest and ranger can.
    n_repeats : int, default=None
        Average over this many random shuffles instead of taking the expectation: shuffles per tree
        and feature or, with level="forest" (5 by default), per feature.
    max_rows : int, default=None
        Judge each tree on at most this many of its out-of-bag rows, drawn at random without
        replacement, so that large tables take no longer than small ones. Averaged over draws, the
        values are those of all rows (with unequal `sample_weight`, up to a share of about
        1 / max_rows). Every standard error includes the variation from the draws, and
        `Importances.max_rows` holds the limit. Default: all rows.
    random_state : int, RandomState instance or None, default=None
        Seed of the shuffles and of the draws of rows; by default the draws follow from the forest's
        own seeds.
    %(watched)s

    Returns
    -------
    Importances
        `other_errors["over permutations"]` is 0 for the exact expectation; with `n_repeats` it is
        the standard error over shuffles (nan with one shuffle per tree).

    Raises
    ------
    TypeError, ValueError
        If the forest has no out-of-bag rows, (X, y) cannot be its training table, groups overlap,
        the loss does not fit the task, or the options exclude each other.

    Warns
    -----
    UserWarning
        If the rows of one class are out of bag less than half as often as those of the others.

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
        raise ValueError("per_class=True judges every class, but regression has no classes.")
    columns = parse_groups(groups, names_of(forest))
    options = Options(
        per_row, per_class, scale, loss, n_repeats, random_state, n_jobs, verbose=verbose,
        callback=callback,
    )  # fmt: skip
    if definition is not None:
        return DEFINITIONS[definition].evaluate(fitted, columns, options)
    drawn = None if max_rows is None else DrawnRows.of(max_rows, fitted.seeds, random_state)
    return _importances(fitted, columns, options._replace(has_influence=True, drawn=drawn))


def values_out_of_bag(forest: Any, X: Any, y: Any) -> Importances:
    """Values of `oob_permutation` without the error over data, which refits do not need.

    The standard error is the one over trees, which takes less time.
    """
    return _importances(check_forest(forest, X, y), parse_groups(None, names_of(forest)), Options())


def _importances(fitted, columns, options):
    """Increase of the trees' out-of-bag loss, with its error over data if `has_influence`."""
    name, make_loss = choose_loss(options.loss, fitted.forest)
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
    """The level to use; refuses an unknown level and one that is not the definition's."""
    if level not in (None, "tree", "forest"):
        raise ValueError(f'level={level!r} must be "tree" or "forest".')
    if definition is None:
        return level or "tree"
    if not isinstance(definition, str) or definition not in DEFINITIONS:
        raise ValueError(f"definition={definition!r} must be one of {list(DEFINITIONS)}.")
    known = DEFINITIONS[definition].level
    if level not in (None, known):
        raise ValueError(f'definition="{definition}" implies level="{known}"; leave out level.')
    return known


def _refuse_foreign_options(level, definition, **options):
    """Refuse options that have no meaning at the given level or with the given definition."""
    if definition is not None:
        known, place = DEFINITIONS[definition].options, f'definition="{definition}"'
    elif level == "forest":
        known, place = ("loss", "metric", "sample_weight"), 'level="forest"'
    else:
        known, place = ("loss", "per_row", "per_class", "sample_weight", "max_rows"), 'level="tree"'
    for name, value in options.items():
        if value is not None and value is not False and name not in known:
            raise ValueError(f"{name} has no effect with {place}; leave it out.")


@of_fitted_forest
def held_out_permutation(
    forest: Any, X: Any, y: Any, *, loss: str | None = None, training: tuple | None = None,
    n_jobs: int | None = None, verbose: int = 0, callback: Callable | None = None,
) -> Importances:  # fmt: skip
    """Increase in each tree's loss on held-out rows when a feature is permuted among them.

    Like `oob_permutation`, but every tree is judged on the same rows: per tree, the exact
    expectation over all permutations of a feature within these rows, then the mean over trees.

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
        The training table, used to detect rows of it among (X, y). Our forests remember their
        training rows and do not need it. For other forests (and for Bagging) only the complete
        training table, in any row order, is recognised: by the leaves its rows reach.
    %(watched)s

    Returns
    -------
    Importances

    Raises
    ------
    TypeError, ValueError
        If this is not a forest, if rows were in its training table (more of them than fresh rows
        would match by chance, and more than a tenth), if y holds classes that the forest does not
        know, or if the loss does not fit the task.

    Warns
    -----
    UserWarning
        If a few rows were in the training table.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from cartwood import RandomForestRegressor, held_out_permutation
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> forest = RandomForestRegressor(50, max_features=1 / 3, random_state=0)
    >>> forest = forest.fit(X[:300], y[:300])
    >>> held_out_permutation(forest, X[300:], y[300:])
    <Importances held_out_permutation, squared_error, ± over trees: bmi 1,670 ± 120, s5 1,520 ±
     140, bp 574 ± 86, s4 283 ± 87, s1 195 ± 69, ...>
    """
    if training is not None and not (isinstance(training, list | tuple) and len(training) == 2):
        raise TypeError(f"training={training!r} must be the training table, (X_train, y_train).")
    rows = check_evaluation_rows(forest, X, y)
    require_held_out(forest, *rows, training and tuple(training))
    return judge_held_out(EvaluatedForest(forest, *rows), loss, n_jobs, verbose, callback)


def judge_held_out(
    held_out: EvaluatedForest, loss: str | None = None, n_jobs: int | None = None,
    verbose: int = 0, callback: Callable | None = None,
) -> Importances:  # fmt: skip
    """`held_out_permutation` for rows already known to be held out."""
    name, make_loss = choose_loss(loss, held_out.forest)
    columns = parse_groups(None, names_of(held_out.forest))
    options = Options(n_jobs=n_jobs, verbose=verbose, callback=callback)
    result = evaluate_trees(held_out, make_loss, columns, options)
    return importances_over_trees(
        "held_out_permutation", result.per_tree, columns.names, bias=BIAS,
        unit=f"increase in held-out {name.replace('_', '-')} loss of a tree", loss=name,
    )  # fmt: skip
