"""When two forests are the same."""

import numpy as np


def assert_same_forest(one, other):
    """Have the forests the same trees, in every bit of every node array?"""
    assert len(one.estimators_) == len(other.estimators_)
    for a, b in zip(one.estimators_, other.estimators_, strict=True):
        assert a.random_state == b.random_state
        for name in a.tree_.nodes._fields:
            mine, theirs = getattr(a.tree_, name), getattr(b.tree_, name)
            assert mine.dtype == theirs.dtype
            np.testing.assert_array_equal(mine, theirs, err_msg=name)
        mine, theirs = a.tree_.categories, b.tree_.categories
        assert (mine is None) == (theirs is None)
        for one_list, other_list in zip(mine or (), theirs or (), strict=True):
            assert one_list.dtype == other_list.dtype
            np.testing.assert_array_equal(one_list, other_list)
