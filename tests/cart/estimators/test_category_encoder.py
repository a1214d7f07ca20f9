"""Categories as numbers: frames, whose distinct values alone are looked at, against arrays."""

import numpy as np
import pytest

from cart.estimators.category_encoder import UNSEEN, CategoryEncoder

pd = pytest.importorskip("pandas", reason="categorical columns of DataFrames")


@pytest.mark.parametrize("keeps_missing", [False, True])
def test_frames_have_the_numbers_of_their_values(keeps_missing):
    """Columns of one, few and many categories, with missing values, without, with nothing else, and
    categories that come later or have no row."""
    rng = np.random.default_rng(0)
    n = 200
    texts = rng.choice(["b", "a", None, "c"], n)
    frame = pd.DataFrame({
        "text": texts, "number": rng.normal(size=n), "whole": rng.integers(0, 90, n),
        "one": "x", "none": pd.Series([None] * n, dtype=object),
        "category": pd.Categorical(rng.choice(list("zyx"), n), categories=list("wzyx")),
        "gaps": pd.Categorical(rng.choice(["z", None, "x"], n), categories=list("wzyx")),
        "nullable": pd.array(rng.choice([3, 1, None], n), dtype="Int64"),
    })  # fmt: skip
    mask = np.array([name != "number" for name in frame])
    of_frame, of_array = CategoryEncoder(mask), CategoryEncoder(mask)
    values = frame.astype(object).where(frame.notna(), np.nan).to_numpy()
    train, rest = frame[:100], frame[100:].assign(text="new", one=[None, *["x"] * 99])
    np.testing.assert_array_equal(of_frame.fit(train), of_array.fit(values[:100]))
    for found, expected in zip(of_frame.categories, of_array.categories, strict=True):
        np.testing.assert_array_equal(found, expected)
    values = rest.astype(object).where(rest.notna(), np.nan).to_numpy()
    found = of_frame.transform(rest, keeps_missing)
    np.testing.assert_array_equal(found, of_array.transform(values, keeps_missing))
    assert (found[:, 0] == UNSEEN).all()
    assert np.isnan(found[0, 3]) == keeps_missing


def test_numbers_that_are_categories_come_in_any_container():
    """Learnt from a frame and looked up in an array, whose dtype is another, and the other way; inf
    is a category, too."""
    rng = np.random.default_rng(0)
    values = rng.choice([0.0, 1.0, np.inf, np.nan], (30, 2))
    values[:, 1] = 0.0
    containers = values, values.astype(object), pd.DataFrame(values)
    for learnt in containers:
        encoder = CategoryEncoder(np.array([True, False]))
        expected = encoder.fit(learnt)
        for asked in containers:
            np.testing.assert_array_equal(encoder.transform(asked), expected)
