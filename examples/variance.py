"""One tree varies with its sample; a forest averages that away, best if its trees differ."""

import matplotlib.pyplot as plt
import numpy as np

from cartwood import DecisionTreeRegressor, RandomForestRegressor

rng = np.random.default_rng(0)
grid = np.linspace(0, 1, 200)[:, None]
models = {
    "one tree": DecisionTreeRegressor(random_state=0),
    "a forest of 100": RandomForestRegressor(100, random_state=0),
}
drawn = {name: [] for name in models}
for _ in range(30):  # samples from the same curve
    x = rng.uniform(size=(100, 1))
    y = np.sin(2 * np.pi * x[:, 0]) + 0.4 * rng.normal(size=100)
    for name, model in models.items():
        drawn[name].append(model.fit(x, y).predict(grid))
figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), sharey=True, layout="constrained")
for ax, (name, curves) in zip(axes, drawn.items()):
    variance = np.var(curves, axis=0).mean()
    lines = ax.plot(grid, np.transpose(curves[:10]), color="C0", linewidth=0.6, alpha=0.6)
    lines[0].set_label("predictions, of ten samples")
    ax.plot(grid, np.sin(2 * np.pi * grid), color="C3", label="the curve that is drawn from")
    ax.set_xlabel("x")
    ax.set_title(f"{name}: variance {variance:.3f} over 30 samples", fontsize=9)
    print(f"{name}: variance {variance:.3f}")
axes[0].set_ylabel("y")
axes[0].legend(frameon=False, fontsize=8)
figure.savefig("variance.png", dpi=110)
