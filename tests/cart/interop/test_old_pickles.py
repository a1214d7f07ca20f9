"""Pickles of earlier versions load, and predict what they did (see `tests.golden.make_pickles`)."""

import pickle

import numpy as np
import pytest

from forest.inference.training_rows import is_of_one_table
from tests.golden.make_pickles import CASES, FOLDER, outputs


@pytest.mark.parametrize("name", sorted(CASES))
def test_pickles_of_earlier_versions_predict_the_same(name):
    kind, table = CASES[name]
    model = pickle.loads((FOLDER / f"{name}.pkl").read_bytes())
    assert type(model) is type(kind)
    X, y = table()
    with np.load(FOLDER / "predictions.npz") as predicted:
        # Of our trees to the bit; products of matrices are as the machine rounds them.
        rtol = 1e-12 if name in ("bagging_classifier", "random_forest_stacked") else 0.0
        np.testing.assert_allclose(outputs(model, X), predicted[name], rtol=rtol)
    if hasattr(model, "estimators_samples_"):
        fresh = model.__class__(**model.get_params(deep=False)).fit(X, y)
        for rows, expected in zip(
            fresh.estimators_samples_, model.estimators_samples_, strict=True
        ):
            np.testing.assert_array_equal(rows, expected)
    if name == "random_forest_regressor":
        fresh = model.__class__(**model.get_params()).fit(X, y)
        shares = [0.1, 0.5]
        np.testing.assert_array_equal(
            model.predict_quantiles(X, shares), fresh.predict_quantiles(X, shares)
        )


def test_a_forest_of_an_earlier_version_knows_its_table():
    X, y = CASES["random_forest_regressor"][1]()
    pickled = (FOLDER / "random_forest_regressor.pkl").read_bytes()
    pickle.loads(pickled).keep_leaves(X, y)
    changed = y.copy()
    changed[0] += 1.0
    with pytest.raises(ValueError, match="not grown on this table"):
        pickle.loads(pickled).keep_leaves(X, changed)
    for target, is_one in ((y, True), (changed, False)):
        model = pickle.loads(pickled).set_params(warm_start=True)
        model.set_params(n_estimators=model.n_estimators + 1).fit(X, target)
        assert is_of_one_table(model) is is_one
