"""Splits are parallel to the axes: a rotated boundary needs stairs; PCA may rotate it back."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cartwood import DecisionTreeClassifier

rng = np.random.default_rng(6)
straight = rng.normal(size=(300, 2)) * (2.0, 0.7)
y = (straight[:, 0] > 0).astype(int)
turn = np.pi / 4
rotated = straight @ np.array([[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]])
cases = {
    "as it is": (straight, DecisionTreeClassifier(random_state=42)),
    "turned by 45 degrees": (rotated, DecisionTreeClassifier(random_state=42)),
    "turned, after PCA": (
        rotated,
        make_pipeline(StandardScaler(), PCA(), DecisionTreeClassifier(random_state=42)),
    ),
}
figure, axes = plt.subplots(1, 3, figsize=(11, 3.5), layout="constrained")
for ax, (title, (X, model)) in zip(axes, cases.items()):
    model.fit(X, y)
    tree = model[-1] if hasattr(model, "steps") else model
    reach = np.abs(X).max() * 1.05
    a, b = np.meshgrid(*2 * [np.linspace(-reach, reach, 300)])
    regions = model.predict(np.column_stack((a.ravel(), b.ravel()))).reshape(a.shape)
    ax.contourf(a, b, regions, levels=[-0.5, 0.5, 1.5], alpha=0.3, colors=["C0", "C1"])
    ax.scatter(*X.T, c=np.where(y, "C1", "C0"), s=8)
    ax.set_title(f"{title}: {tree.get_n_leaves()} leaves", fontsize=9)
    ax.set_xlabel("first feature")
    print(f"{title}: {tree.get_n_leaves()} leaves")
axes[0].set_ylabel("second feature")
figure.savefig("rotation.png", dpi=110)
