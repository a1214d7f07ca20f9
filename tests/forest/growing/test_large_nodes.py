"""Threads that have no tree left share the features of the large nodes of others."""

from threading import Event

import numpy as np
import pytest

from cart import DecisionTreeRegressor
from cart.fast_paths.regression.large_nodes import sharing
from cart.fast_paths.regression.sorted_path import SortedPath
from cart.growth.plan import make_plan
from cart.jit.decorators import entry_kernel
from cart.primitives.crew import open_job
from cart.splitting import criteria
from cart.table.columns import Columns
from cart.table.encoding import encode
from forest import RandomForestRegressor
from forest.growing import thread_pool
from tests.agreement.same import assert_same_nodes

N_ROWS, N_FEATURES = 2 * sharing.SHARED_MIN, 3


def make_table(n_rows, n_features, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_features)).astype(np.float32)
    return X, X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=n_rows)


@pytest.fixture
def await_help(monkeypatch):
    """A forest's last tree, once this is called, is not begun before another thread offers help."""
    offered, grow_numbers, find_helper = Event(), thread_pool._grow_numbers, SortedPath.helper

    def helper(path):
        offered.set()
        return find_helper(path)

    def grow_last_with_help(job, grower, numbers):
        assert len(job.seeds) - 1 not in numbers or offered.wait(timeout=60)
        return grow_numbers(job, grower, numbers)

    def await_help():
        assert not offered.is_set()
        monkeypatch.setattr(thread_pool, "_grow_numbers", grow_last_with_help)

    monkeypatch.setattr(SortedPath, "helper", helper)
    monkeypatch.setattr(thread_pool, "_ROWS_WORTH_HELP", N_ROWS)
    return await_help


@pytest.mark.parametrize("n_trees", [1, 4])
@pytest.mark.parametrize("share_missing", [0.0, 0.1])
def test_the_trees_do_not_depend_on_who_helps(n_trees, share_missing, await_help):
    X, y = make_table(40_000, 6)
    X[np.random.default_rng(1).random(X.shape) < share_missing] = np.nan
    params = {"max_features": None, "min_samples_leaf": 500, "random_state": 0}
    alone = RandomForestRegressor(n_trees, n_jobs=1, **params).fit(X, y)
    await_help()
    together = RandomForestRegressor(n_trees, n_jobs=3, **params).fit(X, y)
    for ours, theirs in zip(together.estimators_, alone.estimators_, strict=True):
        assert_same_nodes(ours.tree_, theirs.tree_)


@entry_kernel
def open_for_others(crew, n_items):
    open_job(crew, n_items)


@pytest.fixture
def stump():
    """The path that has just searched and marked the root, and its scratch."""
    X, y = make_table(N_ROWS, N_FEATURES)
    table = encode(Columns(X))
    tree = DecisionTreeRegressor(max_depth=1)
    plan = make_plan(tree, criteria.SquaredError, "best", N_ROWS, N_FEATURES, 1, 1)
    path = SortedPath(table, y[:, np.newaxis], plan)
    path.grow(np.ones((1, N_ROWS)), [0], True)
    return path, path._scratch[-1]


def test_a_helper_finds_the_gains_that_the_owner_does(stump):
    path, scratch = stump
    help_out, shared = path.helper(), scratch.shared

    assert not help_out()
    open_for_others(shared.crew, N_FEATURES)
    assert help_out()
    assert not help_out()
    np.testing.assert_array_equal(shared.gain[0, :2], scratch.screen.gain)
    np.testing.assert_array_equal(shared.best[0, :4], scratch.screen.best)
    assert scratch.screen.gain[0] > scratch.screen.gain[1] > 0.0


def test_a_helper_divides_rows_in_their_order(stump):
    path, scratch = stump
    help_out, shared, rows = path.helper(), scratch.shared, scratch.rows
    n_left = int(scratch.is_left.sum())
    assert 0 < n_left < N_ROWS

    shared.whole[:6] = sharing._DIVIDE, N_ROWS, 0, 0, n_left, N_FEATURES
    open_for_others(shared.crew, N_FEATURES)
    assert help_out()
    even, odd = rows.entries.reshape(2, N_FEATURES, rows.stride)[:, :, :N_ROWS]
    for before, after in zip(even, odd, strict=True):
        goes_left = scratch.is_left[before.astype(np.uint32)] == 1
        np.testing.assert_array_equal(after, [*before[goes_left], *before[~goes_left]])
