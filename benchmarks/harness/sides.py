"""Sides: our estimators and scikit-learn's, by task."""

from sklearn import ensemble
from sklearn import tree as peer_tree

import cart
import forest

FORESTS = {
    "classification": (forest.RandomForestClassifier, ensemble.RandomForestClassifier),
    "regression": (forest.RandomForestRegressor, ensemble.RandomForestRegressor),
}
EXTRA_TREES = {
    "classification": (forest.ExtraTreesClassifier, ensemble.ExtraTreesClassifier),
    "regression": (forest.ExtraTreesRegressor, ensemble.ExtraTreesRegressor),
}
TREES = {
    "classification": (cart.DecisionTreeClassifier, peer_tree.DecisionTreeClassifier),
    "regression": (cart.DecisionTreeRegressor, peer_tree.DecisionTreeRegressor),
}
