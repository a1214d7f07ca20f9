"""The warm-up has work of every kind, and says how far it is.

That nothing is compiled after it takes minutes to show: `make wheel-test` does.
"""

import inspect
from collections import Counter

import cart
import forest
import importance
from cartwood.__main__ import main
from cartwood.commands import kinds, warm_up
from cartwood.commands.kinds import Work, all_work

# Without kernels of their own: those of what they are given, or none at all.
OTHERS = {
    *("BaggingClassifier", "BaggingRegressor", "ExtraTreeRegressor", "FeatureSelector"),
    *(
        "correlation_groups",
        "count_unseen",
        "explain_path",
        "export_graphviz",
        "export_text",
        "janitza",
        "load",
    ),
    *("one_hot_groups", "plot_cp", "plot_tree", "prune_at", "summary"),
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


def test_it_says_how_far_it_is(monkeypatch, capsys):
    """Steps, and the time in all at the end."""
    done = []
    work = [Work(str(i), lambda i=i: done.append(i)) for i in range(3)]
    monkeypatch.setattr(warm_up, "all_work", lambda: work)
    assert main(["warm-up"]) == 0
    assert done == [0, 1, 2]
    said = capsys.readouterr().err
    assert "compiling 3 kinds of work" in said
    assert "all kernels are ready after" in said
