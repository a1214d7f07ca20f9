"""What a new user types, in an environment that has nothing: `python -m tests.fresh_environment`.

A wheel with its kernels is built from this checkout (minutes) and installed with its extras in a
new environment, with an empty home. There the first forests of plain cases must compile nothing,
and the first of all must take at most 1.5 s longer than importing scikit-learn. Then every block of
code of README and docs, every script of examples/ and the tests of the front door run there,
against the wheel; last `cartwood warm-up`, after which work of every kind must compile nothing.
With `--all` all tests run. `--only WORD` runs the steps that have the word, and those that make the
environment; `CARTWOOD_KERNELS` chooses the kernels, as ever.
"""

import shutil
import sys
from argparse import ArgumentParser
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.steps import empty_environment, run_steps

ROOT = Path(__file__).resolve().parents[1]
BESIDE = ("tests", "benchmarks", "docs", "examples", "README.md", "CHANGELOG.md", "CITATION.cff",
          "Makefile", "pyproject.toml")  # fmt: skip
# What a wheel is built from: a copy, so that nothing is left in the checkout.
SOURCES = ("build_backend", "cart", "cartwood", "forest", "importance", "constraints.txt",
           "pyproject.toml", "LICENSE", "MANIFEST.in", "README.md")  # fmt: skip
EXTRAS = "plot,frame,progress,bench,test"


def main() -> int:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    with TemporaryDirectory(prefix="cartwood-") as name:
        return _run(Path(name).resolve(), args.all, args.only)


def _run(folder, with_all_tests, only):
    checkout, source = folder / "beside", folder / "source"
    for place, parts in ((checkout, BESIDE), (source, SOURCES)):
        place.mkdir()
        for part in parts:
            copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy
            copy(ROOT / part, place / part)
    env = empty_environment(folder / "home") | {"ALL_PAGES": "1"}
    bin_, wheels = folder / "env" / "bin", folder / "wheels"
    python = bin_ / "python"
    pip = [python, "-m", "pip", "-q", "--disable-pip-version-check"]
    extras = f"cartwood[{EXTRAS}]=={version('cartwood')}"
    constraints = ["-c", ROOT / "constraints.txt"]
    tests = ["tests"] if with_all_tests else ["tests/cartwood", "tests/test_code_blocks.py"]
    failed = run_steps(
        {
            "a new environment": [sys.executable, "-m", "venv", folder / "env"],
            "a wheel": [*pip, "wheel", "--no-deps", "-w", wheels, source],
            "installed": [*pip, "install", *constraints, "--find-links", wheels, extras],
        },
        folder,
        env,
    )
    if failed:
        return 1
    in_checkout = {
        "the packages are the wheel's": [python, "-c", _IS_INSTALLED],
        "nothing compiled for the plain cases": [python, "-c", _COMPILES_NOTHING],
        "the first forest in 1.5 s": [python, "-c", _IN_TIME],
        "cartwood --help": [bin_ / "cartwood", "--help"],
        "blocks of code, and tests": [python, "-m", "pytest", "-q", "-n", "2", "-p",
                                      "no:cacheprovider", *tests],
    }  # fmt: skip
    scripts = sorted((checkout / "examples").glob("*.py"))
    elsewhere = {f"examples/{script.name}": [python, script] for script in scripts}
    warmed = {
        "cartwood warm-up": [bin_ / "cartwood", "warm-up"],
        "nothing compiled after the warm-up": [python, "-m", "tests.after_warm_up"],
    }
    for steps, where in ((in_checkout, checkout), (elsewhere, folder), (warmed, checkout)):
        chosen = {what: command for what, command in steps.items() if only in what}
        failed += run_steps(chosen, where, env)
    return len(failed) > 0


_IS_INSTALLED = """
import cart, cartwood, forest, importance
for package in (cart, cartwood, forest, importance):
    assert "site-packages" in package.__file__, package.__file__
"""
_FOREST = """
from sklearn.datasets import load_breast_cancer
from cartwood import RandomForestClassifier
X, y = load_breast_cancer(return_X_y=True)
assert RandomForestClassifier(random_state=0).fit(X, y).score(X, y) > 0.95
"""
# Kernels that are compiled would be kept in the empty home, or beside the sources.
_COMPILES_NOTHING = f"""
from pathlib import Path
import cart
from cart.__main__ import main
main()
{_FOREST}
folders = Path(cart.__file__).parents[1], Path.home()
kept = [path for folder in folders for path in folder.rglob("*.nbc")]
compiled = [path for path in kept if path.parent.name != "kernels"]
assert not compiled, compiled
"""
# The better of three processes each, in turn. Of one thread, by the processor's clock: the wall's
# says on a busy machine how busy it is.
_IN_TIME = f"""
import os, subprocess, sys
def seconds(program):
    before = os.times()
    subprocess.run([sys.executable, "-c", program], check=True)
    after = os.times()
    return sum(after[2:4]) - sum(before[2:4])
program = {_FOREST!r}
pairs = [(seconds("import sklearn.ensemble"), seconds(program)) for _ in range(3)]
bare, forest = map(min, zip(*pairs))
print(pairs)
assert forest - bare <= 1.5, pairs
"""


if __name__ == "__main__":
    sys.exit(main())
