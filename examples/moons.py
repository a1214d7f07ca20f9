"""Two moons with and without `min_samples_leaf`: how a limit keeps a tree from overfitting."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from cartwood import DecisionTreeClassifier

X, y = make_moons(150, noise=0.2, random_state=42)
X_test, y_test = make_moons(1000, noise=0.2, random_state=43)
a, b = np.meshgrid(np.linspace(-1.5, 2.5, 300), np.linspace(-1, 1.5, 300))
figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
for ax, limits in zip(axes, ({}, {"min_samples_leaf": 5})):
    tree = DecisionTreeClassifier(random_state=42, **limits).fit(X, y)
    score = tree.score(X_test, y_test)
    regions = tree.predict(np.column_stack((a.ravel(), b.ravel()))).reshape(a.shape)
    ax.contourf(a, b, regions, levels=[-0.5, 0.5, 1.5], alpha=0.3, colors=["C0", "C1"])
    ax.scatter(*X.T, c=np.where(y, "C1", "C0"), s=12)
    title = "min_samples_leaf=5" if limits else "no limits"
    ax.set_title(
        f"{title}: {tree.get_n_leaves()} leaves, {score:.1%} right on fresh rows", fontsize=9
    )
    ax.set_xlabel("first feature")
    print(f"{title}: {score:.3f}")
axes[0].set_ylabel("second feature")
figure.savefig("moons.png", dpi=110)
