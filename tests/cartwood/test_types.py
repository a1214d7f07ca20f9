"""A user's script has types that a strict checker accepts, and does what they say."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = Path(__file__).with_name("user_script.py")
SAYS = """\
['x0', 'x1'] ['x0', 'x1'] (3, 2) True
3 True (100, 2) (5, 3)
True
"""


def run(tmp_path, *arguments):
    """From elsewhere, as a user does: only what is said of the script counts."""
    env = {**os.environ, "MYPYPATH": str(ROOT), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, *arguments, str(SCRIPT)]
    return subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)


def test_a_strict_checker_accepts_it(tmp_path):
    options = ("--strict", "--follow-imports=silent", "--ignore-missing-imports")
    done = run(tmp_path, "-m", "mypy", *options, f"--cache-dir={tmp_path}")
    assert done.returncode == 0, done.stdout + done.stderr


def test_it_does_what_it_says(tmp_path):
    done = run(tmp_path)
    assert done.stdout == SAYS, done.stdout + done.stderr
