"""Threads that share the items of jobs inside kernels."""

from threading import Thread

import numpy as np
import pytest

from cart.jit.decorators import entry_kernel
from cart.primitives.crew import Crew, finish_item, open_job, take_item, wait_for_all


@entry_kernel
def own_jobs(crew, sizes, job, times):
    """Jobs one after another, of which each item is done once; return what is not so."""
    n_wrong = 0
    for number in range(sizes.shape[0]):
        n_items = sizes[number]
        job[0], times[:n_items] = number, 0
        open_job(crew, n_items)
        item = take_item(crew)
        while item >= 0:
            times[item] += 1 + job[0]
            finish_item(crew)
            item = take_item(crew)
        wait_for_all(crew, n_items)
        for item in range(n_items):
            n_wrong += times[item] != 1 + number
    return n_wrong


@entry_kernel
def help_out(crew, job, times, n_looks):
    n_done = 0
    for _ in range(n_looks):
        item = take_item(crew)
        if item >= 0:
            times[item] += 1 + job[0]
            n_done += 1
            finish_item(crew)
    return n_done


@pytest.mark.parametrize("n_helpers", [0, 1, 3])
def test_every_item_is_done_once(n_helpers):
    crew, job, times = Crew.create(), np.zeros(1, np.int64), np.zeros(64, np.int64)
    n_jobs = 20_000 if hasattr(own_jobs, "signatures") else 20  # fewer with the JIT off
    sizes = np.random.default_rng(0).integers(1, 65, n_jobs)
    own_jobs(crew, sizes[:1], job, times)
    help_out(crew, job, times, 1)  # compiled before they meet
    is_done, helped = [], []

    def go_on():
        while not is_done:
            helped.append(help_out(crew, job, times, 1000))

    helpers = [Thread(target=go_on) for _ in range(n_helpers)]
    for helper in helpers:
        helper.start()
    try:
        assert own_jobs(crew, sizes, job, times) == 0
    finally:
        is_done.append(True)
        for helper in helpers:
            helper.join()
    assert help_out(crew, job, times, 1000) == 0


def test_helpers_take_items_of_a_job_that_its_owner_has_opened():
    crew, job, times = Crew.create(), np.zeros(1, np.int64), np.zeros(64, np.int64)

    assert help_out(crew, job, times, 10) == 0
    open_from_outside(crew, 5)
    assert help_out(crew, job, times, 3) == 3
    assert help_out(crew, job, times, 10) == 2
    np.testing.assert_array_equal(times[:6], [1, 1, 1, 1, 1, 0])


@entry_kernel
def open_from_outside(crew, n_items):
    open_job(crew, n_items)
