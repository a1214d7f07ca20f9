"""Does an installed Cartwood work? `python -I tests/smoke.py`, in any environment that has it.

Trees and predictions are scikit-learn's, importances find the column that matters, a model file is
read again. With `--compiles-nothing` the kernels that came with the wheel must do for forests.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.ensemble import RandomForestClassifier as PeerClassifier
from sklearn.ensemble import RandomForestRegressor as PeerRegressor

import cartwood


def same_forests(ours, peer, X, y):
    """Fit both; trees and predictions must be one."""
    ours, peer = ours.fit(X, y), peer.fit(X, y)
    for one, other in zip(ours.estimators_, peer.estimators_, strict=True):
        for name in ("children_left", "feature", "threshold"):
            assert np.array_equal(getattr(one.tree_, name), getattr(other.tree_, name)), name
    np.testing.assert_allclose(ours.predict(X), peer.predict(X), rtol=1e-12)
    return ours


def main(compiles_nothing: bool) -> None:
    assert "site-packages" in cartwood.__file__, cartwood.__file__
    X, y = load_breast_cancer(return_X_y=True)
    few = {"n_estimators": 10, "random_state": 0}
    forest = same_forests(cartwood.RandomForestClassifier(**few), PeerClassifier(**few), X, y)
    X_numbers, numbers = load_diabetes(return_X_y=True)
    same_forests(cartwood.RandomForestRegressor(**few), PeerRegressor(**few), X_numbers, numbers)
    if compiles_nothing:
        folders = Path(cartwood.__file__).parents[1], Path.home()
        kept = [path for folder in folders for path in folder.rglob("*.nbc")]
        assert not [path for path in kept if path.parent.name != "kernels"], kept
    with tempfile.TemporaryDirectory() as folder:
        forest.save(Path(folder) / "model")
        assert np.array_equal(cartwood.load(Path(folder) / "model").predict(X), forest.predict(X))
    values = cartwood.oob_permutation(forest, X, y).values
    assert values.argmax() in (7, 20, 22, 23, 27), values  # the sizes and the concave points
    print("works", cartwood.__version__, sys.version.split()[0])


if __name__ == "__main__":
    main("--compiles-nothing" in sys.argv[1:])
