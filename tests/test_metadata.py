"""What the project says of itself is the same everywhere: version, changelog, Pythons, extras."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]
SOURCES = [
    path
    for folder in ("benchmarks", "cart", "cartwood", "examples", "forest", "importance")
    for path in (ROOT / folder).rglob("*.py")
]
FOR_DEVELOPERS = {"bench", "docs", "flights", "tables", "test"}
NAMED = re.compile(r"cartwood\[([\w, ]+)\]")
MINORS = re.compile(r"Programming Language :: Python :: (3\.\d+)")


def extras_named_in(paths):
    texts = (path.read_text() for path in paths)
    found = (
        extra for text in texts for extras in NAMED.findall(text) for extra in extras.split(",")
    )
    return {extra.strip() for extra in found}


def test_every_extra_that_is_named_exists():
    assert extras_named_in([*PAGES, *SOURCES]) <= {*PROJECT["optional-dependencies"]}


def test_every_extra_for_users_is_named_on_a_page():
    assert {*PROJECT["optional-dependencies"]} - FOR_DEVELOPERS <= extras_named_in(PAGES)


def test_the_version_is_that_of_the_citation_and_the_changelog():
    version = PROJECT["version"]
    citation = (ROOT / "CITATION.cff").read_text()
    assert re.search(r"(?m)^version: (.*)$", citation)[1] == version
    headings = re.findall(r"(?m)^## (\S+)", (ROOT / "CHANGELOG.md").read_text())
    released = [heading for heading in headings if heading != "Unreleased"]
    assert released[0] == version


def test_classifiers_are_the_pythons_that_are_checked():
    """From the lowest that is accepted on; those of docs/compatibility.md."""
    named = [found[1] for each in PROJECT["classifiers"] if (found := MINORS.fullmatch(each))]
    assert PROJECT["requires-python"] == f">={named[0]}"
    table = (ROOT / "docs" / "compatibility.md").read_text()
    checked = re.findall(r"(?m)^\| [\d.]+ \| (3\.\d+)\.\d+ \|", table)
    assert {*named} == {*checked}


def test_the_license_is_said_once():
    """As an expression: no classifier repeats it."""
    assert not [each for each in PROJECT["classifiers"] if each.startswith("License")]
    assert (ROOT / PROJECT["license-files"][0]).exists()


def test_addresses_are_https():
    for name, address in PROJECT.get("urls", {}).items():
        assert address.startswith("https://"), name
