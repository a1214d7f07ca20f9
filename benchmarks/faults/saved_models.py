"""The models that are damaged, their tables, and the questions to a loaded one."""

import pickle
import warnings
from pathlib import Path

import numpy as np

import cart
import forest
from importance import mdi, oob_permutation

N_ROWS = 60
_RNG = np.random.default_rng(0)
_NUMBERS = _RNG.normal(size=(N_ROWS, 4)).round(1)
_LABELS = np.where(
    _NUMBERS[:, 0] + _NUMBERS[:, 1] > 0, "yes", np.where(_NUMBERS[:, 2] > 0, "no", "?")
)
_GAPS = np.where(_RNG.random((N_ROWS, 4)) < 0.1, np.nan, _NUMBERS)
_CODES = np.column_stack((np.floor(_NUMBERS[:, 0] * 2), _GAPS[:, 1:]))
_TARGET = _NUMBERS[:, 0] ** 2 + _NUMBERS[:, 1]
_PAIR = np.column_stack((_LABELS == "yes", _LABELS == "no")).astype(int)
# By name: the model, X and y of a fit.
MODELS = {
    "tree": (cart.DecisionTreeClassifier(), _NUMBERS, _LABELS),
    "best first": (cart.DecisionTreeRegressor(max_leaf_nodes=9), _GAPS, _TARGET),
    "categories": (cart.DecisionTreeClassifier(categorical_features=[0]), _CODES, _LABELS),
    "outputs": (cart.DecisionTreeClassifier(precision="float64"), _NUMBERS, _PAIR),
    "forest": (forest.RandomForestClassifier(5, oob_score=True), _GAPS, _LABELS),
    "quantiles": (forest.RandomForestRegressor(5, max_depth=4), _NUMBERS, _TARGET),
    "stratified": (
        forest.RandomForestClassifier(4, stratify=True, voting="oob_weighted"), _NUMBERS, _LABELS),
    "extra trees": (forest.ExtraTreesRegressor(4), _NUMBERS, np.round(_TARGET)),
    "bagging": (forest.BaggingClassifier(n_estimators=3, max_features=0.5), _NUMBERS, _LABELS),
}  # fmt: skip


def save_models(folder: Path) -> None:
    """Fit the models, and save each as a model file and as a pickle."""
    for name, (model, X, y) in MODELS.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = model.set_params(random_state=0).fit(X, y)
        if name == "quantiles":
            model.keep_leaves()
        model.save(folder / f"{name}.file")
        (folder / f"{name}.pickle").write_bytes(pickle.dumps(model, protocol=5))


def predictions_of(model, X):
    """Predictions of a model as one array."""
    said = model.predict_proba(X) if hasattr(model, "predict_proba") else model.predict(X)
    return np.hstack(said) if isinstance(said, list) else np.asarray(said)


def ask_everything(model, X, y):
    """Make a model use all that it holds; Python exceptions are ignored."""
    models = [model, *getattr(model, "estimators_", ())]
    trees = [each for each in models if hasattr(each, "tree_")]
    questions = [
        lambda: model.predict(X), lambda: model.apply(X), lambda: model.decision_path(X[:3]),
        lambda: model.feature_importances_, lambda: model.out_of_bag(X, y),
        lambda: model.predict_quantiles(X, [0.1, 0.5]),
        lambda: model.predict_quantiles(X, 0.5, in_bag=True), lambda: model.estimators_samples_,
        lambda: mdi(model), lambda: oob_permutation(model, X, y),
        lambda: [tree.tree_.predict(X.astype(np.float32)) for tree in trees],
        lambda: [tree.get_depth() for tree in trees],
        lambda: pickle.loads(pickle.dumps(model)),
    ]  # fmt: skip
    for question in questions:
        try:
            question()
        except Exception:
            continue
