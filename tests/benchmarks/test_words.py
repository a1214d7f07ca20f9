"""The count of false sentences, on one table of every design."""

import pytest

from benchmarks.studies.words import DESIGNS, ask, count
from importance.report.advice import SENTENCES


@pytest.mark.parametrize("name", DESIGNS)
def test_each_sentence_is_asked_and_judged(name):
    asked = ask(name, [*DESIGNS].index(name), 0, [*SENTENCES])
    rows = count([asked])
    assert [row["sentence"] for row in rows] == [*SENTENCES]
    assert all(row["said"] in (0, 1) for row in rows)
    is_misleading = dict.fromkeys(DESIGNS, False) | {"combinations": True}
    assert bool(asked.said["misleads them out of bag"]) == is_misleading[name]
