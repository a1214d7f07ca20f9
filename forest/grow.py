"""Grow many trees from one table: whole trees over threads, a workspace for each batch."""

import numpy as np
from joblib import effective_n_jobs
from sklearn.utils.parallel import Parallel, delayed

from cart.draw import DRAW_SEED_MAX
from cart.grow import create_workspace, grow_tree
from cart.target import make_records
from forest.bootstrap import restart_stream

# Batches per worker: enough that none idles for long when trees differ in size.
_BATCHES_PER_WORKER = 4


def grow_trees(table, codes, plan, seeds, weigh, n_jobs=None, verbose=0):
    """Grow one tree per seed; the same trees for every `n_jobs`.

    Parameters
    ----------
    table : cart.table.Table
    codes : ndarray of shape (n_samples,), float64
        Class codes or numbers, see `cart.target.Target`.
    plan : cart.plan.Plan
    seeds : sequence of int
        A tree's `random_state`.
    weigh : callable
        `weigh(i)` is the weight of every row in tree i, (n_samples,) or a scalar.
    n_jobs : int or None
        joblib's.
    verbose : int
        joblib's; above 1 every tree is announced as it is begun.

    Returns
    -------
    list of cart.tree.Tree
    """
    n_batches = min(len(seeds), _BATCHES_PER_WORKER * effective_n_jobs(n_jobs))
    batches = np.array_split(np.arange(len(seeds)), n_batches)
    grown = Parallel(n_jobs=n_jobs, prefer="threads", verbose=verbose)(
        delayed(_grow_batch)(table, codes, plan, seeds, weigh, batch, verbose) for batch in batches
    )
    return [tree for trees in grown for tree in trees]


def _grow_batch(table, codes, plan, seeds, weigh, batch, verbose):
    workspace = create_workspace(plan, len(codes), len(codes), table)
    trees = []
    for i in batch:
        if verbose > 1:
            print(f"building tree {i + 1} of {len(seeds)}")
        records = make_records(codes, weigh(i))
        draw_seed = restart_stream(seeds[i]).randint(DRAW_SEED_MAX)
        trees.append(grow_tree(table, records, plan, draw_seed, workspace))
    return trees
