"""What a new user types, in an environment that has nothing: `python -m tests.fresh_environment`.

A wheel with all its kernels is built from this checkout and installed with its extras in a new
environment, with an empty home. From there the first forests of plain cases must take at most 1.5 s
longer than importing scikit-learn, and compile nothing. Then every block of code of README and
docs, every script of examples/ and the tests of the front door run there, against the wheel. With
`--all` all tests do, with `--sdist` the wheel is built from the sdist, with `--lowest` dependencies
have the lowest versions that pyproject.toml states.
"""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[1]
BESIDE = ("tests", "benchmarks", "docs", "examples", "README.md", "CHANGELOG.md", "Makefile",
          "pyproject.toml")  # fmt: skip
EXTRAS = "plot,frame,progress,bench,test"


def main() -> int:
    with TemporaryDirectory(prefix="cartwood-") as name:
        return _run(Path(name).resolve(), "--all" in sys.argv[1:])


def _run(folder, with_all_tests):
    checkout, home = folder / "beside", folder / "home"
    home.mkdir()
    checkout.mkdir()
    for part in BESIDE:
        copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy
        copy(ROOT / part, checkout / part)
    python = folder / "env" / "bin" / "python"
    kept = ("PATH", "LANG", "PIP_", "SCIKIT_LEARN_DATA")
    env = {key: value for key, value in os.environ.items() if key.startswith(kept)}
    env |= {"HOME": str(home), "MPLBACKEND": "Agg", "ALL_PAGES": "1"}
    pip = [python, "-m", "pip", "-q", "--disable-pip-version-check"]
    wheel = folder / "wheel"
    constraints = ["-c", ROOT / "constraints.txt"]
    tests = ["tests"] if with_all_tests else ["tests/cartwood", "tests/test_code_blocks.py"]
    steps = {
        "a new environment": [sys.executable, "-m", "venv", folder / "env"],
        "a wheel": [*pip, "wheel", "--no-deps", "-w", folder / "wheel", ROOT],
        "installed": [*pip, "install", *constraints, f"{wheel}[{EXTRAS}]"],
        "the packages are the wheel's": [python, "-c", _IS_INSTALLED],
        "the first forest, kernels compiled": [python, "-c", _FIRST_FOREST],
        "the first forest of the next process": [python, "-c", _FIRST_FOREST],
        "cartwood --help": [folder / "env" / "bin" / "cartwood", "--help"],
        "blocks of code, and tests": [python, "-m", "pytest", "-q", "-n", "2", "-p",
                                      "no:cacheprovider", *tests],
        **{f"examples/{script.name}": [python, checkout / "examples" / script.name]
           for script in sorted((ROOT / "examples").glob("*.py"))},
    }  # fmt: skip
    failed = []
    for what, command in steps.items():
        where = folder if what.startswith("examples") else checkout
        start = time.perf_counter()
        done = subprocess.run(
            list(map(str, command)), cwd=where, env=env, capture_output=True, text=True
        )
        good = done.returncode == 0
        print(f"{'ok' if good else 'FAILED':7}{time.perf_counter() - start:7.1f} s  {what}")
        if not good:
            print(done.stdout[-3000:], done.stderr[-3000:], sep="\n")
            failed.append(what)
    return len(failed) > 0


_IS_INSTALLED = """
import cart, cartwood, forest, importance
for package in (cart, cartwood, forest, importance):
    assert "site-packages" in package.__file__, package.__file__
"""
_FIRST_FOREST = """
from sklearn.datasets import load_breast_cancer
from cartwood import RandomForestClassifier
X, y = load_breast_cancer(return_X_y=True)
assert RandomForestClassifier(random_state=0).fit(X, y).score(X, y) > 0.95
"""


if __name__ == "__main__":
    sys.exit(main())
