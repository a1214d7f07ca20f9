"""Parameters of another type than they are of are named, before any work."""

import numpy as np
import pytest
from sklearn.datasets import load_iris

import importance
from forest import RandomForestClassifier

X, y = load_iris(return_X_y=True)


@pytest.fixture(scope="module")
def forest():
    return RandomForestClassifier(8, random_state=0).fit(X, y)


COUNTS = {
    "conditional_permutation": "n_neighbors",
    "conditional_test": "n_draws",
    "drop_column": "n_refits",
    "forest_permutation": "n_repeats",
    "oob_permutation": "n_repeats",
    "over_data": "n_subsamples",
    "permutation_test": "n_repeats",
    "select_features": "n_rounds",
    "shadow": "n_rounds",
}


@pytest.mark.parametrize("name", COUNTS)
@pytest.mark.parametrize("value", [2.5, "3", True, np.nan, [1, 2], 0])
def test_counts_are_whole_numbers(name, value, forest):
    with pytest.raises(ValueError, match=f"{COUNTS[name]}=.* must be a whole number of at least"):
        getattr(importance, name)(forest, X, y, **{COUNTS[name]: value})


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("compare", {"correlated": None}),
        ("conditional_permutation", {"threshold": "high"}),
        ("select_features", {"alpha": None}),
        ("forest_permutation", {"metric": "accuracy"}),
        ("over_data", {"measure": "mdi"}),
        ("over_data", {"subsample": "half"}),
        ("over_data", {"subsample": np.nan}),
        ("held_out_permutation", {"training": X}),
        ("held_out_permutation", {"training": (X,)}),
        ("compare", {"callback": 5}),
        ("shadow", {"callback": "print"}),
        ("permutation_test", {"measure": "mdi"}),
        ("shadow", {"measure": "mdi"}),
        ("oob_permutation", {"loss": ["gini"]}),
        ("oob_permutation", {"definition": ["altmann"]}),
        ("oob_permutation", {"groups": True}),
        ("drop_column", {"groups": 3}),
    ],
    ids=str,
)
def test_what_is_of_another_type_is_named(name, params, forest):
    (parameter,) = params
    with pytest.raises((TypeError, ValueError), match=f"^{parameter}="):
        getattr(importance, name)(forest, X, y, **params)


def test_measures_may_be_one_name(forest):
    one = importance.compare(forest, X, y, measures="mdi", without=None)
    assert list(one.results) == ["mdi"]
    assert "mdi" in importance.compare(forest, X, y, measures=["mdi", "drop_column"],
                                       without="drop_column").results  # fmt: skip
