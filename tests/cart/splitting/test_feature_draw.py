"""Both ways to draw are of one type; what comes next is known ahead, so that caches may have it."""

import numba
import numpy as np
import pytest

from cart.jit.decorators import entry_kernel
from cart.splitting.feature_draw import (
    Draw,
    begin_draw,
    hash_names,
    likely_next,
    mark_searched,
    next_feature,
    random_between,
    restart,
)


@entry_kernel
def _draw_all(draw, seed, n_numbers, expected, drawn):
    restart(draw, seed)
    drawing = begin_draw(draw, 0, np.int64(0))
    k = 0
    j, drawing = next_feature(draw, drawing, drawn.shape[0])
    while j >= 0:
        feature = draw.features[j]
        drawn[k], expected[k] = feature, likely_next(draw, drawing, j, n_numbers)
        for _ in range(n_numbers):
            random_between(draw, feature, 0.0, 1.0)
        drawing = mark_searched(draw, drawing, j)
        j, drawing = next_feature(draw, drawing, drawn.shape[0])
        k += 1


def test_the_stream_and_keyed_draws_are_of_one_type():
    """Kernels that are compiled for one serve the other."""
    keyed = Draw.create(3, hash_names(range(3)), 2)
    assert numba.typeof(Draw.create(3)) == numba.typeof(keyed)


@pytest.mark.parametrize("is_keyed", [False, True])
@pytest.mark.parametrize("n_numbers", [0, 1, 2])
@pytest.mark.parametrize("n_features", [1, 2, 7, 100])
def test_the_next_feature_is_known_while_none_is_constant(is_keyed, n_numbers, n_features):
    draw = Draw.create(n_features, hash_names(range(n_features)) if is_keyed else None)
    for seed in range(5):
        expected, drawn = np.empty((2, n_features), np.int64)
        _draw_all(draw, seed, n_numbers, expected, drawn)
        assert sorted(drawn) == [*range(n_features)]
        np.testing.assert_array_equal(expected[:-1], drawn[1:])
        assert 0 <= expected[-1] < n_features
