"""Samples of what `make fuzz` and `python -m benchmarks limits` run for longer."""

import pytest

from benchmarks.faults.limits import LIMITS, grow_both_ways


@pytest.mark.parametrize("is_beyond", [False, True])
@pytest.mark.parametrize("name", LIMITS)
def test_fast_paths_grow_the_general_trees_on_both_sides_of_their_limits(name, is_beyond):
    found = [grow_both_ways(name, is_beyond, seed) for seed in range(10 if "2**" in name else 2)]
    assert not any(is_different for _, is_different in found)
    takes_all = "squared_error" in name or ("2**2" in name and not is_beyond)
    assert not takes_all or all(is_fast for is_fast, _ in found)
