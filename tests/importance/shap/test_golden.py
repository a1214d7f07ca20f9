"""SHAP values that were stored: a later version must not say otherwise.

To make them again: python -m tests.importance.shap.test_golden
"""

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris

from forest import RandomForestClassifier, RandomForestRegressor
from importance import shap_values

STORED = Path(__file__).resolve().parents[2] / "golden" / "shap_values.json"
DATA = {
    "iris": (load_iris, RandomForestClassifier),
    "breast_cancer": (load_breast_cancer, RandomForestClassifier),
    "diabetes": (load_diabetes, RandomForestRegressor),
}
ROWS = slice(0, None, 60)  # that are stored
KINDS = ("path_dependent", "out_of_bag", "interventional")


def computed(name):
    load, kind = DATA[name]
    X, y = load(return_X_y=True)
    model = kind(20, max_depth=6, random_state=0).fit(X, y)
    found = (
        shap_values(model, X),
        shap_values(model, X, out_of_bag=True),
        shap_values(model, X[ROWS], background=X[5:15]),
    )
    values = found[0].values[ROWS], found[1].values[ROWS], found[2].values
    return dict(zip(KINDS, values, strict=True))


@pytest.mark.parametrize("name", DATA)
def test_values_are_those_that_were_stored(name):
    stored = json.loads(STORED.read_text())[name]
    for kind, values in computed(name).items():
        expected = np.array(stored[kind], dtype=np.float64)
        np.testing.assert_allclose(values, expected, atol=1e-9 * np.nanmax(np.abs(expected)))


if __name__ == "__main__":
    content = {
        name: {kind: np.round(of, 14).tolist() for kind, of in computed(name).items()}
        for name in DATA
    }
    STORED.write_text(json.dumps(content).replace("}, ", "},\n") + "\n")
