"""Compile the kernels of trees before their first use: `python -m cart`, for images and CI.

What is compiled is kept in `NUMBA_CACHE_DIR` where that is set, else beside the package, else in
the user's cache folder. Trees and forests by Gini, entropy and squared error then fit and predict
dense tables without compiling.
"""

from time import perf_counter
from typing import Any

import numpy as np

from cart import DecisionTreeClassifier, DecisionTreeRegressor
from cart.estimators.trees import BaseDecisionTree
from cart.primitives.mersenne_twister import first_draws
from cart.tree.compact import Compact
from cart.tree.packed import pack
from cart.tree.traversal import sum_of_values

FEW, MANY = 30, 2**16 + 1  # distinct values, whose codes have 16 bits, and 32
N_FEATURES = 9  # of which one is few
BINS: dict[str, Any] = {"max_bins": 255}
# What is fitted: its name, the model, to how many rows, and whether its targets are whole numbers.
CASES: tuple[tuple[str, BaseDecisionTree, int, bool], ...] = (
    *((f"{name}{what}", DecisionTreeClassifier(criterion=criterion, **params), n_rows, True)
      for name, criterion in (("Gini", "gini"), ("entropy", "entropy"))
      for what, params, n_rows in (
          ("", {}, FEW), (", many values", {}, MANY), (", bins", BINS, FEW))),
    ("squared error", DecisionTreeRegressor(), FEW, False),
    ("squared error, whole numbers", DecisionTreeRegressor(), FEW, True),
    ("squared error, few features a split", DecisionTreeRegressor(max_features=1), FEW, False),
    ("squared error, bins", DecisionTreeRegressor(**BINS), FEW, False),
)  # fmt: skip


def main() -> None:
    """Fit every model once, and predict."""
    begin = perf_counter()
    rng = np.random.default_rng(0)
    first_draws([0], 2)
    for name, model, n_rows, is_whole in CASES:
        start = perf_counter()
        X = np.argsort(rng.random((n_rows, N_FEATURES)), axis=0).astype(np.float32)
        y = rng.integers(0, 2, n_rows)
        tree = model.set_params(max_depth=2).fit(X, y if is_whole else y + 0.5).tree_
        tree.apply(X)
        sum_of_values(pack([tree], X.dtype), X)
        Compact.of(tree.nodes).expand()
        print(f"{name}: {perf_counter() - start:.1f} s", flush=True)
    print(f"ready after {perf_counter() - begin:.1f} s")


if __name__ == "__main__":
    main()
