"""Missing labels of text, dates and of pandas are named, by every estimator and over partitions."""

import numpy as np
import pandas as pd
import pytest

from cart import DecisionTreeClassifier
from forest import BaggingClassifier, RandomForestClassifier
from forest.partitioned.dask import fit

X = np.arange(20.0).reshape(10, 2)
IS_THIRD = np.arange(10) == 3
TARGETS = {
    "None": np.where(IS_THIRD, None, "a"),
    "None of booleans": np.where(IS_THIRD, None, True),
    "pandas.NA": pd.Series(np.where(IS_THIRD, None, "a"), dtype="string"),
    "NaT": np.where(IS_THIRD, np.datetime64("NaT", "D"), np.datetime64("2020-01-01")),
}


@pytest.mark.parametrize("y", TARGETS.values(), ids=TARGETS)
def test_missing_targets(y):
    for kind in (DecisionTreeClassifier, RandomForestClassifier, BaggingClassifier):
        with pytest.raises(ValueError, match=r"y has missing values in 1 row\(s\), first in row 3"):
            kind().fit(X, y)
    keyed = RandomForestClassifier(max_bins=255, feature_draw="keyed")
    with pytest.raises(
        ValueError, match=r"y, in partition 0, has missing values in 1 row\(s\), first in row 3"
    ):
        fit(keyed, [X[:4], X[4:]], [y[:4], y[4:]])
    with pytest.raises(ValueError, match="row 3"):
        DecisionTreeClassifier().fit(X, np.array([["a"] * 10, y], object).T)
