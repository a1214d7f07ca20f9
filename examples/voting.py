"""Ten trees vote on one row: by count, by mean class share, and weighted by out-of-bag rows."""

import numpy as np
from sklearn.datasets import make_moons

from cartwood import RandomForestClassifier

X, y = make_moons(300, noise=0.35, random_state=0)
X_new, _ = make_moons(2000, noise=0.35, random_state=1)
forests = {
    voting: RandomForestClassifier(10, min_samples_leaf=5, voting=voting, random_state=0).fit(X, y)
    for voting in ("majority", "soft", "oob_weighted_soft")
}
shares = np.array([tree.predict_proba(X_new)[:, 1] for tree in forests["soft"].estimators_])
votes = (shares > 0.5).sum(axis=0)
split = np.flatnonzero((votes == 4) & (shares.mean(axis=0) > 0.5))  # count and mean disagree
row = split[shares[:, split].mean(axis=0).argmax()]
print("tree  share of class 1  vote")
for number, share in enumerate(shares[:, row]):
    print(f"{number:4}  {share:16.3f}  {int(share > 0.5):4}")
print(f"by count: {10 - votes[row]} to {votes[row]} for class 0")
for voting, forest in forests.items():
    print(f"voting={voting!r}: {forest.predict_proba(X_new[[row]]).round(3)[0]}")
