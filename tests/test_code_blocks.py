"""Blocks of code in README and docs run as printed, in order, in one folder a page.

`python` blocks are run; in `pycon` blocks the output is compared; lines of `sh` blocks that begin
with `cartwood` are run. The README and the quick start always, the other pages with ALL_PAGES set
(`make docs`).
"""

import doctest
import os
import re
import shlex
from pathlib import Path

import pytest

from cartwood.__main__ import main

ROOT = Path(__file__).resolve().parents[1]
ALWAYS = [ROOT / "README.md", ROOT / "docs" / "start.md"]
OTHERS = sorted({*(ROOT / "docs").glob("*.md")} - {*ALWAYS})
BLOCK = re.compile(r"^```(python|pycon|sh)\n(.*?)^```", re.DOTALL | re.MULTILINE)
PAGES = [
    page
    for page in (*ALWAYS, *(OTHERS if os.environ.get("ALL_PAGES") else ()))
    if BLOCK.search(page.read_text())
]


def run_commands(text, page):
    for line in text.replace("\\\n", "").splitlines():
        words = shlex.split(line, comments=True)
        if words[:1] == ["cartwood"]:
            assert main(words[1:]) == 0, f"{page.name}: {line}"


def run_examples(text, page, space):
    test = doctest.DocTestParser().get_doctest(text, {}, page.name, None, 0)
    test.globs = space
    report = []
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    doctest.DocTestRunner(optionflags=flags).run(test, out=report.append, clear_globs=False)
    assert not report, "".join(report)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_blocks_of_a_page_run(page, tmp_path, monkeypatch):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    monkeypatch.chdir(tmp_path)
    space = {"__name__": page.stem}
    for kind, text in BLOCK.findall(page.read_text()):
        if kind == "python":
            exec(compile(text, f"{page.name}", "exec"), space)
        elif kind == "pycon":
            run_examples(text, page, space)
        else:
            run_commands(text, page)
