"""Pruning by cross-validation, and the effect of losses: the pictures of docs/the-book.md."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import confusion_matrix
from sklearn.model_selection import cross_val_predict

from cartwood import DecisionTreeClassifier, PrunedTreeClassifier, cv_prune, plot_cp, plot_tree

X, y = load_breast_cancer(as_frame=True, return_X_y=True)
y = y.map({0: "malignant", 1: "benign"})
whole = DecisionTreeClassifier(min_samples_split=5, random_state=0)
pruned = cv_prune(whole, X, y, random_state=0)

figure, axes = plt.subplots(figsize=(6.5, 4.0), layout="constrained")
plot_cp(pruned, axes)
figure.savefig("the_book_cp.png", dpi=110)

figure, axes = plt.subplots(figsize=(7.5, 4.0), layout="constrained")
plot_tree(
    pruned, feature_names=X.columns, class_names=pruned.classes_, filled=True, impurity=False,
    rounded=True, fontsize=8, ax=axes,
)  # fmt: skip
figure.savefig("the_book_tree.png", dpi=110)

# Rows of a loss are the true classes, columns the predicted ones: benign, malignant.
dear = np.array([1, 2, 5, 10, 20, 50])
missed, alarms = [], []
for times in dear:
    tree = PrunedTreeClassifier(
        loss=[[0, 1], [times, 0]], rule="min", min_samples_split=5, random_state=0
    )
    table = confusion_matrix(y, cross_val_predict(tree, X, y, cv=10))
    missed.append(table[1, 0])
    alarms.append(table[0, 1])
    print(f"loss {times:2d}: {missed[-1]} malignant missed, {alarms[-1]} false alarms")
figure, axes = plt.subplots(figsize=(6.0, 3.4), layout="constrained")
axes.plot(dear, missed, "o-", label="malignant, taken for benign")
axes.plot(dear, alarms, "o-", label="benign, taken for malignant")
axes.set(xscale="log", xlabel="loss of a malignant one that is missed", ylabel="held-out rows")
axes.set_xticks(dear, [str(times) for times in dear])
axes.minorticks_off()
axes.set_ylim(bottom=0)
axes.legend(frameon=False)
figure.savefig("the_book_losses.png", dpi=110)
