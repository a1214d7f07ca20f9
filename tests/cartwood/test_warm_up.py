"""The warm-up has work of every kind, and says how far it is.

That nothing is compiled after it takes minutes to show: `make wheel-test` does.
"""

import inspect
from collections import Counter

import numpy as np
import pytest

import cart
import forest
import importance
from cartwood.__main__ import main
from cartwood.commands import kinds, warm_up
from cartwood.commands.kinds import Work, all_work
from tests.after_warm_up import kernels

# Without kernels of their own: those of what they are given, or none at all.
OTHERS = {
    *("BaggingClassifier", "BaggingRegressor", "ExtraTreeRegressor", "FeatureSelector"),
    *("correlation_groups", "count_unseen", "explain_path", "export_graphviz", "export_text"),
    *(
        "janitza",
        "load",
        "of_output",
        "one_hot_groups",
        "plot_cp",
        "plot_tree",
        "prune_at",
        "summary",
    ),
}


def is_work(thing):
    """Is it a function, or an estimator, and no result?"""
    return inspect.isfunction(thing) or hasattr(thing, "fit")


def test_every_estimator_and_function_is_used():
    source = inspect.getsource(kinds)
    for package in (cart, forest, importance):
        for name in {*package.__all__} - OTHERS:
            if is_work(getattr(package, name)):
                assert name in source, name


def test_every_criterion_and_rule_is_used():
    source = inspect.getsource(kinds)
    for constraints in (cart.DecisionTreeClassifier, cart.DecisionTreeRegressor):
        known = constraints._parameter_constraints
        (criteria,) = known["criterion"]
        for word in criteria.options - {"log_loss", "friedman_mse"}:  # the same as others
            assert f'"{word}"' in source, word
    for word in ("surrogate", "majority", "keyed", "float64", "neighbours", "mdi_oob"):
        assert f'"{word}"' in source


def test_everything_is_named_once():
    assert not [name for name, n in Counter(work.name for work in all_work()).items() if n > 1]


def judging(side):
    """Work on fitted models, whose kernels other tests compile as well."""
    work = [work for work in all_work() if work.name.startswith(side)]
    return work[[each.name for each in work].index(f"{side}: leaves") :]


@pytest.mark.parametrize("side", ["classes", "numbers"])
@pytest.mark.filterwarnings("ignore")
def test_work_on_fitted_models_can_be_done(side):
    work = judging(side)
    assert len(work) > 25
    for each in work:
        each.call()


@pytest.mark.parametrize("missing", [0.0, 0.1])
@pytest.mark.parametrize("name", ["RandomForest", "ExtraTrees"])
@pytest.mark.parametrize("kind", ["Classifier", "Regressor"])
def test_what_few_rows_compile_serves_many(name, kind, missing):
    """Kernels are compiled for types: those that grow trees and predict have the same of any table,
    however features are drawn.

    Of long tables codes are of a type of their own on the way, which the warm-up knows.
    """
    rng = np.random.default_rng(0)

    def types_after(n_rows, **params):
        X, y = rng.random((n_rows, 18)), rng.integers(0, 3, n_rows)
        X[rng.random(X.shape) < missing] = np.nan
        for n_trees in (1, 2):  # few small trees are a batch, one is not
            model = getattr(forest, name + kind)(n_trees, max_depth=3, random_state=0, **params)
            model.fit(X, y if kind == "Classifier" else y + 0.5).predict(X)
        grow = [k for k in kernels() if not k.py_func.__module__.startswith("cart.table")]
        return {(kernel, str(types)) for kernel in grow for types in kernel.signatures}

    few = types_after(60)
    assert not types_after(60, feature_draw="keyed") - few
    for n_rows in (2000, 5000, 60_000):
        assert not types_after(n_rows) - few


def test_it_says_how_far_it_is(monkeypatch, capsys):
    """Steps, and the time in all at the end."""
    done = []
    work = [Work(str(i), lambda i=i: done.append(i)) for i in range(3)]
    monkeypatch.setattr(warm_up, "all_work", lambda: work)
    monkeypatch.delenv("NUMBA_DISABLE_JIT", raising=False)
    assert main(["warm-up"]) == 0
    assert done == [0, 1, 2]
    said = capsys.readouterr().err
    assert "compiling 3 kinds of work" in said
    assert "all kernels are ready after" in said


def test_without_compilation_there_is_nothing_to_do(monkeypatch, capsys):
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    monkeypatch.setattr(warm_up, "all_work", pytest.fail)
    assert main(["warm-up"]) == 0
    assert "nothing to compile: NUMBA_DISABLE_JIT is set" in capsys.readouterr().err
