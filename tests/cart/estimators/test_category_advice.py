"""What "from_dtype" takes for categories, and is none, is warned of by name."""

import warnings

import numpy as np
import pandas as pd
import pytest

from cart import DecisionTreeRegressor
from forest import RandomForestRegressor

N = 80


def table():
    rng = np.random.default_rng(0)
    return pd.DataFrame({
        "city": rng.choice(["Oslo", "Rome"], N),
        "user": [f"u{j}" for j in range(N)],
        "day": [f"2024-01-{1 + j % 28:02}" for j in range(N)],
        "size": rng.normal(size=N),
    })  # fmt: skip


@pytest.mark.parametrize("model", [DecisionTreeRegressor(), RandomForestRegressor(2)])
def test_names_and_dates_are_warned_of(model):
    X = table()
    model.set_params(categorical_features="from_dtype")
    with pytest.warns(UserWarning, match="from_dtype") as caught:
        model.fit(X, X["size"])
    texts = [str(each.message) for each in caught if "from_dtype" in str(each.message)]
    assert len(texts) == 2
    assert "user (80 in 80 rows)" in texts[0]
    assert "dates written as text for categories, without their order, in day." in texts[1]
    assert not any("city" in text for text in texts)
    assert all(each.filename == __file__ for each in caught if "from_dtype" in str(each.message))


def test_what_is_named_is_as_the_user_wishes():
    X = table()
    with warnings.catch_warnings(action="error"):
        DecisionTreeRegressor(categorical_features=["city", "user", "day"]).fit(X, X["size"])
        few = X[["city", "size"]]
        DecisionTreeRegressor(categorical_features="from_dtype").fit(few, few["size"])
