"""Datasets by name: scikit-learn's, synthetic ones of any size, and files."""

import os
import re
import socket
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn import datasets
from sklearn.model_selection import train_test_split

from benchmarks.harness import files
from benchmarks.harness.errors import DataError

BUNDLED = {
    "breast_cancer": ("classification", datasets.load_breast_cancer),
    "iris": ("classification", datasets.load_iris),
    "wine": ("classification", datasets.load_wine),
    "digits": ("classification", datasets.load_digits),
    "diabetes": ("regression", datasets.load_diabetes),
}
SYNTHETIC = re.compile(r"(classification):(\d+)x(\d+)(?:x(\d+))?|(regression):(\d+)x(\d+)")
NAMES = (
    f"{', '.join(BUNDLED)}, california, classification:ROWSxCOLUMNS[xCLASSES], "
    "regression:ROWSxCOLUMNS, or a .csv or .parquet file"
)
MIN_ROWS = 8
DOWNLOAD_TIMEOUT = 10  # seconds to wait for an answer
SHARED_DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "scikit_learn_data"


class Dataset(NamedTuple):
    """A table and what to predict from it."""

    name: str
    task: str  # "classification" or "regression"
    X: np.ndarray  # (n_samples, n_features) float64
    y: np.ndarray  # (n_samples,) labels or float64
    feature_names: list

    def split(self, seed):
        """X_train, X_test, y_train, y_test with a quarter of the rows held out."""
        return train_test_split(self.X, self.y, test_size=0.25, random_state=seed)


def load(name, target=None, task=None):
    """Load the dataset of that name.

    Parameters
    ----------
    name : str
        One of NAMES.
    target, task : str, default=None
        For a file, see `files.read`.

    Returns
    -------
    Dataset

    Raises
    ------
    DataError
        If the table is not available or not usable.
    """
    path = Path(name)
    is_file = path.suffix.lower() in files.SUFFIXES
    if not is_file and (target is not None or task is not None):
        raise DataError(f"--target and --task are only for files; {name!r} has its own target.")
    if is_file:
        data = Dataset(path.stem, *files.read(path, target, task))
    elif name in BUNDLED:
        task, load_bundled = BUNDLED[name]
        data = _from_bunch(name, task, load_bundled())
    elif name == "california":
        data = _from_bunch(name, "regression", _fetch_california())
    elif match := SYNTHETIC.fullmatch(name):
        data = _make(name, *filter(None, match.groups()))
    else:
        raise DataError(f"unknown data {name!r}; choose from {NAMES}.")
    if data.X.shape[0] < MIN_ROWS or data.X.shape[1] < 2:
        raise DataError(
            f"{name} has {data.X.shape[0]} rows and {data.X.shape[1]} features; at least "
            f"{MIN_ROWS} and 2 are needed."
        )
    return data


def load_found(names):
    """Load the datasets that are available; say why the others are not.

    Returns
    -------
    found : list of Dataset
    left_out : list of str
    """
    found, left_out = [], []
    for name in names:
        try:
            found.append(load(name))
        except DataError as error:
            left_out.append(f"{name} is left out: {error}")
    return found, left_out


def data_home():
    """Folder of scikit-learn's tables; None leaves it to SCIKIT_LEARN_DATA or its default."""
    if "SCIKIT_LEARN_DATA" in os.environ or not SHARED_DATA.is_dir():
        return None
    return SHARED_DATA


def _from_bunch(name, task, bunch):
    return Dataset(name, task, bunch.data, bunch.target, [str(f) for f in bunch.feature_names])


def _fetch_california():
    """scikit-learn's copy of the table, or a download with a timeout."""
    patience = socket.getdefaulttimeout()
    socket.setdefaulttimeout(DOWNLOAD_TIMEOUT)
    try:
        with warnings.catch_warnings(action="ignore"):  # about its retry
            return datasets.fetch_california_housing(data_home=data_home(), n_retries=1)
    except OSError as error:
        raise DataError(
            f"the california table is not here and could not be downloaded ({error}); set "
            "SCIKIT_LEARN_DATA to a folder that holds cal_housing_py3.pkz, or call "
            "sklearn.datasets.fetch_california_housing() once with a network."
        ) from error
    finally:
        socket.setdefaulttimeout(patience)


def _make(name, task, *sizes):
    make = make_classification if task == "classification" else make_regression
    try:
        X, y = make(*map(int, sizes))
    except ValueError as error:
        raise DataError(f"cannot make {name}: {error}") from error
    return Dataset(name, task, X, y, [f"x{j}" for j in range(X.shape[1])])


def make_classification(n_samples, n_features, n_classes=2):
    """X and y of scikit-learn's make_classification, with half of the features informative."""
    needed = int(np.ceil(np.log2(2 * n_classes)))
    informative = max(needed, n_features // 2)
    if informative > n_features:
        raise ValueError(f"at least {needed} features are needed for {n_classes} classes.")
    return datasets.make_classification(
        n_samples,
        n_features,
        n_informative=informative,
        n_redundant=min(2, n_features - informative),
        n_classes=n_classes,
        random_state=0,
    )


def make_regression(n_samples, n_features):
    """X and y of scikit-learn's make_friedman1, with noise of standard deviation 1."""
    if n_features < 5:
        raise ValueError("at least 5 features are needed.")
    return datasets.make_friedman1(n_samples, n_features, noise=1.0, random_state=0)
