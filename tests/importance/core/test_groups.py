"""Groups of columns: as they are given, and as they are found."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csc_matrix, csr_matrix
from scipy.stats import rankdata, spearmanr
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import OneHotEncoder

from forest import RandomForestRegressor
from importance import correlation_groups, drop_column, one_hot_groups
from importance.core.groups import parse_groups
from importance.report.find_groups import rank_correlation

NAMES = np.array(["a", "b", "c", "d"], dtype=object)
seeds = st.integers(0, 500)


def as_lists(groups):
    return [(group.name, group.columns.tolist()) for group in groups]


# ---------------------------------------------------------------------------- given by the user


def test_every_column_is_in_one_group():
    alone = [("a", [0]), ("b", [1]), ("c", [2]), ("d", [3])]
    assert as_lists(parse_groups(None, NAMES)) == alone
    assert as_lists(parse_groups({}, NAMES)) == alone
    assert as_lists(parse_groups({"g": ["d", 0]}, NAMES)) == [("g", [0, 3]), *alone[1:3]]
    assert as_lists(parse_groups([["c", "a"], [-1]], NAMES)) == [
        ("a + c", [0, 2]),
        ("d", [3]),
        ("b", [1]),
    ]
    assert as_lists(parse_groups(np.array([["a", "b"], ["c", "d"]]), NAMES)) == [
        ("a + b", [0, 1]),
        ("c + d", [2, 3]),
    ]
    assert as_lists(parse_groups({"g": "b"}, NAMES)) == [("g", [1]), alone[0], *alone[2:]]
    assert as_lists(parse_groups(None, ["a", "a"])) == [("a", [0]), ("a", [1])]


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ({"g": [0, 1], "h": ["b"]}, "'b' is in 'g' and 'h'"),
        ({"g": []}, "empty"),
        ({"g": ["e"]}, "'e' is not among the names"),
        ({"g": [4]}, "Column 4"),
        ({"g": [True]}, "True"),
        ({"a": [1, 2]}, "called 'a'"),
    ],
)
def test_groups_are_refused(groups, message):
    with pytest.raises(ValueError, match=message):
        parse_groups(groups, NAMES)


def test_what_names_no_columns_is_refused():
    with pytest.raises(TypeError, match="None is not a list of columns"):
        parse_groups({"g": None}, NAMES)


# ------------------------------------------------------------------------- found by correlation


@given(seeds)
def test_rank_correlation_is_spearmans(seed):
    rng = np.random.RandomState(seed)
    X = np.round(rng.normal(size=(30, 4)) @ rng.normal(size=(4, 4)), 1)
    np.testing.assert_allclose(rank_correlation(X), spearmanr(X).statistic, atol=1e-12)
    X[rng.uniform(size=X.shape) < 0.3] = np.nan
    found = rank_correlation(X)
    for i in range(4):
        for j in range(4):
            both = ~np.isnan(X[:, i]) & ~np.isnan(X[:, j])
            a, b = (rankdata(X[:, k], nan_policy="omit")[both] for k in (i, j))
            expected = np.corrcoef(a, b)[0, 1] if a.std() * b.std() > 1e-9 else float(i == j)
            assert found[i, j] == pytest.approx(expected, abs=1e-9)


@given(seeds, st.floats(0.05, 1.0))
def test_all_pairs_of_a_group_reach_the_threshold(seed, threshold):
    rng = np.random.RandomState(seed)
    X = rng.normal(size=(40, 3)) @ rng.normal(size=(3, 8)) + 0.3 * rng.normal(size=(40, 8))
    X[:, 7] = -np.exp(X[:, 6])  # the same ranks backwards
    groups = list(correlation_groups(X, threshold).values())
    rho = np.abs(spearmanr(X).statistic)
    for group in groups:
        assert rho[np.ix_(group, group)].min() >= threshold - 1e-8
    for i, group in enumerate(groups):  # no two of them could be one
        for other in groups[i + 1 :]:
            assert rho[np.ix_(group, other)].min() < threshold + 1e-8
    members = [j for group in groups for j in group]
    assert len(members) == len(set(members))
    assert any({6, 7} <= set(group) for group in groups)
    assert [group[0] for group in groups] == sorted(group[0] for group in groups)


def test_a_chain_of_columns_by_method():
    """The ends of a chain are alike only by way of its middle."""
    rng = np.random.RandomState(0)
    a, b = rng.normal(size=(2, 2000))
    X = np.column_stack((a, a + b, b))
    assert correlation_groups(X, 0.6, method="single") == {"x0 + x1 + x2": [0, 1, 2]}
    assert len(correlation_groups(X, 0.6)) == 1
    assert all(len(group) == 2 for group in correlation_groups(X, 0.6).values())


def test_columns_that_correlate_with_none():
    """Constant columns, categories, columns without a value; missing values do not matter."""
    rng = np.random.RandomState(0)
    a = rng.normal(size=100)
    frame = pd.DataFrame(
        {
            "a": a,
            "constant": 1.0,
            "colour": pd.Categorical(rng.choice(["red", "blue"], 100)),
            "b": np.where(rng.uniform(size=100) < 0.5, np.nan, a**3),
            "none": np.nan,
            "apart": rng.normal(size=100),
            "whole": pd.array(np.where(a > 2, None, np.round(10 * a)), dtype="Int64"),
        }
    )
    assert correlation_groups(frame) == {"a + b + whole": ["a", "b", "whole"]}
    assert correlation_groups(frame[["colour"]]) == {}
    # Missing together says nothing of the values.
    halves = np.column_stack((a, rng.normal(size=100)))
    halves[50:] = np.nan
    assert correlation_groups(halves) == {}


def test_long_names_of_groups_are_cut():
    frame = load_breast_cancer(as_frame=True).data
    groups = correlation_groups(frame, 0.9)
    name = "mean radius + mean perimeter + mean area + 3 more"
    assert next(iter(groups)) == name
    assert len(groups[name]) == 6
    numbers = correlation_groups(frame.to_numpy(), 0.9)
    assert "x0 + x2 + x3 + 3 more" in numbers
    for found in (parse_groups(groups, frame.columns), parse_groups(numbers, frame.columns)):
        assert sorted(j for group in found for j in group.columns) == list(range(30))


def test_text_in_an_array_is_in_no_group():
    """As in a DataFrame; numbers in an array of objects are numbers."""
    x = np.random.default_rng(0).random(20)
    for kind in (object, str):
        X = np.column_stack([x.astype(kind), np.tile(["red", "blue"], 10), x.astype(kind)])
        assert correlation_groups(X.astype(kind)) == {"x0 + x2": [0, 2]}
        blocks = np.column_stack([np.eye(2)[np.arange(20) % 2].astype(kind), X[:, 1]])
        assert one_hot_groups(blocks) == {"x0 + x1": [0, 1]}


def test_correlations_are_refused():
    X = np.eye(4)
    for args, params, message in (
        ((csr_matrix(X),), {}, "toarray"),
        ((X, 0.0), {}, "threshold"),
        ((X, 1.5), {}, "threshold"),
        ((X,), {"method": "ward"}, "ward"),
        ((X[0],), {}, "2D"),
    ):
        with pytest.raises(ValueError, match=message):
            correlation_groups(*args, **params)


# ---------------------------------------------------------------------------- found as a block


def make_frame(n=60):
    rng = np.random.RandomState(0)
    return pd.DataFrame(
        {
            "size": rng.normal(size=n),
            "member": rng.randint(2, size=n),
            "colour": rng.choice(["red", "rose", "blue"], n),
            "shoe_type": rng.choice(["high_heel", "high_top"], n),
            "old": rng.randint(2, size=n),
        }
    )


def test_blocks_that_pandas_makes():
    frame = make_frame()
    columns = ["colour", "shoe_type"]
    expected = {
        "colour": ["colour_blue", "colour_red", "colour_rose"],
        "shoe_type_high": ["shoe_type_high_heel", "shoe_type_high_top"],
    }
    coded = pd.get_dummies(frame, columns=columns)
    assert one_hot_groups(coded) == expected
    assert one_hot_groups(coded[coded.columns[::-1]]) == {
        name: block[::-1] for name, block in reversed(expected.items())
    }
    dropped = pd.get_dummies(frame, columns=columns, drop_first=True)
    assert one_hot_groups(dropped) == {}
    frame.loc[3, "colour"] = None
    assert list(one_hot_groups(pd.get_dummies(frame, columns=columns))) == ["shoe_type_high"]


@pytest.mark.parametrize("kind", [csr_matrix, csc_matrix, np.asarray])
def test_blocks_that_scikit_learn_makes(kind):
    coded = OneHotEncoder(sparse_output=False).fit_transform(make_frame()[["colour", "shoe_type"]])
    X = np.column_stack(
        (make_frame()[["size", "member"]], coded[:, :3], np.zeros(60), coded[:, 3:])
    )
    assert one_hot_groups(kind(X)) == {"x2 + x3 + x4": [2, 3, 4], "x6 + x7": [6, 7]}


def test_what_is_not_a_block():
    for X in (
        [[1, 0], [0, 2]],  # not 0/1
        [[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, -1], [2, -1, 0]],  # nor here, but adds up to 1
        [[1, 0], [0, 1], [0, 0]],  # a row without
        [[1, 0], [1, 1], [0, 1]],  # a row with two
        [[1.0, 0.0], [0.0, np.nan]],
        [[1, 0], [1, 0]],  # constant: one category
        [[1, 1], [0, 0]],  # as many ones as rows, in the wrong places
    ):
        assert one_hot_groups(X) == {}
        if not np.isnan(X).any():
            assert one_hot_groups(csr_matrix(X)) == {}


@given(seeds)
def test_blocks_add_up_to_one(seed):
    rng = np.random.RandomState(seed)
    n = 25
    blocks = [np.eye(k)[rng.permutation(np.arange(n) % k)] for k in rng.randint(2, 5, size=3)]
    between = [rng.randint(2, size=(n, rng.randint(3))) for _ in blocks]
    X = np.column_stack([part for pair in zip(between, blocks, strict=True) for part in pair])
    groups = list(one_hot_groups(X).values())
    covered = {j for group in groups for j in group}
    for group in groups:
        assert (X[:, group].sum(axis=1) == 1).all()
        assert len(group) > 1
    start = 0
    for left, block in zip(between, blocks, strict=True):
        mine = set(range(start + left.shape[1], start + left.shape[1] + block.shape[1]))
        start += left.shape[1] + block.shape[1]
        # A block may be hidden only by one that took some of its columns.
        assert any(set(group) == mine for group in groups) or covered & mine
    assert one_hot_groups(csr_matrix(X)) == one_hot_groups(X)


def test_names_of_blocks_are_unique():
    frame = pd.DataFrame({"a_x": [1, 0], "a_y": [0, 1], "a": [3, 4], "b": [1, 0], "c": [0, 1]})
    assert one_hot_groups(frame) == {"a_x + a_y": ["a_x", "a_y"], "b + c": ["b", "c"]}


def test_a_block_is_worth_more_than_its_columns():
    """Without one of its columns nothing is lost: the others tell it."""
    rng = np.random.RandomState(0)
    colour = rng.randint(3, size=300)
    coded = pd.get_dummies(
        pd.DataFrame({"noise": rng.normal(size=300), "colour": colour.astype(str)})
    )
    y = colour + 0.1 * rng.normal(size=300)
    forest = RandomForestRegressor(20, random_state=0).fit(coded, y)
    one_by_one = drop_column(forest, coded, y)
    together = drop_column(forest, coded, y, groups=one_hot_groups(coded))
    assert list(together.feature_names) == ["colour", "noise"]
    assert together.values[0] > 0.5
    assert np.abs(one_by_one.values[1:]).max() < 0.05
