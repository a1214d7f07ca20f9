"""Hostile training sets and parameters, drawn from seeds."""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse

MANY = 2**16 + 1  # distinct values: more than 16 bits can number
_NAMES = ["", " ", "x", "x\n", "ä", "💥", "a" * 300, "<b>", "0", "nan", "class", "__init__"]
_EXTREMES = (0.0, -0.0, 1e-45, -1e-38, 1.0, 1.0 + 1e-7, 1.0 + 3e-7, 16777217.0, 3.4e38, -3.4e38)


class Fit(NamedTuple):
    """One fit: the name of the class, its parameters, and the training data."""

    kind: str
    params: dict[str, Any]
    X: Any
    y: Any
    sample_weight: Any
    plain: np.ndarray  # X as a plain array


def draw_fit(seed):
    """Draw the fit of a seed; most are small."""
    rng = np.random.default_rng(seed)
    n = int(rng.choice([1, 2, 3, 8, 20, 60, 150], p=[0.05, 0.05, 0.1, 0.2, 0.3, 0.2, 0.1]))
    n = MANY + 3 if rng.random() < 0.01 else n
    is_classifier = bool(rng.random() < 0.5)
    forests, n_columns = rng.random() < 0.3, int(rng.integers(1, 7))
    kind = draw_kind(rng, forests, is_classifier)
    plain = np.array([_column(rng, n) for _ in range(n_columns)]).T
    n_outputs = int(rng.choice([1, 1, 1, 1, 2, 3]))
    y = np.array(
        [(_labels if is_classifier else _targets)(rng, n, plain) for _ in range(n_outputs)]
    ).T
    params = draw_parameters(rng, is_classifier, forests, n_outputs, n_columns, y)
    X, plain = _disguise(rng, plain)
    return Fit(kind, params, X, y[:, 0] if n_outputs == 1 else y, draw_weights(rng, n), plain)


def draw_kind(rng, forests, is_classifier):
    """Draw the name of an estimator."""
    kinds = ["RandomForest", "ExtraTrees"] if forests else ["DecisionTree", "ExtraTree"]
    return str(rng.choice(kinds)) + ("Classifier" if is_classifier else "Regressor")


def _column(rng, n):
    match rng.integers(9):
        case 0:
            return np.full(n, rng.choice(_EXTREMES))
        case 1:
            return rng.choice(_EXTREMES, n)
        case 2:
            return 1.0 + rng.integers(0, 9, n) * 4e-8  # scikit-learn takes neighbours for equal
        case 3:
            return rng.normal(size=n) * 10.0 ** rng.integers(-30, 30)
        case 4:
            return rng.permutation(n).astype(float)
        case 5:
            return np.where(rng.random(n) < rng.choice([0.1, 0.9, 1.0]), np.nan, rng.normal(size=n))
        case _:
            return rng.integers(0, rng.choice([2, 3, 10]), n).astype(float)


def _labels(rng, n, plain):
    n_classes = int(rng.choice([1, 2, 2, 3, 7]))
    follows = np.nan_to_num(plain[:, 0]).argsort(kind="stable").argsort() * n_classes // n
    return np.where(
        rng.random(n) < rng.choice([0.0, 0.2, 1.0]), rng.integers(0, n_classes, n), follows
    )


def _targets(rng, n, plain):
    match rng.integers(5):
        case 0:
            return np.full(n, rng.choice([0.0, 1.0, -1e9, 0.1]))
        case 1:
            return rng.integers(0, 5, n).astype(float)
        case 2:
            return rng.normal(size=n) * 10.0 ** rng.integers(-20, 20)
        case _:
            return np.nan_to_num(plain[:, 0]).argsort(kind="stable").argsort() + rng.normal(size=n)


def draw_weights(rng, n):
    """Draw weights of rows, or None."""
    match rng.integers(7):
        case 0:
            return rng.integers(0, 3, n).astype(float)
        case 1:
            return rng.random(n) * 10.0 ** rng.integers(-20, 20)
        case 2:
            return (
                2.0 ** rng.integers(0, 25, n)
                if rng.random() < 0.5
                else rng.integers(1, 9, n) * 1e18
            )
        case 3:
            return np.eye(1, n, int(rng.integers(n)))[0]
    return None


def draw_parameters(rng, is_classifier, forests, n_outputs, n_columns, y):
    """Draw a few parameters that differ from the defaults."""
    criteria = ["gini", "entropy", "log_loss"]
    if not is_classifier:
        criteria = ["squared_error", "squared_error", "absolute_error"]
        if y.min() >= 0 and y.sum() > 0:
            criteria.append("poisson")
    params = {"random_state": int(rng.integers(2**31)), "criterion": str(rng.choice(criteria))}
    choices = {
        "max_depth": [1, 2, 5, 2**31 - 1], "min_samples_split": [2, 7, 0.3, 1.0],
        "min_samples_leaf": [1, 3, 0.2, 10**6], "min_weight_fraction_leaf": [0.0, 0.1, 0.5],
        "max_features": [1, "sqrt", 0.5, None], "max_leaf_nodes": [2, 5, 10**5],
        "min_impurity_decrease": [0.0, 0.01, 1e9], "ccp_alpha": [0.0, 0.01],
    }  # fmt: skip
    if is_classifier and n_outputs == 1:
        choices["class_weight"] = ["balanced", {0: 2.0}, {0: 0.0, 1: 1e9}]
    if not forests and n_outputs == 1 and len(np.unique(y)) <= 2:
        choices["monotonic_cst"] = [rng.integers(-1, 2, n_columns).tolist()]
    if forests:
        params["n_estimators"] = 3
        choices |= {"bootstrap": [True, False], "n_jobs": [2]}
    for name in rng.choice(list(choices), 3, replace=False):
        values = choices[str(name)]
        params[str(name)] = values[rng.integers(len(values))]
    return params


def _disguise(rng, plain):
    """The table in another type, layout or container, and as a plain array of what that holds."""
    kinds = [np.float32, np.int8, np.int64, np.uint16, bool, ">f8", ">f4", object, np.float16]
    if np.isfinite(plain).all() and rng.random() < 0.4:
        with np.errstate(all="ignore"):
            plain = np.clip(np.rint(plain), 0, 100) if rng.random() < 0.5 else plain
            small = np.abs(plain).max() <= 100
            kind = kinds[rng.integers(len(kinds))] if small else kinds[rng.choice([0, 5, 6, 7])]
            X = plain.astype(kind)
        plain = X.astype(float)
    else:
        X = plain
    match rng.integers(9):
        case 0:
            return np.asfortranarray(X), plain
        case 1:
            return np.repeat(X, 2, axis=0)[::2], plain
        case 2:
            return X[::-1], plain[::-1]
        case 3:
            X = X.copy()
            X.flags.writeable = False
            return X, plain
        case 4:
            return X.tolist(), plain
        case 5:
            names = rng.choice(_NAMES, X.shape[1], replace=False)
            return pd.DataFrame(X, columns=names, index=rng.integers(0, 3, len(X))), plain
        case 6 if np.isfinite(plain).all() and X.dtype != object:
            return _sparse(rng, plain), plain
    return X, plain


def _sparse(rng, plain):
    """A sparse table with explicit zeros, duplicates that are summed, and unsorted rows."""
    kept = (plain != 0) | (rng.random(plain.shape) < 0.2)
    rows, columns = np.nonzero(kept)
    values = plain[rows, columns]
    twice = rng.random(len(rows)) < 0.2
    values = np.concatenate((np.where(twice, 0.0, values), values[twice]))
    rows, columns = np.concatenate((rows, rows[twice])), np.concatenate((columns, columns[twice]))
    order = rng.permutation(len(rows))
    table = scipy.sparse.coo_matrix((values[order], (rows[order], columns[order])), plain.shape)
    if rng.random() < 0.3:
        return table
    starts = np.concatenate(([0], np.bincount(columns, minlength=plain.shape[1]).cumsum()))
    order = order[columns[order].argsort(kind="stable")]
    parts = values[order], rows[order], starts
    table = scipy.sparse.csc_matrix(parts, plain.shape)
    return table if rng.random() < 0.5 else table.tocsr()
