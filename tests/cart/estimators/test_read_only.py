"""Read-only arrays, such as pandas' columns: no kernel is compiled for them."""

import numpy as np
import pytest

from cart import DecisionTreeRegressor
from cart.jit.disk_cache import KernelCache
from forest import ExtraTreesRegressor, RandomForestClassifier, RandomForestRegressor


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "model",
    [
        RandomForestClassifier(2, random_state=0),
        RandomForestRegressor(2, random_state=0),
        RandomForestRegressor(2, max_bins=20, random_state=0),
        RandomForestRegressor(2, criterion="poisson", random_state=0),
        ExtraTreesRegressor(2, random_state=0),
        DecisionTreeRegressor(criterion="absolute_error", random_state=0),
        DecisionTreeRegressor(precision="float64", random_state=0),
        DecisionTreeRegressor(missing="surrogate", surrogates="auto", random_state=0),
    ],
    ids=str,
)
def test_no_kernel_is_compiled_for_them(model, dtype, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4)).astype(dtype)
    y, weights = np.exp(X[:, 0]).astype(np.float64), rng.random(200)
    y = y > 1.0 if isinstance(model, RandomForestClassifier) else y

    def use_them():
        model.fit(X, y).predict(X)
        model.apply(X)
        model.decision_path(X)
        return model.fit(X, y, weights).predict(X)

    theirs = use_them()

    def is_compiled(cache, signature, context):
        raise AssertionError(f"{cache._function.__qualname__}{signature}")

    for array in (X, y, weights):
        array.flags.writeable = False
    monkeypatch.setattr(KernelCache, "load_overload", is_compiled)
    np.testing.assert_array_equal(use_them(), theirs)
