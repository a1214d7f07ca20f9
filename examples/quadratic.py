"""A regression tree on a noisy quadratic: finer steps with depth, smoother with larger leaves."""

import matplotlib.pyplot as plt
import numpy as np

from cartwood import DecisionTreeRegressor

rng = np.random.default_rng(42)
x = np.sort(rng.uniform(-0.5, 0.5, 200))[:, None]
y = x[:, 0] ** 2 + 0.025 * rng.normal(size=200)
grid = np.linspace(-0.5, 0.5, 1000)[:, None]
figure, axes = plt.subplots(1, 3, figsize=(11, 3.2), sharey=True, layout="constrained")
for ax, limits in zip(axes, ({"max_depth": 2}, {}, {"min_samples_leaf": 10})):
    tree = DecisionTreeRegressor(random_state=42, **limits).fit(x, y)
    error = np.mean((tree.predict(grid) - grid[:, 0] ** 2) ** 2) ** 0.5
    ax.plot(x, y, ".", color="0.7", markersize=4, label="training rows")
    ax.plot(grid, tree.predict(grid), color="C3", label="prediction")
    ax.set_xlabel("x")
    title = ", ".join(f"{name}={value}" for name, value in limits.items()) or "no limits"
    ax.set_title(f"{title}: {error:.4f} from the curve", fontsize=9)
    print(f"{title}: {tree.get_n_leaves()} leaves, root mean squared error {error:.4f}")
axes[0].set_ylabel("y")
axes[0].legend(frameon=False, fontsize=8, loc="upper center")
figure.savefig("quadratic.png", dpi=110)
