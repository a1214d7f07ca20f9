"""Cost-complexity pruning: impurity and leaves over alpha, and the alpha that predicts best."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import cross_val_score

from cartwood import DecisionTreeClassifier

X, y = load_breast_cancer(return_X_y=True)
path = DecisionTreeClassifier(random_state=0).cost_complexity_pruning_path(X, y)
alphas = np.unique(path.ccp_alphas[:-1])
trees = [DecisionTreeClassifier(ccp_alpha=a, random_state=0) for a in alphas]
scores = np.array([cross_val_score(tree, X, y, cv=5).mean() for tree in trees])
leaves = [tree.fit(X, y).get_n_leaves() for tree in trees]
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.3), layout="constrained")
left.step(path.ccp_alphas[:-1], path.impurities[:-1], where="post", color="C0")
left.set(xlabel="alpha")
left.set_ylabel("impurity of the leaves, R(T)", color="C0")
twin = left.twinx()
twin.step(alphas, leaves, where="post", color="C1")
twin.set_ylabel("leaves, |T|", color="C1")
twin.yaxis.get_major_locator().set_params(integer=True)
right.plot(alphas, scores, "o-", markersize=3)
right.set(xlabel="alpha", ylabel="accuracy, 5-fold cross-validation")
best = scores.argmax()
print(f"best alpha {alphas[best]:.4f}: accuracy {scores[best]:.3f} with {leaves[best]} leaves, "
      f"without pruning {scores[0]:.3f} with {leaves[0]}")  # fmt: skip
figure.savefig("pruning.png", dpi=110)
