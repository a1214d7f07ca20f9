"""Compile the kernels of trees before their first use: `python -m cart`, for images and CI.

Compiled kernels are kept in `NUMBA_CACHE_DIR` if it is set, else beside the package, else in the
user's cache folder. Trees and forests with the criteria Gini, entropy and squared error then fit
and predict dense tables without compiling.
"""

from collections.abc import Sequence
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from cart import DecisionTreeClassifier, DecisionTreeRegressor
from cart.estimators.trees import BaseDecisionTree
from cart.files.checksum import digest_of
from cart.primitives.mersenne_twister import first_draws
from cart.tree.compact import Compact
from cart.tree.packed import pack
from cart.tree.traversal import rows_for, sum_of_values

FEW, MANY = 30, 2**16 + 1  # numbers of rows whose distinct values have codes of 16 and 32 bits
N_FEATURES = 9  # enough for max_features=1 to be "few" of them
BINS: dict[str, Any] = {"max_bins": 255}


class Case(NamedTuple):
    """A model to fit, on how many rows, and whether its targets are whole numbers."""

    name: str
    model: BaseDecisionTree
    n_rows: int
    is_whole: bool


CASES = (
    *(Case(f"{name}{what}", DecisionTreeClassifier(criterion=criterion, **params), n_rows, True)
      for name, criterion in (("Gini", "gini"), ("entropy", "entropy"))
      for what, params, n_rows in (
          ("", {}, FEW), (", many values", {}, MANY), (", bins", BINS, FEW))),
    Case("squared error", DecisionTreeRegressor(), FEW, False),
    Case("squared error, whole numbers", DecisionTreeRegressor(), FEW, True),
    Case("squared error, few features a split", DecisionTreeRegressor(max_features=1), FEW, False),
    Case("squared error, bins", DecisionTreeRegressor(**BINS), FEW, False),
)  # fmt: skip


def main(cases: Sequence[Case] = CASES) -> None:
    """Fit the model of each case and predict, which compiles the kernels, and print the times."""
    begin = perf_counter()
    first_draws([0], 2)
    for case in cases:
        start = perf_counter()
        use(case)
        print(f"{case.name}: {perf_counter() - start:.1f} s", flush=True)
    print(f"ready after {perf_counter() - begin:.1f} s")


def use(case: Case) -> None:
    """Fit a model to a table of random ranks, and predict by every kernel that forests use."""
    rng = np.random.default_rng(0)
    X = np.argsort(rng.random((case.n_rows, N_FEATURES)), axis=0) / 10
    X[0, 0] = X[1, 0]  # equal values make the kernel for repeated codes run
    y = rng.integers(0, 2, case.n_rows)
    tree = case.model.set_params(max_depth=2).fit(X, y if case.is_whole else y + 0.5).tree_
    packed = pack([tree], np.float32)
    rows_for(packed, X)
    X = X.astype(np.float32)
    tree.apply(X)
    sum_of_values(packed, X)
    Compact.of(tree.nodes).expand()
    digest_of(np.zeros(1 << 13))  # the checksum of saved models


if __name__ == "__main__":
    main()
