"""Out-of-bag permutation importance of a forest, d, its spread over trees, s, and v = d / s."""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer

from cartwood import RandomForestClassifier, oob_permutation

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
forest = RandomForestClassifier(500, random_state=0, n_jobs=-1).fit(X, y)
result = oob_permutation(forest, X, y, loss="brier", n_jobs=-1)
table = result.to_frame().rename(columns={"importance": "d", "standard_error": "error over data"})
table["s"] = result.standard_deviation()[result.values.argsort(kind="stable")[::-1]]
table["v"] = table["d"] / table["s"]
print(table.head(8).round(4))
result.plot(max_features=12, level=0.95).figure.savefig("oob_importance.png", dpi=110)
plt.close()
