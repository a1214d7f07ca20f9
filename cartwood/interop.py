"""scikit-learn's forests, for comparison with ours."""

from typing import Any

import numpy as np


def peer_of(model: Any) -> Any:
    """An unfitted scikit-learn forest with the parameters of one of ours."""
    from sklearn import ensemble

    peer = getattr(ensemble, type(model).__name__)()
    ours = model.get_params(deep=False)
    return peer.set_params(**{name: ours[name] for name in peer.get_params(deep=False)})


def encode(X: Any, categorical: list[str], train: Any) -> Any:
    """Encode categories as codes in sorted order, since scikit-learn needs numbers.

    Parameters
    ----------
    X, train : pandas.DataFrame
        The table, and the training table; categories that the latter lacks count as missing.
    categorical : list of str
    """
    import pandas as pd

    numbers = X.copy()
    for name in categorical:
        levels = sorted(train[name].dropna().unique())
        codes = pd.Categorical(X[name], categories=levels).codes
        numbers[name] = np.where(codes < 0, np.nan, codes)
    return numbers.astype(np.float64)
