"""The documents name what there is: files, commands, tests."""

import re
import shutil
import subprocess
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


@pytest.mark.skipif(shutil.which("git") is None, reason="git applies the changes")
def test_changes_that_are_shown_apply():
    page = (ROOT / "CONTRIBUTING.md").read_text()
    changes = re.findall(r"^```diff\n(.*?)^```", page, flags=re.DOTALL | re.MULTILINE)
    assert changes
    for change in changes:
        command = ["git", "apply", "--check", "-"]
        said = subprocess.run(command, input=change, text=True, cwd=ROOT, capture_output=True)
        assert said.returncode == 0, said.stderr
