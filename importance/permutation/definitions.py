"""Permutation importance as papers and packages define it, computed from our forest.

For given permutations the values equal those of the source; the tests check this against plain
implementations. Without given permutations, definitions that judge trees one by one take the exact
expectation over all permutations, and definitions that judge the forest take the mean over
`n_repeats`. Defects of the sources are not reproduced; the docstrings name them.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from importance.core import losses
from importance.core.fitted_forest import FittedForest
from importance.core.groups import Groups
from importance.core.result import Importances
from importance.permutation import forest_level
from importance.permutation.shuffling import seeded
from importance.permutation.tree_level import Options, evaluate_trees

BIAS = "As in the source: permuting one of several correlated features makes impossible rows."


class Definition(NamedTuple):
    """The definition of one source."""

    evaluate: Callable[[FittedForest, Groups, Options], Importances]
    level: str  # "tree" or "forest"
    options: tuple[str, ...]  # which of loss, scale, per_row, per_class the source offers


def random_forest(fitted: FittedForest, groups: Groups, options: Options) -> Importances:
    """R's randomForest (rf.c, regrf.c): the mean over all trees, with its standard error.

    d_t is the increase of the tree's own 0-1 loss or squared error. I = sum d_t / T and
    SE = sqrt((sum d_t^2 / T - I^2) / T), where a tree without out-of-bag rows counts as 0. With
    `scale` the result is I / SE, which `importance()` returns by default. Importances by class are
    taken over the rows of the class and divided by T too. Importances by row (localImp) are sums
    over trees divided by how often the row was out of bag. (The package's localImp counts a change
    from one wrong class to another as a loss of 1; here it counts 0.)
    """
    classification = fitted.is_classification
    loss = "zero_one" if classification else "squared_error"
    make_loss = losses.zero_one if classification else losses.squared_error
    result = evaluate_trees(fitted, losses.as_predicted(make_loss, fitted.forest), groups, options)
    per_class = None
    if options.per_class:
        per_class, error = _over_all_trees(
            result.class_sum, result.class_squares, len(result.per_tree)
        )
        if options.scale:
            per_class = per_class / _divisor(error)
    per_row = result.row_mean() if options.per_row else None
    unit = f"increase in out-of-bag {'0-1 loss' if classification else 'squared error'} of a tree"
    return _over_trees("randomForest", loss, groups, result, options, unit, per_row, per_class)


def ranger(fitted: FittedForest, groups: Groups, options: Options) -> Importances:
    """R's ranger (Tree.cpp, Forest.cpp): the mean over all trees.

    d_t is the increase of the tree's own 0-1 loss or squared error or, with loss="true_class" as in
    probability forests, of (1 - share of the row's class)^2. Scaling is that of randomForest
    (scale.permutation.importance). Importances by row (casewise) are sums over trees divided by T.
    """
    known: dict[str, losses.MakeLoss] = {"squared_error": losses.squared_error}
    if fitted.is_classification:
        known = {"zero_one": losses.zero_one, "true_class": losses.true_class}
    name = next(iter(known)) if options.loss is None else options.loss
    if name not in known:
        raise ValueError(
            f"loss={name!r} is not a loss of ranger for this forest; use one of {list(known)}."
        )
    make_loss = losses.as_predicted(known[name], fitted.forest)
    result = evaluate_trees(fitted, make_loss, groups, options)
    per_row = result.row_sum / len(result.per_tree) if options.per_row else None
    unit = f"increase in out-of-bag {name.replace('_', '-')} loss of a tree"
    return _over_trees("ranger", name, groups, result, options, unit, per_row)


def rfpimp(fitted: FittedForest, groups: Groups, options: Options) -> Importances:
    """rfpimp's oob_importances (Parr et al. 2018): the decrease of out-of-bag accuracy or R2.

    There is one permutation over all rows, shared by all trees. A row's prediction averages the
    class shares, or means, of the trees for which it is out of bag. (rfpimp counts rows that were
    never out of bag as predicted 0 or the first class; here they are left out. It samples tables of
    more than 5000 rows; here all rows count.)
    """
    from sklearn.metrics import accuracy_score, r2_score  # slow to import

    classification = fitted.is_classification
    score = forest_level.score_by(fitted, accuracy_score if classification else r2_score)
    base, permuted = _permute_forest(fitted, score, groups, options, is_shared=True)
    return forest_level.over_permutations(
        base - permuted, groups, measure="oob_permutation (rfpimp)", bias=BIAS,
        unit=f"decrease in out-of-bag {'accuracy' if classification else 'R2'} of the forest",
        loss="accuracy" if classification else "R2",
    )  # fmt: skip


def breiman2001(fitted: FittedForest, groups: Groups, options: Options) -> Importances:
    """Breiman (2001), section 10: the percent increase of the forest's misclassification rate.

    A feature is permuted within each tree's out-of-bag rows. Every tree votes for a class, the
    votes of all trees are collected, and the plurality is compared with the row's class. The
    increase is divided by the out-of-bag error rate with all features intact. If classes have
    equally many votes, the first of them wins.
    """
    if not fitted.is_classification:
        raise ValueError(
            'definition="breiman2001" counts votes for classes, which regression does not have; '
            'use "randomForest" for squared error.'
        )
    if hasattr(fitted.forest, "loss_"):
        raise ValueError(
            'definition="breiman2001" counts votes, which a forest fitted with loss= does not '
            "have: it weights class shares by the costs of mistakes. Leave out definition."
        )
    evaluate = forest_level.mean_loss(fitted, losses.zero_one)
    base, permuted = _permute_forest(fitted, evaluate, groups, options, is_shared=False)
    if base == 0.0:
        raise ValueError(
            "The out-of-bag error of the forest is 0, so an increase in percent is undefined; "
            'use definition="randomForest", or leave out definition.'
        )
    return forest_level.over_permutations(
        100.0 * (permuted - base) / base, groups, measure="oob_permutation (breiman2001)",
        unit="increase in the out-of-bag error of the forest, in percent of it", bias=BIAS,
        loss="zero_one",
    )  # fmt: skip


# The names that users type.
DEFINITIONS = {
    "randomForest": Definition(random_forest, "tree", ("scale", "per_row", "per_class")),
    "ranger": Definition(ranger, "tree", ("loss", "scale", "per_row")),
    "rfpimp": Definition(rfpimp, "forest", ()),
    "breiman2001": Definition(breiman2001, "forest", ()),
}


def _over_all_trees(total, squares, n_trees):
    """I and SE from sums over trees; trees without out-of-bag rows count as 0."""
    mean = total / n_trees
    return mean, np.sqrt(np.maximum(squares / n_trees - mean**2, 0.0) / n_trees)


def _divisor(error):
    """What scaling divides by: the error, or 1 where the error is 0."""
    return np.where(error < np.finfo(np.float64).eps, 1.0, error)


def _over_trees(name, loss, groups, result, options, unit, per_row=None, per_class=None):
    """Importances by a definition that judges trees one by one."""
    per_tree = result.per_tree
    total, squares = np.nansum(per_tree, axis=0), np.nansum(per_tree**2, axis=0)
    values, error = _over_all_trees(total, squares, len(per_tree))
    if options.scale:
        divisor = _divisor(error)
        values, error, unit = values / divisor, error / divisor, f"{unit}, in standard errors"
    return Importances(
        f"oob_permutation ({name})", values, error, per_tree, groups.names, unit=unit,
        uncertainty="over trees", bias=BIAS, per_row=per_row, per_class=per_class, loss=loss,
    )  # fmt: skip


def _permute_forest(fitted, evaluate, groups, options, is_shared):
    """Evaluate the forest as it is and with each group permuted.

    If `is_shared`, all trees share one permutation over all rows and give their class shares;
    otherwise each tree's out-of-bag rows are permuted among themselves, and each tree votes.
    """
    n_repeats = 1 if options.n_repeats is None else options.n_repeats
    shuffles = options.shuffles or seeded(options.random_state, len(groups))
    if is_shared:
        donors = forest_level.shared_donors(shuffles, len(fitted.codes), n_repeats)
    else:
        donors = forest_level.donors_within_trees(shuffles)
    base, permuted, _ = forest_level.evaluate_forest(
        fitted, evaluate, groups, donors, n_repeats, not is_shared, options.n_jobs,
        options.verbose, options.callback,
    )  # fmt: skip
    return base, permuted
