"""The models of each Python library: a forest, or a tree, of full depth with given parameters.

This file runs in the environments of the peers: it imports one of them at a time, and numpy.
"""

from functools import partial
from importlib import import_module

import numpy as np

# LightGBM's trees are bounded by their leaves, at most 2 ** 17; it allocates room for all of them.
LIGHTGBM_LEAVES = 131_072


def create(library, task, params, shape, n_jobs):
    """Create an unfitted model.

    Parameters
    ----------
    library : str
        A name of the registry.
    task : {"classification", "regression"}
    params : dict
        model ("forest" or "tree"), n_estimators, criterion, max_features (a share, "sqrt" or
        None), max_bins (None: the library's default).
    shape : tuple of int
        Rows and columns of the training table.
    n_jobs : int

    Returns
    -------
    object with fit, predict and, in classification, predict_proba

    Raises
    ------
    Unsupported
        If the library does not have such a model.
    """
    n_features = shape[1]
    candidates = {"sqrt": max(1, int(np.sqrt(n_features))), None: n_features}
    share = params["max_features"]
    n_candidates = candidates.get(share) or max(1, int(share * n_features))
    return _MAKERS[library](task, dict(params), shape, n_candidates, n_jobs)


class Unsupported(Exception):
    """The library has no such model."""


def version_of(library):
    """The installed version of a library."""
    from importlib.metadata import PackageNotFoundError, version

    for name in (library, f"{library}-cpu"):
        try:
            return version(name)
        except PackageNotFoundError:
            pass
    return "unknown"


def _like_sklearn(forests, trees, has_bins, task, params, shape, n_candidates, n_jobs):
    """A model with scikit-learn's class names, from the modules `forests` and `trees`."""
    model, max_bins = params.pop("model"), params.pop("max_bins")
    if max_bins is not None and has_bins:  # scikit-learn's forest stays exact
        params["max_bins"] = max_bins
    kind = "Classifier" if task == "classification" else "Regressor"
    if model == "tree":
        params.pop("n_estimators")
        return getattr(import_module(trees), f"DecisionTree{kind}")(random_state=0, **params)
    Forest = getattr(import_module(forests), f"RandomForest{kind}")
    return Forest(random_state=0, n_jobs=n_jobs, **params)


def _intelex(task, params, shape, n_candidates, n_jobs):
    if params["criterion"] == "entropy":
        raise Unsupported("falls back to scikit-learn for entropy")
    if params["model"] == "tree":
        # A forest with one tree on all rows.
        params |= {"model": "forest", "n_estimators": 1, "bootstrap": False}
    return _like_sklearn(
        "sklearnex.ensemble", None, True, task, params, shape, n_candidates, n_jobs
    )


def _lightgbm(task, params, shape, n_candidates, n_jobs):
    _refuse(params, "entropy", "tree")
    import lightgbm

    Model = lightgbm.LGBMClassifier if task == "classification" else lightgbm.LGBMRegressor
    return Model(
        boosting_type="rf", n_estimators=params["n_estimators"],
        num_leaves=min(LIGHTGBM_LEAVES, shape[0]), min_child_samples=1,
        min_child_weight=0.0, bagging_freq=1, bagging_fraction=0.632,
        feature_fraction_bynode=n_candidates / shape[1], max_bin=params["max_bins"] or 255,
        random_state=0, n_jobs=n_jobs, verbose=-1,
    )  # fmt: skip


def _xgboost(task, params, shape, n_candidates, n_jobs):
    _refuse(params, "entropy", "tree")
    import xgboost

    Model = xgboost.XGBRFClassifier if task == "classification" else xgboost.XGBRFRegressor
    return Model(
        n_estimators=params["n_estimators"], max_depth=0, min_child_weight=0.0, reg_lambda=0.0,
        subsample=0.632, colsample_bynode=n_candidates / shape[1],
        max_bin=params["max_bins"] or 256, tree_method="hist", random_state=0, n_jobs=n_jobs,
    )  # fmt: skip


def _wildwood(task, params, shape, n_candidates, n_jobs):
    _refuse(params, "tree")
    import wildwood

    Model = wildwood.ForestClassifier if task == "classification" else wildwood.ForestRegressor
    return Model(
        n_estimators=params["n_estimators"], max_features=n_candidates, n_jobs=n_jobs,
        max_bins=(params["max_bins"] or 255) + 1, random_state=0,
        criterion={"squared_error": "mse"}.get(params["criterion"], params["criterion"]),
        aggregation=False,
    )  # fmt: skip


def _ydf(task, params, shape, n_candidates, n_jobs):
    _refuse(params, "entropy", "tree")
    if params["max_bins"] is not None:
        raise Unsupported("its bins are a different model")
    return YdfForest(task, params["n_estimators"], n_candidates / shape[1], n_jobs)


class YdfForest:
    """YDF with scikit-learn's methods."""

    def __init__(self, task, n_estimators, share, n_jobs):
        import ydf

        ydf.verbose(0)
        self._task = task
        self._learner = ydf.RandomForestLearner(
            label="y", task=getattr(ydf.Task, task.upper()), num_trees=n_estimators, max_depth=-1,
            min_examples=1, num_candidate_attributes_ratio=share, winner_take_all=False,
            compute_oob_performances=False, num_threads=n_jobs, random_seed=0,
        )  # fmt: skip

    def fit(self, X, y):
        y = y.astype(np.int64) if self._task == "classification" else y.astype(np.float32)
        self._model = self._learner.train({"x": X.astype(np.float32), "y": y})
        return self

    def predict_proba(self, X):
        return self._model.predict({"x": X.astype(np.float32)})

    def predict(self, X):
        said = self.predict_proba(X)
        if self._task == "regression":
            return said
        classes = np.array([int(label) for label in self._model.label_classes()])
        return classes[said.argmax(axis=1) if said.ndim == 2 else (said > 0.5).astype(int)]


def _refuse(params, *what):
    if "entropy" in what and params["criterion"] == "entropy":
        raise Unsupported("has no entropy")
    if "tree" in what and params["model"] == "tree":
        raise Unsupported("has no single trees")


_MAKERS = {
    "cartwood": partial(_like_sklearn, "forest", "cart", True),
    "scikit-learn": partial(_like_sklearn, "sklearn.ensemble", "sklearn.tree", False),
    "scikit-learn-intelex": _intelex,
    "lightgbm": _lightgbm,
    "xgboost": _xgboost,
    "wildwood": _wildwood,
    "ydf": _ydf,
}
