"""scikit-learn's forests, to stand beside ours."""

from typing import Any

import numpy as np


def peer_of(model: Any) -> Any:
    """scikit-learn's forest with the parameters of one of ours, not fitted."""
    from sklearn import ensemble

    peer = getattr(ensemble, type(model).__name__)()
    ours = model.get_params(deep=False)
    return peer.set_params(**{name: ours[name] for name in peer.get_params(deep=False)})


def encode(X: Any, categorical: list[str], train: Any) -> Any:
    """The table in numbers, which scikit-learn needs: categories as codes in sorted order.

    Parameters
    ----------
    X, train : pandas.DataFrame
        Categories that the training table does not have count as missing.
    categorical : list of str
    """
    import pandas as pd

    numbers = X.copy()
    for name in categorical:
        levels = sorted(train[name].dropna().unique())
        codes = pd.Categorical(X[name], categories=levels).codes
        numbers[name] = np.where(codes < 0, np.nan, codes)
    return numbers.astype(np.float64)
