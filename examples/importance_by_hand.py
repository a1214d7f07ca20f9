"""MDI of a tree by hand, from its node arrays: the tutorials' tree of California houses."""

import numpy as np
from sklearn.datasets import fetch_california_housing
from sklearn.model_selection import train_test_split

from cartwood import DecisionTreeRegressor

X, y = fetch_california_housing(return_X_y=True, as_frame=True)
X = X.drop(columns=["Latitude", "Longitude", "Population"])
X, _, y, _ = train_test_split(X, y, test_size=0.25, random_state=0)
model = DecisionTreeRegressor(max_depth=3, min_samples_split=4, random_state=0).fit(X, y)
tree = model.tree_
weighted = tree.weighted_n_node_samples / len(X) * tree.impurity
decrease = np.zeros(X.shape[1])
for node in np.flatnonzero(tree.children_left != -1):
    gain = weighted[node] - weighted[tree.children_left[node]] - weighted[tree.children_right[node]]
    name = X.columns[tree.feature[node]]
    print(f"node {node}: {name} <= {tree.threshold[node]:.3f} gains {gain:.4f}")
    decrease[tree.feature[node]] += gain
importance = decrease / decrease.sum()
for name, value in sorted(zip(X.columns, importance), key=lambda pair: -pair[1])[:3]:
    print(f"{name}: {value:.3f}")
print("same as feature_importances_:", np.allclose(importance, model.feature_importances_))
