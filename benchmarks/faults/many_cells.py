"""A table of more cells than 31 bits number is fitted and predicted as its last column alone is."""

import numpy as np

from benchmarks.harness import display
from cart import DecisionTreeClassifier, DecisionTreeRegressor

N_ROWS = 2**16
N_COLUMNS = 2**15 + 1  # all but the last one are 0, and take no memory; their codes do, 4.3 GB


def run(args):
    """Fit both kinds of tree; 1 if one is not the tree of the last column."""
    rng = np.random.default_rng(0)
    column = rng.permutation(N_ROWS).astype(np.float32)
    X = np.zeros((N_ROWS, N_COLUMNS // 64 if args.quick else N_COLUMNS), np.float32)
    X[:, -1] = column
    rows, is_wrong = [], False
    for kind, y in (
        (DecisionTreeClassifier, column > 40_000),
        (DecisionTreeRegressor, column**0.5),
    ):
        wide, narrow = (
            kind(max_depth=4, random_state=0).fit(table, y) for table in (X, column[:, np.newaxis])
        )
        is_same = np.array_equal(wide.tree_.threshold, narrow.tree_.threshold)
        is_same &= set(wide.tree_.feature) <= {X.shape[1] - 1, -2}
        is_same &= np.array_equal(wide.predict(X[-500:]), narrow.predict(X[-500:, -1:]))
        rows.append([kind.__name__, f"{X.size:,}", "same" if is_same else "other"])
        is_wrong |= not is_same
    heads = ["tree", "cells", "tree of the last column"]
    display.show(display.Table(f"More than 2**31 = {2**31:,} cells", heads, rows))
    return int(is_wrong)
