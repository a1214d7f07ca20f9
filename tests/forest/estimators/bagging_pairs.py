"""Bagging, ours and scikit-learn's, fitted alike, and whether they are the same."""

import warnings

import numpy as np
import pytest
import sklearn.ensemble as peers
from sklearn.datasets import make_classification, make_regression
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, SVR

from forest import BaggingClassifier, BaggingRegressor
from tests.agreement.same import assert_same_tree

PAIRS = [
    (BaggingClassifier, peers.BaggingClassifier),
    (BaggingRegressor, peers.BaggingRegressor),
]
EACH_PAIR = pytest.mark.parametrize("pair", PAIRS, ids=["classifier", "regressor"])
OUTPUTS = ("predict", "predict_proba", "predict_log_proba", "decision_function")

LOGISTIC = LogisticRegression(solver="newton-cholesky")

# None is the default: our tree here, theirs there.
CLASSIFIERS = {
    "tree": None,
    "svc": SVC(),  # no probabilities: it votes
    "logistic": LOGISTIC,
    "mlp": MLPClassifier((4,), max_iter=10),
    "knn": KNeighborsClassifier(3),  # takes no weights: it gets the drawn rows
    "pipeline": make_pipeline(PCA(2), MLPClassifier((3,), max_iter=5)),  # nested random states
}
REGRESSORS = {"tree": None, "svr": SVR(), "ridge": Ridge(), "knn": KNeighborsRegressor(3)}

PARAMS = [
    {},
    {"max_samples": 45},
    {"max_samples": 0.6, "max_features": 0.5},
    {"bootstrap_features": True},
    {"bootstrap": False, "max_samples": 0.7, "max_features": 3},
]

X10 = np.arange(20.0).reshape(10, 2)
Y10 = np.arange(10) % 2


def table(pair=PAIRS[0], n=120, n_classes=3):
    if pair is PAIRS[0]:
        return make_classification(
            n, 6, n_informative=5, n_redundant=0, n_classes=n_classes, random_state=0
        )
    return make_regression(n, 6, n_informative=5, noise=3.0, random_state=0)


def table_with_a_rare_class():
    """One of 40 rows is of class 3: most draws of a few rows miss it."""
    X, y = table(n=40)
    y[0] = 3
    return X, y


def both(pair, *args, **params):
    return [kind(*args, **{"random_state": 3, **params}) for kind in pair]


def fit_quietly(model, *args):
    """Fit without warnings of few rows, of rows never out of bag, of optimisers that stop early."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(*args)


def fit_both(pair, X, y, *args, **params):
    weight = [params.pop("sample_weight")] if "sample_weight" in params else []
    return [fit_quietly(model, X, y, *weight) for model in both(pair, *args, **params)]


def assert_same_draws(ours, theirs):
    for name in ("estimators_samples_", "estimators_features_"):
        mine, other = getattr(ours, name), getattr(theirs, name)
        assert len(mine) == len(other)
        for a, b in zip(mine, other, strict=True):
            np.testing.assert_array_equal(a, b, name)


def assert_same_models(ours, theirs, X):
    """The same draws, estimators and outputs, bit for bit."""
    assert_same_draws(ours, theirs)
    assert len(ours.estimators_) == len(theirs.estimators_)
    for a, b in zip(ours.estimators_, theirs.estimators_, strict=True):
        mine = a.get_params()
        assert {name: str(mine[name]) for name in b.get_params()} == {
            name: str(value) for name, value in b.get_params().items()
        }
        if hasattr(a, "tree_"):
            assert_same_tree(a.tree_, b.tree_)
    for name in OUTPUTS:
        assert hasattr(ours, name) == hasattr(theirs, name), name
        if hasattr(ours, name):
            with np.errstate(divide="ignore"):  # scikit-learn takes the logarithm of 0
                a, b = getattr(ours, name)(X), getattr(theirs, name)(X)
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b, name)


def out_of_bag(model):
    return getattr(model, "oob_decision_function_", getattr(model, "oob_prediction_", None))
