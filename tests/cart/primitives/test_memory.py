"""Memory that was freed goes back to the system after work on large tables, and only then."""

import pytest

from cart.primitives import memory


@pytest.mark.parametrize(("n_bytes", "calls"), [(memory._MUCH - 1, []), (memory._MUCH, [0])])
def test_large_tables_give_it_back(monkeypatch, n_bytes, calls):
    asked = []
    monkeypatch.setattr(memory, "_trim", lambda: asked.append)
    memory.give_back(n_bytes)
    assert asked == calls


def test_nothing_is_asked_of_libraries_that_cannot(monkeypatch):
    memory.give_back(memory._MUCH)
    monkeypatch.setattr(memory, "_trim", lambda: None)
    memory.give_back(memory._MUCH)
