"""An iris tree of depth two: its picture, its decision regions, its probabilities."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_iris

from cartwood import DecisionTreeClassifier, plot_tree

iris = load_iris(as_frame=True)
X, y = iris.data[["petal length (cm)", "petal width (cm)"]], iris.target
tree = DecisionTreeClassifier(max_depth=2, random_state=42).fit(X, y)

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
plot_tree(
    tree, feature_names=list(X.columns), class_names=list(iris.target_names), filled=True,
    rounded=True, fontsize=8, ax=left,
)  # fmt: skip
a, b = np.meshgrid(np.linspace(0.5, 7.2, 300), np.linspace(0, 2.7, 300))
grid = pd.DataFrame(np.column_stack((a.ravel(), b.ravel())), columns=X.columns)
regions = tree.predict(grid).reshape(a.shape)
colors = ["C1", "C2", "C4"]
right.contourf(a, b, regions, levels=[-0.5, 0.5, 1.5, 2.5], alpha=0.3, colors=colors)
for k, name in enumerate(iris.target_names):
    right.scatter(*X[y == k].to_numpy().T, s=14, color=colors[k], label=name)
right.set(xlabel=X.columns[0], ylabel=X.columns[1], title="Decision regions of depth 2")
right.legend(frameon=False, loc="upper left")

flower = pd.DataFrame([[5.0, 1.5]], columns=X.columns)
print("a flower with petals of 5 cm and 1.5 cm:", tree.predict_proba(flower).round(3)[0])
figure.savefig("iris_tree.png", dpi=110)
