"""Tables with more cells than 31 bits can number: their trees must be those of the last column."""

import numpy as np
import psutil
from scipy.sparse import csc_array

from benchmarks.harness import display
from cart import DecisionTreeClassifier, DecisionTreeRegressor

LEAST_MEMORY = 16e9  # free bytes needed; codes of the dense table take up to 13 GB


def run(args):
    """Fit both kinds of tree; 1 if one is not the tree of the last column."""
    tables = {"sparse": _sparse()}
    if args.quick or psutil.virtual_memory().available < LEAST_MEMORY:
        print("The dense table is left out: it needs 16 GB.")
    else:
        tables["dense"] = _dense()
    rows, is_wrong = [], False
    for name, X in tables.items():
        last = X[:, [X.shape[1] - 1]]
        column = last.toarray()[:, 0] if name == "sparse" else last[:, 0]
        for kind, y in (
            (DecisionTreeClassifier, column > column.max() / 3.0),
            (DecisionTreeRegressor, np.sqrt(column)),
        ):
            is_same = _is_tree_of_the_last_column(kind(max_depth=4, random_state=0), X, last, y)
            cells = f"{X.shape[0] * X.shape[1]:,}"
            rows.append([f"{kind.__name__}, {name}", cells, "same" if is_same else "other"])
            is_wrong |= not is_same
    heads = ["tree", "cells", "tree of the last column"]
    display.show(display.Table(f"More than 2**31 = {2**31:,} cells", heads, rows))
    return int(is_wrong)


def _dense():
    """A table whose columns are all 0 but the last; zero pages take no memory."""
    X = np.zeros((2**16, 2**15 + 1), np.float32, order="F")
    X[:, -1] = np.random.default_rng(0).permutation(len(X))
    return X


def _sparse():
    rng, shape = np.random.default_rng(0), (2**18, 2**13 + 1)
    rows, values = np.arange(shape[0]), rng.permutation(shape[0]).astype(np.float32)
    return csc_array((values, (rows, np.full(shape[0], shape[1] - 1))), shape)


def _is_tree_of_the_last_column(model, X, last, y):
    wide = model.fit(X, y)
    tree, said = wide.tree_, wide.predict(X[-500:])
    narrow = model.fit(last, y)
    return (
        np.array_equal(tree.threshold, narrow.tree_.threshold)
        and set(tree.feature) <= {X.shape[1] - 1, -2}
        and np.array_equal(said, narrow.predict(last[-500:]))
    )
