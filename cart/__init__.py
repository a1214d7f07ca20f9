"""CART: one decision tree, grown by numba kernels, scikit-learn's node for node."""

from cart.estimators import DecisionTreeClassifier, DecisionTreeRegressor

__all__ = ["DecisionTreeClassifier", "DecisionTreeRegressor"]
