"""pytest plugin: our estimators in the place of scikit-learn's in its test modules, and the count.

Names are exchanged while a test module is imported, and in that module alone: scikit-learn itself,
and so our bridges, go on with theirs. A test of `expected.LISTS` has to fail: one that passes is a
failure, and a list with a test that is not there an error.
"""

import functools
from collections import Counter
from contextlib import contextmanager
from types import ModuleType

import pytest
import sklearn.ensemble
import sklearn.tree

import cart
import forest
import forest.interop.bridge  # holds theirs from now on
from tests.conformance.expected import LISTS, MOST_WORDINGS, SLOW, WORDING

OURS = {sklearn.tree: cart, sklearn.ensemble: forest}
KIND_OF = {test: kind for kind, tests in LISTS.items() for test in tests}


class WordingError(Exception):
    """A test fails, and passes once it asks for no wording."""


def pytest_addoption(parser):
    parser.addoption("--slow", action="store_true", help="scikit-learn's slow tests as well")


@contextmanager
def _ours_in_their_place():
    with pytest.MonkeyPatch.context() as patch:
        for theirs, ours in OURS.items():
            for name in {*theirs.__all__} & {*ours.__all__}:
                patch.setattr(theirs, name, getattr(ours, name))
        yield


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    """Import a test module with our names, in the packages that it holds as well."""
    if not isinstance(collector, pytest.Module):
        return (yield)
    with _ours_in_their_place():
        report = yield
        for name, package in list(vars(collector.obj).items()):
            if any(package is theirs for theirs in OURS):
                ours = ModuleType(name)
                vars(ours).update(vars(package))
                setattr(collector.obj, name, ours)
    return report


def _names(item):
    """What lists may call a test by: its file and function, with parameters and without."""
    function = f"{item.path.name}::{item.originalname}"
    return f"{item.path.name}::{item.name}", function


def _listed(item):
    return next((name for name in _names(item) if name in KIND_OF), None)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Leave out slow tests, mark what has to fail."""
    listed = {item: _listed(item) for item in items}
    files = {item.path.name for item in items}
    strange = [name for name in {*KIND_OF, *SLOW} if name.partition("::")[0] in files]
    strange = {*strange} - {name for item in items for name in _names(item)}
    if strange:
        raise pytest.UsageError(f"scikit-learn has no such tests: {sorted(strange)}")
    wordings = [item for item, name in listed.items() if KIND_OF.get(name) == WORDING]
    if len(wordings) > MOST_WORDINGS:
        raise pytest.UsageError(f"{len(wordings)} tests of wordings, at most {MOST_WORDINGS}")
    for item, name in listed.items():
        if name:
            raises = WordingError if KIND_OF[name] == WORDING else None
            item.add_marker(pytest.mark.xfail(reason=KIND_OF[name], raises=raises, strict=True))
    if not config.getoption("slow"):
        slow = [item for item in items if SLOW.intersection(_names(item))]
        config.hook.pytest_deselected(items=slow)
        items[:] = [item for item in items if item not in slow]


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem):
    """A test of wordings that fails runs again without them: types must be the same."""
    if KIND_OF.get(_listed(pyfuncitem)) != WORDING:
        return (yield)
    try:
        return (yield)
    except (Exception, pytest.fail.Exception) as failure:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(pytest, "raises", _without_match(pytest.raises))
            patch.setattr(pytest, "warns", _without_match(pytest.warns))
            arguments = pyfuncitem._fixtureinfo.argnames
            pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in arguments})
        raise WordingError from failure


def _without_match(expect):
    @functools.wraps(expect)
    def expect_type(*args, match=None, **more):
        return expect(*args, **more)

    return expect_type


def pytest_terminal_summary(terminalreporter):
    """The table of counts."""
    stats = terminalreporter.stats
    expected = Counter(report.wasxfail for report in stats.get("xfailed", []))
    counts = {
        "passed": len(stats.get("passed", [])),
        **{kind: expected[kind] for kind in LISTS},
        "skipped by scikit-learn": len(stats.get("skipped", [])),
        "slow, left out": len(stats.get("deselected", [])),
        "anything else": len(stats.get("failed", []) + stats.get("error", [])),
    }
    terminalreporter.section(f"scikit-learn {sklearn.__version__}'s tests on our classes")
    for outcome, n in counts.items():
        terminalreporter.write_line(f"| {outcome} | {n} |")
