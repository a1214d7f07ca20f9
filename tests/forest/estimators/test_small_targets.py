"""Targets that vary so little that their impurity counts as 0, as in scikit-learn: a warning."""

import warnings

import numpy as np
import pytest
from sklearn.tree import DecisionTreeRegressor as PeerTree

from cart import DecisionTreeRegressor, ExtraTreeRegressor, PrunedTreeRegressor
from forest import BaggingRegressor, RandomForestClassifier, RandomForestRegressor
from forest.partitioned.dask import fit

X = np.random.default_rng(0).normal(size=(60, 3))
Y = np.abs(X[:, 0])
SILENT = {
    "large enough": Y * 1e-6,
    "constant": np.full(60, 1e-20),
    "0": np.zeros(60),
    "huge": np.full(60, 1e200),
    "constant but for rounding": 0.1 + 1e-17 * np.round(X[:, 0]),
    "constant in each of two outputs": np.tile([0.1, 5.0], (60, 1)),
    "one of two outputs": np.column_stack((Y, Y * 1e-20)),
}


def said_by(model, y):
    """Whether a fit warns of the target."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y)
    words = "No tree splits, because y varies so little"
    return any(str(warning.message).startswith(words) for warning in caught)


@pytest.mark.parametrize("scale", [1e-20, 1e-170, 1e-300])
@pytest.mark.parametrize(
    "model",
    [
        DecisionTreeRegressor(),
        DecisionTreeRegressor(criterion="absolute_error"),
        DecisionTreeRegressor(criterion="poisson"),
        ExtraTreeRegressor(),
        PrunedTreeRegressor(),
        RandomForestRegressor(3),
        BaggingRegressor(n_estimators=2),
    ],
    ids=str,
)
def test_trees_that_do_not_split_are_explained(model, scale):
    assert said_by(model, Y * scale)
    assert np.ptp(model.predict(X)) < 0.3 * np.ptp(Y * scale)


def test_it_is_said_where_scikit_learn_does_not_split():
    for power in np.arange(-10.0, -6.0, 0.25):
        y = Y * 10**power
        assert said_by(DecisionTreeRegressor(), y) == (PeerTree().fit(X, y).get_n_leaves() == 1)
    several = np.column_stack((Y, Y)) * 1e-9
    assert said_by(DecisionTreeRegressor(), several)
    assert not said_by(DecisionTreeRegressor(criterion="absolute_error"), Y * 1e-9)


@pytest.mark.parametrize("name", SILENT)
def test_other_targets_give_no_warning(name):
    for model in (DecisionTreeRegressor(), RandomForestRegressor(3, random_state=0)):
        assert not said_by(model, SILENT[name])
    assert not said_by(RandomForestClassifier(3, random_state=0), np.zeros(60))


def test_forests_of_partitions_say_it_too():
    model = RandomForestRegressor(2, max_bins=255, feature_draw="keyed", random_state=0)
    with pytest.warns(UserWarning, match="No tree splits, because y varies so little"):
        fit(model, np.split(X, 3), np.split(Y * 1e-20, 3))
    for y in (Y, np.full(60, 1e-20)):
        with warnings.catch_warnings(action="error"):
            fit(model, np.split(X, 3), np.split(y, 3))


@pytest.mark.parametrize("scale", [1e-200, 1e-310])
@pytest.mark.parametrize(
    "model",
    [DecisionTreeRegressor(), RandomForestRegressor(3), DecisionTreeRegressor(ccp_alpha=0.001)],
    ids=str,
)
def test_underflow_is_no_error(model, scale):
    """Also not if NumPy is told to raise one, as in a debugging session."""
    y = Y * scale
    with np.errstate(all="raise"), warnings.catch_warnings(action="ignore"):
        model.fit(X, y)
        model.fit(X, Y, np.full(60, 1e-300))
        assert model.feature_importances_.sum() == pytest.approx(1.0)
