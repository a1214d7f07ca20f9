"""Every backend of joblib gives the same results; forks and threads after a fit go on with it."""

import multiprocessing
import threading

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.datasets import load_iris

from forest import BaggingClassifier, ExtraTreesClassifier, RandomForestClassifier
from importance import drop_column, forest_permutation, oob_permutation, unbiased_mdi

X, Y = load_iris(return_X_y=True)
pytestmark = pytest.mark.filterwarnings("ignore:Some inputs do not have OOB scores")


def everything():
    """What goes over workers, as arrays."""
    forest = RandomForestClassifier(
        12, random_state=0, n_jobs=2, oob_score=True, class_weight="balanced_subsample"
    ).fit(X, Y)
    extra = ExtraTreesClassifier(6, random_state=0, n_jobs=2).fit(X, Y)
    bagging = BaggingClassifier(n_estimators=4, random_state=0, n_jobs=2, oob_score=True).fit(X, Y)
    return [
        forest.oob_decision_function_, forest.predict_proba(X), forest.apply(X), extra.apply(X),
        bagging.oob_decision_function_, bagging.predict_proba(X),
        oob_permutation(forest, X, Y, n_jobs=2).values,
        forest_permutation(forest, X, Y, n_repeats=2, random_state=0, n_jobs=2).values,
        unbiased_mdi(forest, X, Y, n_jobs=2).values, drop_column(forest, X, Y, n_jobs=2).values,
    ]  # fmt: skip


FROM_FILES = {"max_nbytes": 1}  # joblib keeps larger arrays in files, which workers map


@pytest.mark.parametrize(
    ("backend", "options"),
    [
        ("threading", {}), ("loky", {}), ("multiprocessing", {}), ("sequential", {}),
        ("loky", FROM_FILES), ("multiprocessing", FROM_FILES),
    ],
)  # fmt: skip
def test_backends_give_the_same(backend, options):
    expected = everything()
    with parallel_config(backend, **options):
        found = everything()
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)


def fit_and_say():
    model = RandomForestClassifier(8, random_state=1, n_jobs=2).fit(X, Y)
    return model.predict_proba(X)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_after_a_fit_fit_the_same(method):
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"there is no {method} here")
    expected = fit_and_say()
    with multiprocessing.get_context(method).Pool(1) as pool:
        found = pool.apply_async(fit_and_say).get(timeout=300)
    np.testing.assert_array_equal(found, expected)


def test_threads_that_fit_at_once_fit_the_same():
    expected, found = fit_and_say(), []
    threads = [threading.Thread(target=lambda: found.append(fit_and_say())) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 6
    for said in found:
        np.testing.assert_array_equal(said, expected)
