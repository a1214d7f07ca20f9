"""Gini, entropy and error rate of two classes, and the gain of every cut on the petal width."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris

from cartwood import DecisionTreeClassifier


def gini(p):
    return 1.0 - (p**2).sum(axis=-1)


figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
share = np.linspace(0.001, 0.999, 200)
p = np.column_stack((share, 1.0 - share))
left.plot(share, gini(p), label="Gini, $1 - \\sum p_k^2$")
left.plot(
    share, -(p * np.log2(p)).sum(axis=1) / 2, label="half of the entropy, $-\\sum p_k \\log_2 p_k$"
)
left.plot(share, 1.0 - p.max(axis=1), label="error rate, $1 - \\max p_k$")
left.set(xlabel="share of the first class", ylabel="impurity", ylim=(0, 0.75))
left.legend(frameon=False, fontsize=8)

X, y = load_iris(return_X_y=True)
width = X[:, 3]
cuts = np.unique(width)[:-1] + np.diff(np.unique(width)) / 2


def gain(cut):
    """Gini impurity of all rows minus that of both sides, weighted by their numbers of rows."""
    sides = y[width <= cut], y[width > cut]
    shares = [np.bincount(side, minlength=3) / len(side) for side in sides]
    return gini(np.full(3, 1 / 3)) - sum(len(s) * gini(q) for s, q in zip(sides, shares)) / len(y)


gains = np.array([gain(cut) for cut in cuts])
right.plot(cuts, gains, "o-", markersize=3)
stump = DecisionTreeClassifier(max_depth=1).fit(X[:, [3]], y).tree_
right.axvline(stump.threshold[0], color="tab:red", label="the tree's cut")
right.set(xlabel="cut on petal width (cm)", ylabel="weighted impurity decrease")
right.legend(frameon=False)
print(f"best cut by hand {cuts[gains.argmax()]:.2f}, of the tree {stump.threshold[0]:.2f}")
figure.savefig("impurity.png", dpi=110)
