"""What a user writes: estimators, importances and their results, with types throughout."""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

import forest
from cartwood import (
    DecisionTreeRegressor,
    Importances,
    RandomForestClassifier,
    RandomForestRegressor,
    Significance,
    mdi,
    oob_permutation,
    permutation_test,
    shap_values,
)


def make_table(n: int, seed: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, X[:, 0] + 0.5 * X[:, 1] + rng.normal(size=n)


def leading(found: Importances, n: int = 2) -> list[str]:
    order: NDArray[np.intp] = np.argsort(-found.values)
    return [str(found.feature_names[j]) for j in order[:n]]


def main() -> None:
    X, y = make_table(100, seed=0)
    tree = DecisionTreeRegressor(max_depth=3, random_state=0).fit(X, y)
    model = RandomForestRegressor(20, oob_score=True, random_state=0).fit(X, y)
    classes = RandomForestClassifier(20, random_state=0).fit(X, y > 0.0)
    found: Importances = oob_permutation(model, X, y)
    interval: NDArray[np.float64] = found.interval(0.95)
    tested: Significance = permutation_test(model, X, y, n_repeats=9, random_state=0)
    shares: NDArray[np.float64] = classes.predict_proba(X)
    explained: NDArray[np.float64] = shap_values(model, X[:5]).values
    print(leading(found), leading(mdi(model)), interval.shape, tested.p_values.min() <= 0.1)
    print(tree.get_depth(), model.oob_score_ > 0.3, shares.shape, explained.shape)
    with TemporaryDirectory() as folder:
        model.save(Path(folder) / "model")
        again = forest.load(Path(folder) / "model")
        print(bool((again.predict(X) == model.predict(X)).all()))


if __name__ == "__main__":
    main()
