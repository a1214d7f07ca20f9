"""A normal session warns of nothing, with every warning an error and Python's checks on."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SESSION = """
import gc
import pickle

import numpy as np

import cart
import forest
import importance
from forest.interop.bridge import from_sklearn, to_sklearn

random = np.random.default_rng(0)
X = random.normal(size=(200, 5))
numbers = X[:, 0] + random.normal(size=200)
classes = numbers > 0.0
for model, y in (
    (cart.DecisionTreeClassifier(random_state=0), classes),
    (cart.DecisionTreeRegressor(random_state=0, ccp_alpha=0.01), numbers),
    (cart.ExtraTreeClassifier(random_state=0), classes),
    (cart.ExtraTreeRegressor(random_state=0), numbers),
    (forest.RandomForestClassifier(30, oob_score=True, n_jobs=2, random_state=0), classes),
    (forest.RandomForestRegressor(30, oob_score=True, random_state=0), numbers),
    (forest.ExtraTreesClassifier(5, random_state=0), classes),
    (forest.ExtraTreesRegressor(5, random_state=0), numbers),
    (forest.BaggingClassifier(n_estimators=30, oob_score=True, random_state=0), classes),
    (forest.BaggingRegressor(n_estimators=5, random_state=0), numbers),
):
    model.fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    assert (again.predict(X) == model.predict(X)).all()
    model.score(X, y)
    if not hasattr(model, "bootstrap_features"):
        model.feature_importances_, model.apply(X), model.decision_path(X)
        from_sklearn(to_sklearn(model)).predict(X)
    if isinstance(model, forest.RandomForestClassifier):
        model.out_of_bag(X, y)
        importance.mdi(model), importance.oob_permutation(model, X, y)
        importance.unbiased_mdi(model, X, y)
    if isinstance(model, forest.RandomForestRegressor):
        model.predict_quantiles(X, [0.1, 0.9]), model.predict_interval(X)
print(cart.export_text(cart.DecisionTreeClassifier(max_depth=1).fit(X, classes)))
gc.collect()  # files and sockets that were left open warn now
"""


def test_a_normal_session_warns_of_nothing():
    command = [sys.executable, "-X", "dev", "-W", "error", "-c", SESSION]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert "Warning" not in ran.stderr, ran.stderr
