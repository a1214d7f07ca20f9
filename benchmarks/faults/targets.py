"""Kernels compiled for x86-64-v2 and v3 must give the same trees as those for this CPU."""

import hashlib
import os
import platform
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import scipy.sparse

import cart
import forest
from benchmarks.harness import display
from importance import oob_permutation, shap_values, unbiased_mdi

# v2 has neither AVX nor FMA, v3 has both; neither has AVX-512.
TARGETS = {
    "this CPU": {},
    "x86-64-v2": {"NUMBA_CPU_NAME": "x86-64-v2", "NUMBA_CPU_FEATURES": ""},
    "x86-64-v3": {"NUMBA_CPU_NAME": "x86-64-v3", "NUMBA_CPU_FEATURES": ""},
}
N_ROWS = 700


def run(args):
    """Fit every model once per target; 1 if any model differs in a byte.

    Kernels of the other targets are compiled anew, in a folder that is deleted at the end.
    """
    if platform.machine() not in ("x86_64", "AMD64"):
        print(f"The targets need x86-64; this machine is {platform.machine()}.")
        return 0
    names = [name for name in MODELS if args.only in name][: 2 if args.quick else None]
    with tempfile.TemporaryDirectory() as folder:
        found = {name: digests(target, folder, names) for name, target in TARGETS.items()}
    ours = found["this CPU"]
    rows = [
        [name, *("same" if found[target][name] == ours[name] else "other" for target in TARGETS)]
        for name in ours
    ]
    display.show(display.Table("Models by what their kernels are for", ["", *TARGETS], rows))
    return int(any("other" in row for row in rows))


def digests(target, folder, names):
    """Digests of models that are fitted in a process whose kernels are compiled for a target.

    Parameters
    ----------
    target : dict
        Environment variables that select it; with none, the user's own kernels are used.
    folder : str
        Where kernels are cached.
    names : list of str
        Keys of MODELS.

    Returns
    -------
    dict of str
    """
    own = target | {"NUMBA_CACHE_DIR": folder} if target else {}
    program = [sys.executable, "-m", "benchmarks.faults.targets", *names]
    done = subprocess.run(program, env=os.environ | own, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    return dict(line.rsplit("\t", 1) for line in done.stdout.splitlines())


# ---------------------------------------------------------------------- models and their digests


def _tables():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS, 6))
    X[:, 4:] = rng.integers(0, 4, (N_ROWS, 2))
    y = X[:, 0] + X[:, 1] ** 2 + 0.3 * X[:, 4] + rng.normal(size=N_ROWS)
    return rng, X, y


def _fit(kind, classes=None, holes=0.0, has_weights=False, is_sparse=False, **params):
    """Return a function that fits a model to a table."""

    def fit():
        rng, X, y = _tables()
        X = np.where(rng.random(X.shape) < holes, np.nan, X)
        X = scipy.sparse.csc_matrix(np.where(X > 0, X, 0)) if is_sparse else X
        y = (
            y
            if classes is None
            else np.digitize(y, np.quantile(y, np.arange(1, classes) / classes))
        )
        y = np.exp(y / 4) if params.get("criterion") == "poisson" else y
        weight = rng.random(N_ROWS) * 3 if has_weights else None
        return kind(random_state=0, **params).fit(X, y, sample_weight=weight), X, y

    return fit


_TREE, _NUMBER_TREE = cart.DecisionTreeClassifier, cart.DecisionTreeRegressor
_FOREST, _NUMBER_FOREST = forest.RandomForestClassifier, forest.RandomForestRegressor
MODELS = {
    "forest, Gini, 2 classes": _fit(_FOREST, 2, n_estimators=20, oob_score=True),
    "forest, squared error": _fit(_NUMBER_FOREST, n_estimators=20, max_features=0.5),
    "forest, entropy, 4 classes": _fit(_FOREST, 4, n_estimators=20, criterion="entropy"),
    "forest, Gini, weights": _fit(_FOREST, 3, n_estimators=10, has_weights=True),
    "forest, squared error, weights": _fit(_NUMBER_FOREST, n_estimators=10, has_weights=True),
    "forest, missing values": _fit(_FOREST, 2, n_estimators=10, holes=0.2),
    "forest, numbers, missing values": _fit(_NUMBER_FOREST, n_estimators=10, holes=0.2),
    "extra trees, 3 classes": _fit(forest.ExtraTreesClassifier, 3, n_estimators=10),
    "extra trees, numbers": _fit(forest.ExtraTreesRegressor, n_estimators=10),
    "tree, entropy, best first": _fit(_TREE, 3, criterion="entropy", max_leaf_nodes=60),
    "tree, absolute error": _fit(_NUMBER_TREE, criterion="absolute_error"),
    "tree, Poisson": _fit(_NUMBER_TREE, criterion="poisson"),
    "tree, monotonic": _fit(_NUMBER_TREE, monotonic_cst=[1, 0, 0, 0, 1, 0]),
    "tree, sparse": _fit(_TREE, 3, is_sparse=True),
    "tree, cost complexity": _fit(_NUMBER_TREE, ccp_alpha=0.01),
}


def digest(model, X, y):
    """A digest of everything that a model holds and computes."""
    arrays = []
    trees = getattr(model, "estimators_", [model])
    for tree in trees:
        arrays += [*tree.tree_.nodes, tree.feature_importances_]
    arrays.append(model.predict_proba(X) if hasattr(model, "classes_") else model.predict(X))
    if getattr(model, "oob_score", False):
        arrays += [model.oob_decision_function_, unbiased_mdi(model, X, y).values]
        arrays += [oob_permutation(model, X, y).values, shap_values(model, X[:50]).values]
    total = hashlib.sha256()
    for array in arrays:
        total.update(np.ascontiguousarray(array).tobytes())
    return total.hexdigest()


def main():
    """Print the digests of some models, one line each."""
    warnings.simplefilter("ignore")
    for name in sys.argv[1:]:
        print(name, digest(*MODELS[name]()), sep="\t", flush=True)


if __name__ == "__main__":
    main()
