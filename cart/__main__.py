"""Compile the kernels of trees before their first use: `python -m cart`, for images and CI.

What is compiled stays in numba's cache: in `NUMBA_CACHE_DIR` where that is set, else beside the
package, else in the user's cache folder. Trees and forests by Gini, entropy and squared error then
fit and predict dense tables without compiling.
"""

from time import perf_counter

import numpy as np
from sklearn.base import is_classifier

from cart import DecisionTreeClassifier, DecisionTreeRegressor
from cart.packed import pack
from cart.stream import first_draws
from cart.traverse import sum_of_values

N_ROWS = (30, 2**16 + 1)  # for codes of 16 bits, and of 32
N_FEATURES = 9  # of which one is few
MODELS = {
    "Gini": DecisionTreeClassifier(max_depth=2),
    "entropy": DecisionTreeClassifier(criterion="entropy", max_depth=2),
    "squared error of whole numbers": DecisionTreeRegressor(max_depth=2),
    "squared error": DecisionTreeRegressor(max_depth=2),
    "squared error, few features a split": DecisionTreeRegressor(max_features=1, max_depth=2),
}


def main():
    """Fit every model once, and predict."""
    begin = perf_counter()
    rng = np.random.default_rng(0)
    for n_rows in N_ROWS:
        X = np.argsort(rng.random((n_rows, N_FEATURES)), axis=0).astype(np.float32)
        y = rng.integers(0, 2, n_rows)
        first_draws(y[:1], 2)
        for name, model in MODELS.items():
            start = perf_counter()
            is_whole = is_classifier(model) or "whole" in name
            tree = model.fit(X, y if is_whole else y + 0.5).tree_
            tree.apply(X)
            sum_of_values(pack([tree], X.dtype), X)
            print(f"{name}, {n_rows:,} rows: {perf_counter() - start:.1f} s", flush=True)
    print(f"ready after {perf_counter() - begin:.1f} s")


if __name__ == "__main__":
    main()
