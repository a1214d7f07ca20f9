"""A normal session warns of nothing, with every warning an error and Python's checks on."""

import subprocess
import sys
from pathlib import Path

import pytest

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


LONGER = """
import gc
import tempfile
from pathlib import Path

import joblib
import matplotlib
import numpy as np
import pandas as pd

matplotlib.use("Agg")

import cart
import forest
import importance
from cartwood.__main__ import main

random = np.random.default_rng(0)
X = random.normal(size=(200, 4))
numbers = X[:, 0] + X[:, 1] ** 2 + random.normal(size=200)
frame = pd.DataFrame(X, columns=list("abcd")).assign(
    city=pd.Categorical(np.where(X[:, 2] > 0, "Oslo", "Rome"))
)
options = {"categorical_features": ["city"], "random_state": 0}
with tempfile.TemporaryDirectory() as folder:
    folder = Path(folder)
    for model, y in (
        (cart.DecisionTreeRegressor(**options), numbers),
        (forest.RandomForestClassifier(40, n_jobs=2, oob_score=True, **options), numbers > 0.5),
    ):
        model.fit(frame, y)
        for mmap in (True, False):
            model.save(folder / "model")
            again = forest.load(folder / "model", mmap=mmap)
            assert (again.predict(frame) == model.predict(frame)).all()
            del again
        joblib.dump(model, folder / "pickle")
        assert (joblib.load(folder / "pickle").predict(frame) == model.predict(frame)).all()
    tree = cart.DecisionTreeRegressor(**options).fit(frame, numbers)
    pruned = cart.cv_prune(cart.DecisionTreeRegressor(random_state=0), X, numbers)
    cart.plot_cp(pruned), cart.plot_tree(tree), cart.export_graphviz(tree, str(folder / "tree.dot"))
    cart.explain_path(tree, frame[:1]), cart.summary(tree)
    y = numbers > 0.5
    model.predict_proba(frame), forest.proximity(model, frame[:5])
    measures = [
        importance.mdi(model), importance.unbiased_mdi(model, frame, y),
        importance.oob_permutation(model, frame, y), importance.drop_column(model, frame, y),
        importance.conditional_permutation(model, frame, y),
        importance.forest_permutation(model, frame, y),
    ]
    for measure in measures:
        measure.plot(), measure.to_frame(), repr(measure), measure.interval()
    explained = importance.shap_values(model, frame)
    explained.plot()
    found = importance.compare(model, frame, y)
    found.plot(), repr(found)
    frame.assign(price=numbers).to_csv(folder / "houses.csv", index=False)
    for words in (
        "fit houses.csv --target price --trees 30 --save houses.model",
        "predict houses.model houses.csv --output out.csv",
        "show houses.model --depth 2",
        "show houses.model --output tree.svg",
        "importance houses.csv --target price --trees 30 --shap --output page.html",
        "compare houses.csv --target price --trees 30 --output page.html",
    ):
        words = [folder / word if "." in word else word for word in words.split()]
        assert main([str(word) for word in words]) == 0, words
matplotlib.pyplot.close("all")
gc.collect()  # files and sockets that were left open warn now
"""


@pytest.mark.parametrize("session", [SESSION, LONGER], ids=["models", "work with them"])
def test_a_normal_session_warns_of_nothing(session):
    command = [sys.executable, "-X", "dev", "-W", "error", "-c", session]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert "Warning" not in ran.stderr, ran.stderr
