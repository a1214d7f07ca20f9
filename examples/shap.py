"""SHAP values of a forest, of all rows and of one, with all trees and out of bag."""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer

from cartwood import RandomForestClassifier, shap_values

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
forest = RandomForestClassifier(100, random_state=0, n_jobs=2).fit(X, y)
seen = shap_values(forest, X, n_jobs=2)
unseen = shap_values(forest, X, out_of_bag=True, n_jobs=2)
print(seen)
print(unseen)
gap = abs(seen.prediction - forest.predict_proba(X)).max()
print(f"base value plus values is the prediction; largest gap {gap:.0e}")
pairs = shap_values(forest, X[:3], interactions=True).interactions
print(
    f"interactions of the first row: {pairs[0, :, :, 1].shape}, sum {pairs[0, :, :, 1].sum():.3f}"
)
unseen.plot("beeswarm", max_features=10).figure.savefig("shap.png", dpi=110)
plt.close()
