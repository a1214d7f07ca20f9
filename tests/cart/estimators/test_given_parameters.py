"""Parameters that a user gives are validated, and those that are left out are not, since they hold;
what a `random_state` draws first."""

import re

import numpy as np
import pytest
import sklearn.tree
from sklearn.base import BaseEstimator, clone
from sklearn.utils._param_validation import validate_parameter_constraints

import cart
import cartwood
from cart.estimators.parameters import GivenParameters, first_draw

ESTIMATORS = [
    kind
    for kind in (getattr(cartwood, name) for name in cartwood.__all__)
    if isinstance(kind, type) and issubclass(kind, GivenParameters)
]
EVERY_ESTIMATOR = [
    kind
    for kind in (getattr(cartwood, name) for name in cartwood.__all__)
    if isinstance(kind, type) and issubclass(kind, BaseEstimator)
]
GIVEN = [
    (kind, name)
    for kind in ESTIMATORS
    for name in ("max_depth", "missing", "ccp_alpha", "min_samples_leaf")
    if name in kind._get_param_names()
]


def test_these_are_all_trees_and_forests():
    assert {"DecisionTreeClassifier", "RandomForestRegressor"} <= {k.__name__ for k in ESTIMATORS}
    assert len(ESTIMATORS) == 10  # four trees, two pruned ones, four forests


@pytest.mark.parametrize("estimators", ESTIMATORS)
def test_names_of_parameters_are_read_once(estimators, monkeypatch):
    """Also by what inherits from an estimator, and anew where a constructor is replaced."""

    class Own(estimators):
        def __init__(self, mine=1):
            self.mine = mine

    names = BaseEstimator._get_param_names.__func__(estimators)
    assert estimators._get_param_names() == names
    assert Own._get_param_names() == ["mine"]
    estimators._get_param_names().clear()  # a list of its own
    with monkeypatch.context() as patch:
        patch.setattr("inspect.signature", None)
        assert estimators._get_param_names() == names
        assert sorted(estimators().get_params(deep=False)) == names
        assert clone(Own(mine=2)).mine == 2
    Own.__init__ = lambda self, other=2: None
    assert Own._get_param_names() == ["other"]


@pytest.mark.parametrize("estimators", ESTIMATORS)
def test_defaults_hold(estimators):
    parameters = estimators().get_params(deep=False)
    validate_parameter_constraints(estimators._parameter_constraints, parameters, "it")


@pytest.mark.parametrize(("estimators", "name"), GIVEN)
def test_what_is_given_is_validated(estimators, name):
    X, y = np.arange(8.0)[:, None], np.arange(8) % 2
    with pytest.raises(ValueError, match=f"The '{name}' parameter of {estimators.__name__} must"):
        estimators(**{name: "nonsense"}).fit(X, y)
    with pytest.raises(ValueError, match=f"The '{name}' parameter of {estimators.__name__} must"):
        estimators().set_params(**{name: "nonsense"}).fit(X, y)


@pytest.mark.parametrize("estimators", EVERY_ESTIMATOR)
def test_a_parameter_that_is_none_is_refused_by_the_class_that_was_called(estimators):
    with pytest.raises(TypeError, match=re.escape(f"{estimators.__name__}.__init__() got an")):
        estimators(max_dept=3)


def test_a_subclass_with_defaults_of_its_own_is_validated_by_them():
    class Shallow(cart.DecisionTreeClassifier):
        def __init__(self, max_depth=2):
            super().__init__(max_depth=max_depth)

    assert Shallow().fit([[0.0], [1.0]], [0, 1]).get_depth() == 1
    with pytest.raises(ValueError, match="The 'max_depth' parameter of Shallow must"):
        Shallow(max_depth=-1).fit([[0.0], [1.0]], [0, 1])


def test_a_subclass_may_keep_a_parameter_as_a_property():
    class Limited(cartwood.RandomForestClassifier):
        @property
        def max_depth(self):
            return self._limit

        @max_depth.setter
        def max_depth(self, value):
            self._limit = value or 2

    model = clone(Limited(3)).fit([[0.0], [1.0]] * 4, [0, 1] * 4)
    assert (model.max_depth, len(model.estimators_)) == (2, 3)
    assert clone(model.set_params(max_depth=5)).max_depth == 5


def test_first_draw():
    """The stream that a thread keeps is begun anew each time; others are drawn from as they are."""
    for seed in (0, 5, 0, np.int64(7), 2**32 - 1, True):
        assert first_draw(seed, 2**31) == np.random.RandomState(int(seed)).randint(2**31)
    with pytest.raises(ValueError, match="Seed must be between"):
        first_draw(-1, 2**31)
    given, same = np.random.RandomState(3), np.random.RandomState(3)
    assert [first_draw(given, 99) for _ in range(4)] == [same.randint(99) for _ in range(4)]
    assert first_draw(0, 2**31) == np.random.RandomState(0).randint(2**31)


@pytest.mark.parametrize("max_features", [None, 1, "sqrt", "log2", 0.1, 0.5, 0.99, 1.0])
def test_how_many_features_a_split_looks_at(max_features):
    """Also where the share of few features is less than one."""
    for n_features in (1, 2, 3, 4, 5, 9, 16, 17):
        X = np.arange(2.0 * n_features).reshape(2, n_features)
        ours, theirs = (
            home.DecisionTreeClassifier(max_features=max_features).fit(X, [0, 1])
            for home in (cart, sklearn.tree)
        )
        assert ours.max_features_ == theirs.max_features_
