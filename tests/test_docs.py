"""The documents name what there is: files, commands, tests."""

import os
import re
import shutil
import subprocess
import sys
from itertools import count
from pathlib import Path

import pytest

from benchmarks.__main__ import COMMANDS

ROOT = Path(__file__).resolve().parents[1]
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / ".github").rglob("*.md")]
EACH_PAGE = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
DECISIONS = ROOT / "docs" / "decisions"


def prose(page):
    """A page's text without blocks of code."""
    return re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)


@EACH_PAGE
def test_links_lead_somewhere(page):
    for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", prose(page)):
        assert link.startswith("https://") or (page.parent / link).exists(), link


@EACH_PAGE
def test_sources_that_are_named_exist(page):
    for name in re.findall(r"`((?:cart|forest|importance|benchmarks|tests)/[\w/.]*)`", prose(page)):
        assert (ROOT / name).exists(), name
    for name in re.findall(r"`(\w+\.py)`", prose(page)):
        assert any(ROOT.glob(f"[a-z]*/**/{name}")), name


@EACH_PAGE
def test_commands_that_are_named_exist(page):
    for name in re.findall(r"python -m benchmarks\s+([a-z]+)", page.read_text()):
        assert name in COMMANDS, name


def test_decisions_are_numbered_and_listed():
    index = (DECISIONS / "README.md").read_text()
    records = sorted(DECISIONS.glob("[0-9]*.md"))
    for number, record in zip(count(1), records, strict=False):
        title = f"{number:03}. "
        assert record.name.startswith(f"{number:03}-")
        assert record.read_text().startswith(f"# {title}")
        assert f"[{title}" in index
        assert f"]({record.name})" in index


def test_deviations_name_tests():
    page = (ROOT / "docs" / "deviations.md").read_text()
    for file, test in re.findall(r"`(?:agreement/)?(test_\w+\.py)::(\w+)`", page):
        sources = [path.read_text() for path in (ROOT / "tests").rglob(file)]
        assert any(f"def {test}(" in source for source in sources), test


def shown_changes():
    page = (ROOT / "CONTRIBUTING.md").read_text()
    return re.findall(r"^```diff\n(.*?)^```", page, flags=re.DOTALL | re.MULTILINE)


NEEDS_GIT = pytest.mark.skipif(shutil.which("git") is None, reason="git applies the changes")


@NEEDS_GIT
def test_changes_that_are_shown_apply():
    assert shown_changes()
    for change in shown_changes():
        command = ["git", "apply", "--check", "-"]
        said = subprocess.run(command, input=change, text=True, cwd=ROOT, capture_output=True)
        assert said.returncode == 0, said.stderr


USES = """
import numpy as np
from cart import DecisionTreeClassifier
from cart.fast_paths.constant_target import ConstantTargetPath

X, y = np.arange(8.0).reshape(-1, 1), np.array([0, 0, 0, 1, 1, 0, 1, 1])
stump = DecisionTreeClassifier(criterion="error", max_depth=1).fit(X, y)
cuts = np.arange(1, 8)
errors = [min(s.sum(), len(s) - s.sum()) for p in cuts for s in (y[:p], y[p:])]
best = np.reshape(errors, (-1, 2)).sum(axis=1).argmin()
assert stump.tree_.threshold[0] == cuts[best] - 0.5
assert np.isclose(stump.tree_.impurity[0], 1 / 2)

grow, grown = ConstantTargetPath._grow, []
ConstantTargetPath._grow = lambda *args: (grown.append(1), grow(*args))
for target, n_grown in ((y, 0), (0 * y, 1)):
    general = DecisionTreeClassifier(min_weight_fraction_leaf=1e-12).fit(X, target)
    tree = DecisionTreeClassifier().fit(X, target)
    assert len(grown) == n_grown
    for name in ("feature", "threshold", "impurity", "value", "n_node_samples"):
        np.testing.assert_array_equal(getattr(tree.tree_, name), getattr(general.tree_, name))
"""


@NEEDS_GIT
def test_the_criterion_and_the_fast_path_that_are_shown_work(tmp_path):
    shutil.copytree(ROOT / "cart", tmp_path / "cart")
    for change in shown_changes()[:2]:
        subprocess.run(["git", "apply", "-"], input=change, text=True, cwd=tmp_path, check=True)
    env = {**os.environ, "PYTHONPATH": str(tmp_path), "NUMBA_DISABLE_JIT": "1"}
    said = subprocess.run(
        [sys.executable, "-c", USES], cwd=tmp_path, env=env, text=True, capture_output=True
    )
    assert said.returncode == 0, said.stderr
