"""Pickle fitted estimators of every kind, with what they predict.

`python -m tests.golden.make_pickles` wrote the files with the code of fe7cac0, before the wings.
Later versions load them and predict the same (`tests/cart/interop/test_old_pickles.py`): never
write them again.
"""

import pickle
from pathlib import Path

import numpy as np
from sklearn.datasets import load_diabetes, load_iris
from sklearn.linear_model import LogisticRegression

import cart
import forest

FOLDER = Path(__file__).parent / "pickles"


def iris():
    """Rows in an order of their own, with the columns as float64."""
    X, y = load_iris(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))
    return X[order], y[order]


def diabetes():
    """100 rows of the diabetes table."""
    X, y = load_diabetes(return_X_y=True)
    return X[:100], y[:100]


def _with_categories():
    X, y = iris()
    X[:, 0] = np.floor(X[:, 0])
    X[::7, 1] = np.nan
    return X, y


def _several_outputs():
    X, y = iris()
    return X, np.column_stack((y, y % 2))


CASES = {
    "decision_tree_classifier": (cart.DecisionTreeClassifier(), iris),
    "decision_tree_regressor": (cart.DecisionTreeRegressor(ccp_alpha=1.0), diabetes),
    "extra_tree_classifier": (cart.ExtraTreeClassifier(), iris),
    "extra_tree_regressor": (cart.ExtraTreeRegressor(), diabetes),
    "tree_float64": (cart.DecisionTreeClassifier(precision="float64"), iris),
    "tree_categories": (cart.DecisionTreeClassifier(categorical_features=[0]), _with_categories),
    "tree_several_outputs": (cart.DecisionTreeClassifier(max_leaf_nodes=6), _several_outputs),
    "random_forest_classifier": (
        forest.RandomForestClassifier(4, oob_score=True, feature_draw="keyed"), iris),
    "random_forest_regressor": (forest.RandomForestRegressor(4), diabetes),
    "random_forest_bins": (forest.RandomForestClassifier(4, max_bins=20), iris),
    "random_forest_weighted_votes": (
        forest.RandomForestClassifier(6, voting="oob_weighted", max_samples=0.5), iris),
    "random_forest_stacked": (forest.RandomForestClassifier(6, voting="stacked"), iris),
    "random_forest_categories": (
        forest.RandomForestClassifier(4, categorical_features=[0]), _with_categories),
    "random_forest_several_outputs": (forest.RandomForestClassifier(4), _several_outputs),
    "extra_trees_classifier": (forest.ExtraTreesClassifier(4), iris),
    "extra_trees_regressor": (forest.ExtraTreesRegressor(4, bootstrap=True), diabetes),
    "bagging_classifier": (
        forest.BaggingClassifier(LogisticRegression(max_iter=500), 3, max_features=0.5), iris),
    "bagging_regressor": (forest.BaggingRegressor(n_estimators=3, oob_score=True), diabetes),
}  # fmt: skip


def outputs(model, X):
    """What a model predicts of rows: class shares or numbers."""
    if not hasattr(model, "predict_proba"):
        return model.predict(X)
    shares = model.predict_proba(X)
    return np.hstack(shares) if isinstance(shares, list) else shares


def main():
    FOLDER.mkdir(exist_ok=True)
    predicted = {}
    for name, (model, table) in CASES.items():
        X, y = table()
        with np.errstate(all="ignore"):
            model = model.set_params(random_state=0).fit(X, y)
        if name == "random_forest_regressor":
            model.keep_leaves(X, y)  # which quantiles take
        (FOLDER / f"{name}.pkl").write_bytes(pickle.dumps(model, protocol=5))
        predicted[name] = outputs(model, X)
    np.savez_compressed(FOLDER / "predictions.npz", **predicted)


if __name__ == "__main__":
    main()
