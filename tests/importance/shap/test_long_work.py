"""Ctrl-C while SHAP values are computed: it is raised at once, and nothing is the worse for it."""

import os
import signal
import threading
from time import perf_counter

import numpy as np
import pytest
from sklearn.datasets import make_friedman1

from forest import RandomForestRegressor
from importance import shap_values


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_interrupt_is_raised_within_a_second(n_jobs):
    X, y = make_friedman1(2_000, 10, noise=1.0, random_state=0)
    model = RandomForestRegressor(20, n_jobs=2, random_state=0).fit(X, y)
    options = {"interactions": True, "n_jobs": n_jobs}
    expected = shap_values(model, X[:2], **options).interactions  # compiled, too
    sent = []

    def send():
        sent.append(perf_counter())
        os.kill(os.getpid(), signal.SIGINT)

    threading.Timer(0.2, send).start()
    with pytest.raises(KeyboardInterrupt):
        shap_values(model, X, **options)
    assert perf_counter() - sent[0] < 1.0
    np.testing.assert_array_equal(shap_values(model, X[:2], **options).interactions, expected)
    np.testing.assert_allclose(shap_values(model, X[:2]).prediction, model.predict(X[:2]))


def test_work_against_many_references_is_cut_into_trees():
    """Between two steps Ctrl-C is not noticed."""
    X, y = make_friedman1(300, 10, noise=1.0, random_state=0)
    model = RandomForestRegressor(20, max_leaf_nodes=100, random_state=0).fit(X, y)
    told = []
    shap_values(model, X[:1], background=np.tile(X, (4, 1)), callback=told.append)
    assert len(told) == 20


def test_what_a_callback_raises_ends_the_work():
    X, y = make_friedman1(1_000, 10, noise=1.0, random_state=0)
    model = RandomForestRegressor(4, random_state=0).fit(X, y)
    told = []

    def refuse(progress):
        told.append(progress)
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        shap_values(model, X, callback=refuse)
    assert len(told) < 3
