"""Everything that a release must pass: `python -m tests.release_check`, or `make release-check`.

    texts     version, changelog, classifiers and extras say the same everywhere
    sdist     is built from what is committed, and has all of it
    wheels    are built from the sdist, one for each Python that is found, with kernels
    each      is installed in an empty environment, and passes `tests/smoke.py` there
    lowest    so does the first wheel with the lowest versions of the dependencies

It takes minutes for each Python. `CARTWOOD_KERNELS=none` asks for wheels without kernels, which are
built in seconds; the smoke tests compile then. `PYTHONS`, paths between spaces, names others than
those found on PATH and of pyenv; those that are not found are named.
"""

import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZipFile

from packaging.metadata import Metadata

from tests.steps import empty_environment, run_steps

ROOT = Path(__file__).resolve().parents[1]
MINORS = (11, 12, 13, 14, 15)
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
LEFT_OUT = (".ci/", ".github/", ".gitignore", ".pre-commit-config.yaml")  # of the sdist
PACKAGES = ("cart", "cartwood", "forest", "importance")
HAS_KERNELS = os.environ.get("CARTWOOD_KERNELS", "plain") == "plain"
PIP = ("-m", "pip", "-q", "--disable-pip-version-check")


def main() -> int:
    pythons = find_pythons()
    for minor in MINORS:
        if minor not in pythons:
            print(f"not tried: Python 3.{minor}, which is not installed")
    with TemporaryDirectory(prefix="cartwood-") as name:
        failed = _check(Path(name).resolve(), pythons)
    print("failed: " + ", ".join(failed) if failed else "all passed")
    return len(failed) > 0


def find_pythons() -> dict[int, str]:
    """Paths of interpreters by minor version, 3.11 and later."""
    places = os.environ.get("PYTHONS", "").split()
    if not places:
        places = [shutil.which(f"python3.{minor}") for minor in MINORS]
        places += sorted(Path.home().glob(".pyenv/versions/3.*/bin/python3"))
    found: dict[int, str] = {}
    for path in map(str, filter(None, [sys.executable, *places])):
        ask = "import sys; print(sys.version_info.minor if sys.version_info >= (3, 11) else '')"
        said = subprocess.run([path, "-c", ask], capture_output=True, text=True).stdout.strip()
        if said:
            found.setdefault(int(said), path)
    return found


def _check(folder, pythons):
    env = empty_environment(folder / "home")
    source, out = folder / "source", folder / "out"
    source.mkdir()
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, capture_output=True, check=True)
    subprocess.run(["tar", "-x"], cwd=source, input=archive.stdout, check=True)
    tools = folder / "tools" / "bin" / "python"
    failed = run_steps(
        {
            "texts agree": [
                sys.executable,
                "-m",
                "pytest",
                "-q",
                "-p",
                "no:cacheprovider",
                "tests/test_metadata.py",
            ],
            "an environment for tools": [sys.executable, "-m", "venv", folder / "tools"],
            "the tool that builds": [tools, *PIP, "install", "build"],
            "an sdist": [tools, "-m", "build", "--sdist", "-o", out, source],
        },
        source,
        env,
    )
    if failed:
        return failed
    (sdist,) = out.glob("*.tar.gz")
    failed += judge("the sdist has what is committed", missing_from(sdist, source))
    for minor, python in sorted(pythons.items()):
        failed += _check_python(folder, minor, python, sdist, env)
    return failed


def _check_python(folder, minor, python, sdist, env):
    """A wheel of the sdist in a new environment; on the lowest Python with lowest versions too."""
    here, wheels = folder / f"3.{minor}", folder / f"wheels-3.{minor}"
    inside = here / "bin" / "python"
    named = f"Python 3.{minor}: "
    failed = run_steps(
        {
            f"{named}a new environment": [python, "-m", "venv", here],
            f"{named}a wheel of the sdist": [
                inside,
                *PIP,
                "wheel",
                "--no-deps",
                "-w",
                wheels,
                sdist,
            ],
        },
        folder,
        env,
    )
    if failed:
        return failed
    (wheel,) = wheels.glob("*.whl")
    failed = judge(f"{named}the wheel's metadata and types", wrong_in(wheel))
    smoke = [inside, "-I", ROOT / "tests" / "smoke.py"]
    pins = ["-c", ROOT / "constraints.txt"]
    failed += run_steps(
        {
            f"{named}installed": [inside, *PIP, "install", *pins, wheel],
            **(
                {f"{named}the smoke test, which compiles nothing": [*smoke, "--compiles-nothing"]}
                if HAS_KERNELS
                else {f"{named}the smoke test": smoke}
            ),
        },
        folder,
        env,
    )
    if f">=3.{minor}" == PROJECT["requires-python"]:
        oldest = folder / "lowest" / "bin" / "python"
        lowest = [each.replace(">=", "==") for each in PROJECT["dependencies"]]
        smoke[0] = oldest
        failed += run_steps(
            {
                "lowest versions: a new environment": [python, "-m", "venv", folder / "lowest"],
                f"lowest versions: {', '.join(lowest)}": [oldest, *PIP, "install", wheel, *lowest],
                "lowest versions: the smoke test, which compiles": smoke,
            },
            folder,
            env,
        )
    return failed


def judge(what: str, wrong: list[str]) -> list[str]:
    """Say what is wrong; the step, where anything is."""
    print(f"{'FAILED' if wrong else 'ok':7}{'':9}  {what}", *wrong, sep="\n" + " " * 18, flush=True)
    return [what] if wrong else []


def missing_from(sdist: Path, source: Path) -> list[str]:
    """Files of the source that the sdist lacks, and what it has that is no part of it."""
    with tarfile.open(sdist) as archive:
        has = {name.partition("/")[2] for name in archive.getnames() if "/" in name}
        has = {name for name in has if not (source / name).is_dir()}
    committed = {
        path.relative_to(source).as_posix() for path in source.rglob("*") if path.is_file()
    }
    left = (".egg-info/", "__pycache__/")  # by the build itself
    committed = {name for name in committed if not any(each in name for each in left)}
    wanted = {name for name in committed if not name.startswith(LEFT_OUT)}
    added = {name for name in has if name != "PKG-INFO" and ".egg-info" not in name} - committed
    added -= {"setup.cfg"}
    return [f"lacks {name}" for name in sorted(wanted - has)] + [
        f"has {name}" for name in sorted(added)
    ]


def wrong_in(wheel: Path) -> list[str]:
    """What a wheel's metadata say that pyproject.toml does not, or files that it lacks."""
    with ZipFile(wheel) as archive:
        names = archive.namelist()
        (place,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        said = Metadata.from_email(archive.read(place), validate=True)
    expected = {
        "version": PROJECT["version"], "summary": PROJECT["description"],
        "license_expression": PROJECT["license"], "classifiers": PROJECT["classifiers"],
        "requires_python": PROJECT["requires-python"],
        "provides_extra": list(PROJECT["optional-dependencies"]),
        "keywords": PROJECT["keywords"], "project_urls": PROJECT.get("urls", {}),
    }  # fmt: skip
    wrong = [
        f"{name} is {getattr(said, name)!r}" for name, value in expected.items()
        if _plain(getattr(said, name)) != _plain(value)
    ]  # fmt: skip
    wanted = [f"{package}/py.typed" for package in PACKAGES]
    wanted += ["cart/jit/kernels/fits.json"] if HAS_KERNELS else []
    return wrong + [f"it lacks {name}" for name in wanted if name not in names]


def _plain(value):
    return sorted(map(str, value)) if isinstance(value, list) else str(value or "")


if __name__ == "__main__":
    sys.exit(main())
