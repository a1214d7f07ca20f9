"""Lanes of vectors, and those of plain Python, against NumPy."""

from typing import NamedTuple

import numpy as np
import pytest

from cart.jit.decorators import entry_kernel
from cart.jit.simd import PlainLanes, on_lanes


class State(NamedTuple):
    """What a loop is given, and where it leaves what it has found."""

    steps: np.ndarray
    total: np.ndarray
    turns: np.ndarray


@pytest.mark.parametrize("width", [1, 2, 8])
def test_lanes_do_as_numpy_does(width):
    def work(lanes, reals, numbers, words, matrix, half, two):
        rows = (lanes.load(numbers) & 3) * 2
        beside, found = lanes.gather_rows(matrix, rows, 2)
        others = lanes.gather_rows(matrix, rows & 4, 4)
        (following,) = lanes.gather_rows(matrix, rows + 1, 1)
        found = found + (following - found) + (others[3] - others[1]) * beside
        mine = lanes.load(reals)
        is_more = (found > mine) & (lanes.load(numbers) - two > 0) & (lanes.load(words) >> 60 <= 14)
        lanes.store(reals, lanes.where(is_more, mine * found - half, (mine + 1.0) / found))
        lanes.store(numbers, lanes.where(is_more, two, lanes.load(numbers) + two))
        return lanes.any(is_more)

    compiled = on_lanes(width)(work)

    @entry_kernel
    def kernel(*arguments):
        return compiled(*arguments)

    rng, answers = np.random.default_rng(0), set()
    for _ in range(20):
        arguments = [
            rng.random(9), rng.integers(-9, 9, 9), rng.integers(0, 2**64, 9, np.uint64),
            rng.random((4, 2)), 0.5, 2,
        ]  # fmt: skip
        expected = [np.copy(argument) for argument in arguments[:2]]
        answer = work(PlainLanes(width), *expected, *arguments[2:])
        assert kernel(*arguments) == answer
        for found, array in zip(arguments, expected, strict=False):
            np.testing.assert_array_equal(found, array)
        answers.add(answer)
    assert answers == {True, False}


@pytest.mark.parametrize("width", [1, 2, 8])
def test_lanes_count_as_numpy_does(width):
    """Loops that carry vectors from turn to turn, and items that are the same in all lanes."""

    def work(lanes, i, n, stride, table, lines, total):
        i, stride = lanes.number(i), lanes.number(stride)

        def add(k, found, product):
            mine = lanes.load(lines, k * stride + i)
            lanes.store(lines, mine + 1.0, k * stride + i)
            return found + mine * lanes.same(table, k + 2), product * mine

        begin = lanes.load(total, i)
        found, product = lanes.repeat(lanes.number(n), add, begin, begin)
        lanes.store(total, found - product, i)

    compiled = on_lanes(width)(work)

    @entry_kernel
    def kernel(n, table, lines, total):
        for i in range(total.shape[0] // width):
            compiled(i, n, total.shape[0] // width, table, lines, total)

    rng = np.random.default_rng(0)
    for n in (1, 2, 5):
        table, lines, total = rng.random(9), rng.random((n, 3 * width)), rng.random(3 * width)
        expected = total + (lines.T * table[2 : n + 2]).sum(axis=1) - total * lines.prod(axis=0)
        copies = [np.copy(array) for array in (table, lines, total)]
        for i in range(3):
            work(PlainLanes(width), i, n, 3, *copies)
        np.testing.assert_allclose(copies[2], expected)
        before = lines.copy()
        kernel(n, table, lines, total)
        np.testing.assert_array_equal(lines, before + 1.0)
        np.testing.assert_array_equal(lines, copies[1])
        np.testing.assert_allclose(total, expected)


@pytest.mark.parametrize("width", [1, 2, 8])
def test_lanes_stop_where_plain_ones_do(width):
    """Loops that end early leave the turn that was the last; a choice does one side only."""

    def work(lanes, first, n, most, is_double, state):
        n, is_double = lanes.number(n), lanes.number(is_double)

        def add(k, total, turns):
            added = total + lanes.load(state.steps, k)
            (added,) = lanes.choose(is_double, lambda: (added + added,), lambda: (added,))
            is_last = lanes.any(added > most)
            return is_last, (added, turns), (added, turns + lanes.everywhere(k))

        begin = lanes.load(state.total), lanes.load(state.turns)
        k, *values = lanes.repeat_until(lanes.number(first), n, add, *begin)
        for array, value in zip((state.total, state.turns), values, strict=True):
            lanes.store(array, value)
        return k

    compiled = on_lanes(width, gives_number=True)(work)

    @entry_kernel
    def kernel(*arguments):
        return compiled(*arguments)

    rng, stops = np.random.default_rng(0), set()
    for _ in range(40):
        state = State(rng.random((6, width)), rng.random(width), rng.integers(0, 9, width))
        arguments = int(rng.integers(0, 3)), 6, rng.choice([2.0, 40.0]), int(rng.integers(2))
        expected = State(*map(np.copy, state))
        stop = work(PlainLanes(width), *arguments, expected)
        assert kernel(*arguments, state) == stop
        for found, array in zip(state, expected, strict=True):
            np.testing.assert_array_equal(found, array)
        stops.add(stop)
    assert 6 in stops
    assert len(stops) > 2
