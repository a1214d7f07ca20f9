"""What `python -m benchmarks mutants` changes, which tests it asks, and what it makes of them."""

import pytest
from coverage import CoverageData

from benchmarks.mutants import nearest
from benchmarks.mutants.mutation import mutations
from benchmarks.mutants.named import NAMED, named_mutations
from benchmarks.mutants.nearest import ROOT, Map
from benchmarks.mutants.run import PARTS, Mutant, draw, judge

SOURCE = '''"""Words about 1 and 2."""


@decorated(1)
def kernel(x: int, y: float = 0.5) -> tuple[int, int]:
    """Words, x + 1."""
    if x < 3 and not y:
        raise ValueError("1 + 1")
    x[0] = min(x[y], len(x.shape[1]))
    x += (1 -
          y)
    return True
'''
CHANGES = {
    (5, "number", "0.75"),
    (7, "and, or, not", "(x < 3 or not y)"),
    (7, "comparison", "(x <= 3)"),
    (7, "number", "4"),
    (7, "and, or, not", "(y)"),
    (9, "statement left out", "pass"),
    (9, "index", "x[1]"),
    (9, "min and max", "max"),
    (9, "index", "x[y + 1]"),
    (10, "statement left out", "pass"),
    (10, "+ and -", "x -= 1 - y"),
    (10, "+ and -", "(1 + y)"),
    (10, "number", "2"),
    (12, "and, or, not", "False"),
}


def test_all_changes_of_a_source():
    found = mutations(SOURCE)
    assert {(m.line, m.kind, m.text) for m in found} == CHANGES
    assert len(found) == len(CHANGES)
    for mutation in found:
        changed = mutation.apply(SOURCE)
        assert changed != SOURCE
        compile(changed, "changed", "exec")


def test_a_seed_draws_the_same_mutants_of_every_part():
    few, more = draw(1, 12), draw(1, 30)
    assert more[:12] == few
    assert draw(2, 12) != few
    assert [mutant.part for mutant in few] == 2 * list(PARTS)
    assert len({mutant.key for mutant in more}) == 30


def test_what_is_named_is_in_the_code_once():
    assert len(named_mutations(ROOT)) == len(NAMED)


@pytest.fixture
def ran(tmp_path, monkeypatch):
    """A map of a module of which tests ran some lines."""
    monkeypatch.setattr(nearest, "ROOT", tmp_path)
    path = tmp_path / "cart" / "wing" / "module.py"
    path.parent.mkdir(parents=True)
    path.write_text("LIMIT = 3\n\n\ndef f(x):\n    return x < LIMIT\n")
    data = CoverageData(str(tmp_path / "data"))
    lines = {
        "tests/cart/wing/test_a.py::test_one[slow]|run": [5],
        "tests/cart/wing/test_a.py::test_one[quick]|run": [5],
        "tests/cart/wing/test_a.py::test_two|run": [5],
        "tests/forest/test_b.py::test_far|run": [5],
        "tests/forest/test_c.py::test_of_set_up|setup": [4],
    }
    for context, numbers in lines.items():
        data.set_context(context)
        data.add_lines({str(path): numbers})
    times = {context.partition("|")[0]: 1.0 for context in lines}
    times |= {
        "tests/cart/wing/test_a.py::test_one[slow]": 9.0,
        "tests/forest/test_c.py::test_other": 2.0,
    }
    return Map(data, times)


def test_nearest_tests_come_first(ran):
    near = ["test_a.py::test_one[quick]", "test_a.py::test_two", "test_b.py::test_far"]
    tests = ran.tests_of("cart/wing/module.py", 5)
    assert [name.rpartition("/")[2] for name in tests] == [*near, "test_a.py::test_one[slow]"]


def test_what_a_set_up_ran_is_asked_for_by_all_tests_of_its_module(ran):
    tests = ran.tests_of("cart/wing/module.py", 4)
    assert tests == ["tests/forest/test_c.py::test_of_set_up", "tests/forest/test_c.py::test_other"]


def test_a_constant_is_asked_for_by_the_lines_that_use_it(ran):
    assert ran.tests_of("cart/wing/module.py", 1) == ran.tests_of("cart/wing/module.py", 5)


def test_no_more_tests_than_there_is_time_for(ran, monkeypatch):
    monkeypatch.setattr(nearest, "AT_MOST", 2.5)
    assert len(ran.tests_of("cart/wing/module.py", 5)) == 2


class OneTest:
    """In the place of a map."""

    def tests_of(self, path, line):
        return ["tests/benchmarks/test_mutants.py::test_all_changes_of_a_source"]


def test_a_mutant_is_killed_by_the_test_that_fails(tmp_path):
    path = "benchmarks/mutants/mutation.py"
    found = mutations((ROOT / path).read_text())
    fault = next(m for m in found if m.before == "node.value + 1")
    found = judge(Mutant("", path, fault), OneTest(), tmp_path, {}, True)
    assert found["end"] == "killed, JIT off"
    assert found["by"].endswith("test_all_changes_of_a_source")
