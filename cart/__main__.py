"""Compile the kernels of trees before their first use: `python -m cart`, for images and CI.

What is compiled stays in numba's cache: in `NUMBA_CACHE_DIR` where that is set, else beside the
package, else in the user's cache folder. Trees and forests by Gini, entropy and squared error then
fit and predict dense tables without compiling.
"""

from time import perf_counter

import numpy as np

from cart import DecisionTreeClassifier, DecisionTreeRegressor
from cart.packed import pack
from cart.stream import first_draws
from cart.traverse import sum_of_values

MODELS = {
    "Gini": DecisionTreeClassifier(),
    "entropy": DecisionTreeClassifier(criterion="entropy"),
    "squared error": DecisionTreeRegressor(),
    "squared error, few features a split": DecisionTreeRegressor(max_features=1),
}


def main():
    """Fit every model once, and predict."""
    begin = perf_counter()
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 4)).astype(np.float32), rng.integers(0, 2, 30)
    first_draws(y, 2)
    for name, model in MODELS.items():
        start = perf_counter()
        tree = model.fit(X, y).tree_
        tree.apply(X)
        sum_of_values(pack([tree], X.dtype), X)
        print(f"{name}: {perf_counter() - start:.1f} s", flush=True)
    print(f"ready after {perf_counter() - begin:.1f} s")


if __name__ == "__main__":
    main()
