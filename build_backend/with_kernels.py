"""Build backend: setuptools', and kernels that are compiled ahead in every wheel.

    pip wheel .            kernels of every plain case, for x86-64-v3 and v4
    pip install -e .       none: a checkout compiles what it needs

`CARTWOOD_KERNELS` in the environment chooses: "plain" (the default: what `python -m cart` compiles,
and `cartwood.commands.kinds.USUAL`), "first" (the first plain case alone, for tests) or "none", a
wheel for any platform. All else is compiled at its first use, or by `cartwood warm-up`.
"""

import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

from setuptools import build_meta
from setuptools.build_meta import *  # noqa: F403 (the other hooks)
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parents[1]
NEEDED = ("numba", "llvmlite", "numpy", "scikit-learn", "scipy", "joblib", "safetensors")
CHOICES = ("plain", "first", "none")


def chosen():
    """Which kernels a wheel gets."""
    choice = os.environ.get("CARTWOOD_KERNELS", "plain")
    if choice not in CHOICES:
        raise SystemExit(f"CARTWOOD_KERNELS is {choice!r}, and not one of {', '.join(CHOICES)}")
    has_levels = platform.machine().lower() in ("x86_64", "amd64") and sys.maxsize > 2**32
    return choice if has_levels else "none"


def get_requires_for_build_wheel(config_settings=None):
    """Setuptools', and what kernels are compiled with, at the versions that were tested."""
    required = build_meta.get_requires_for_build_wheel(config_settings)
    return required + (pins() if chosen() != "none" else [])


def pins():
    """Requirements such as "numba==0.68.1", of constraints.txt."""
    text = (ROOT / "constraints.txt").read_text()
    return [re.search(rf"(?m)^{name}==.*$", text)[0] for name in NEEDED]


class BuildWithKernels(build_py):
    """Packages as they are, and kernels beside them where the wheel gets some."""

    def run(self):
        super().run()
        if not self.editable_mode and chosen() != "none":
            compile_kernels(Path(self.build_lib).resolve(), chosen())


class WheelOfPlatform(bdist_wheel):
    """A wheel with machine code is one for this platform and Python."""

    def finalize_options(self):
        if chosen() != "none":
            self.distribution.has_ext_modules = lambda: True
        super().finalize_options()


def compile_kernels(packages, cases):
    """Compile kernels for every level, side by side, into the package.

    The first process runs cases on small tables, at a level that this machine has. It tells others
    which kernels were compiled for what types; they compile the same for their level, and run none.
    """
    kernels, scratch = packages / "cart" / "jit" / "kernels", packages.parent / "kernels"
    for folder in (kernels, scratch):
        shutil.rmtree(folder, ignore_errors=True)
    env = {key: value for key, value in os.environ.items() if not key.startswith("NUMBA_")}
    # pip's environment of a build is a folder in PYTHONPATH.
    path = os.pathsep.join([str(packages), *filter(None, [os.environ.get("PYTHONPATH")])])
    env |= {"PYTHONPATH": path, "NUMBA_CACHE_DIR": str(scratch)}
    program = [sys.executable, str(Path(__file__).with_name("compile_kernels.py"))]
    done = subprocess.run([*program, "compile", cases], env=env, cwd=packages)
    if done.returncode:
        raise SystemExit(
            "kernels could not be compiled; CARTWOOD_KERNELS=none builds a wheel without any"
        )
    shutil.copytree(scratch / "cartwood", kernels)
    shutil.rmtree(scratch)
