"""What forests are grown on and judged by: out of bag, on other rows, fold by fold."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from importance.core.fitted_forest import (
    FittedForest,
    check_evaluation_rows,
    check_forest,
    is_classification,
)
from importance.core.held_out_rows import require_held_out
from importance.drop_column.refits import Refit, Training


class Design(NamedTuple):
    """How forests are judged."""

    where: str
    fitted: FittedForest
    evaluation: FittedForest  # every row that is judged, in whatever fold
    n_folds: int
    is_fitted: bool  # is the forest itself one of those that are judged?
    # `refits(seeds, is_first)` yields, fold by fold, a Refit and its rows in `evaluation`.
    refits: Callable


def choose_design(forest: Any, X: Any, y: Any, on: Any, sample_weight: Any = None) -> Design:
    """Check a forest, its training table, and what it is to be evaluated on.

    `on` as in `importance.drop_column`; `sample_weight` is what each row that is evaluated counts.
    """
    if isinstance(on, str):
        if on != "oob":
            raise ValueError(
                f'on={on!r} is neither "oob" nor rows (X_test, y_test), a number of folds or a '
                "cross-validation splitter."
            )
        fitted = check_forest(forest, X, y, sample_weight)
        return _on_the_whole_table("out-of-bag", fitted, fitted, out_of_bag=True)
    if isinstance(on, tuple) and len(on) == 2:
        fitted = check_forest(forest, X, y, out_of_bag=False)
        rows = check_evaluation_rows(forest, *on, sample_weight)
        require_held_out(forest, *rows, fitted)
        evaluation = FittedForest(forest, *rows)
        return _on_the_whole_table("held-out", fitted, evaluation, out_of_bag=False)
    return _fold_by_fold(check_forest(forest, X, y, sample_weight, out_of_bag=False), on)


def _on_the_whole_table(where, fitted, evaluation, out_of_bag):
    table, every = fitted.encode(), np.arange(len(evaluation.codes))

    def refits(seeds, is_first):
        training = Training.of(fitted, seeds, table)
        trees = fitted.trees if is_first else None
        yield Refit(training, evaluation, out_of_bag, trees), every

    return Design(where, fitted, evaluation, 1, True, refits)


def _fold_by_fold(fitted, on):
    from sklearn.model_selection import check_cv  # slow to import

    X, codes, weight = fitted.X, fitted.codes, fitted.weight
    is_classifier = is_classification(fitted.forest)
    labels = codes.astype(np.int64) if is_classifier else codes
    every = np.arange(len(codes))
    splits = check_cv(on, labels, classifier=is_classifier).split(X, labels)
    folds = [(every[train], every[test]) for train, test in splits]

    def refits(seeds, is_first):
        for train, test in folds:
            training = Training.of_rows(fitted, seeds, train)
            evaluation = FittedForest(fitted.forest, X[test], codes[test], weight[test])
            yield Refit(training, evaluation, out_of_bag=False), test

    return Design("cross-validated", fitted, fitted, len(folds), False, refits)
