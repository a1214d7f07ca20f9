"""Kernels that are read from the disk do what freshly compiled ones do."""

import ast
import compileall
import os
import pickle
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

import cart
from cart.jit.disk_cache import KernelFiles
from cart.jit.folders import Folder, folders_of, why_unsafe
from cart.jit.source_digest import imported_names

PROGRAM = """
import numpy as np, scipy.sparse
import cart, forest, importance

rng = np.random.RandomState(0)
X, y = rng.normal(size=(120, 4)), rng.randint(0, 3, 120)
gaps = np.where(rng.random_sample(X.shape) < 0.1, np.nan, X)
sparse = scipy.sparse.csr_matrix(np.where(X > 0, X, 0.0))
for kind in (cart.DecisionTreeClassifier, cart.ExtraTreeClassifier):
    for criterion in ("gini", "entropy"):
        for table in (X, gaps, sparse):
            print(kind(criterion=criterion, random_state=0).fit(table, y).apply(table).sum())
for criterion in ("squared_error", "absolute_error", "poisson"):
    model = cart.DecisionTreeRegressor(criterion=criterion, max_leaf_nodes=9, random_state=0)
    print(model.fit(X, y).predict(X).sum())
levels = np.c_[X[:, :3], rng.randint(0, 20, 120)]
model = cart.DecisionTreeRegressor(categorical_features=[3], min_category_ratio=0.0)
print(model.fit(levels, X[:, 3]).predict(levels).sum())
model = forest.RandomForestClassifier(5, oob_score=True, max_samples=0.5, random_state=0, n_jobs=2)
model.fit(X, y)
print(model.oob_score_, model.apply(X).sum())
for measure in (importance.oob_permutation, importance.drop_column):
    print(measure(model, X, y).values)

from numba.core.dispatcher import Dispatcher
ours = ("cart", "forest", "importance")
modules = [m for name, m in sys.modules.items() if name.split(".")[0] in ours]
kernels = {k for m in modules for k in vars(m).values() if isinstance(k, Dispatcher)}
print(sum(sum(kernel.stats.cache_misses.values()) for kernel in kernels), file=sys.stderr)
"""


def run():
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", "import sys" + PROGRAM],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout, int(done.stderr.split()[-1])


def test_a_process_that_compiles_nothing():
    """It reads every kernel from the disk."""
    fresh, _ = run()
    read, n_compiled = run()
    assert n_compiled == 0
    assert read == fresh


# Every kernel of cart and forest that a process has used, and for which types.
LIST_KERNELS = """
import sys
from cart.jit.disk_cache import KernelCache
from numba.core.dispatcher import Dispatcher
modules = [m for name, m in sys.modules.items() if name.split(".")[0] in ("cart", "forest")]
kernels = {k for m in modules for k in vars(m).values() if isinstance(k, Dispatcher)}
for kernel in {k for k in kernels if isinstance(k._cache, KernelCache)}:  # not parts of others
    for signature in kernel.stats.cache_hits | kernel.stats.cache_misses:
        name = f"{kernel.py_func.__module__}.{kernel.py_func.__qualname__}"
        print("kernel", name, signature)
"""
WARM_UP = "import runpy; runpy.run_module('cart', run_name='__main__')"
USE = """
import numpy as np
from sklearn.datasets import load_diabetes, load_iris
from forest import RandomForestClassifier, RandomForestRegressor
for table in (np.float32, np.float64):
    X, y = load_iris(return_X_y=True)
    for criterion in ("gini", "entropy"):
        for max_bins in (None, 255):
            model = RandomForestClassifier(
                3, criterion=criterion, oob_score=True, max_bins=max_bins
            )
            model.fit(X.astype(table), y).predict(X.astype(table))
            model.set_params(max_leaf_nodes=4).fit(X.astype(table), y)
    X, y = load_diabetes(return_X_y=True)
    for max_features in (1.0, 0.3, 1):
        for target, max_bins in ((y, None), (y / 7.0, None), (y, 255)):
            model = RandomForestRegressor(3, max_features=max_features, max_bins=max_bins)
            model.fit(X.astype(table), target).predict(X.astype(table))
    X, y = np.random.default_rng(0).normal(size=(70_000, 2)).astype(table), np.arange(70_000) % 2
    for criterion in ("gini", "entropy"):
        RandomForestClassifier(1, criterion=criterion, max_depth=2).fit(X, y).predict(X)
"""


def kernels_of(program):
    command = [sys.executable, "-W", "ignore", "-c", program + LIST_KERNELS]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return {line for line in said.splitlines() if line.startswith("kernel")}


@pytest.fixture(scope="module")
def warm():
    return kernels_of(WARM_UP)


def test_the_warm_up_compiles_what_forests_need(warm):
    used = kernels_of(USE)
    assert len(used) > 5
    assert used <= warm


def test_kernels_are_compiled_for_few_types(warm):
    """Growth for the widths of codes, keys of rows for either precision, the rest once."""
    counts = Counter(line.split()[1] for line in warm)
    assert (
        counts.pop("cart.fast_paths.classification.path.grow_trees") == 2 * 3
    )  # criteria; 8, 16 and 32 bits
    assert (
        counts.pop("cart.fast_paths.regression.histograms.path._grow_trees") == 2
    )  # 8 and 16 bits
    assert (
        counts.pop("cart.fast_paths.regression.sorted_path._grow_trees") == 2
    )  # with lists of codes, or sorting them
    assert counts.pop("cart.primitives.row_keys._fill_keys") == 2
    assert set(counts.values()) == {1}


def test_no_index_is_out_of_bounds(tmp_path):
    """numba's check, under which kernels take no index below 0 for one that counts from the end."""
    program = """
import numpy as np
from sklearn.datasets import load_diabetes
from cart.jit.decorators import entry_kernel
from forest import RandomForestRegressor
X, y = load_diabetes(return_X_y=True)
RandomForestRegressor(3).fit(X, y / 7.0)
@entry_kernel
def item(array, i):
    return array[i]
assert item(np.arange(3), 2) == 2
for i in (-1, 3):
    try:
        item(np.arange(3), i)
    except IndexError:
        continue
    raise AssertionError(i)
"""
    checks = {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", program], env=os.environ | checks, check=True)


# Whatever opens a file to write to it finds that it cannot, whoever runs the tests.
READ_ONLY = """
import errno, os, sys
def refuse(event, args):
    if event == "os.mkdir" or event == "open" and args[2] & (os.O_WRONLY | os.O_RDWR):
        raise OSError(errno.EROFS, "Read-only file system")
sys.addaudithook(refuse)
"""
RANK = """
import warnings
import numpy as np
from cart.jit import notice
from cart.table import ranking as rank
from cart.table.columns import Columns
from cart.table.encoding import encode
notice.PATIENCE = 600.0  # however slow the machine
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for kind in {kinds}:
        print(encode(Columns(np.eye(3, dtype=kind))).codes.sum())
        print(sum(rank._rank_columns.stats.cache_misses.values()))
for warning in caught:
    print(warning.message)
"""


def rank(folder, *kinds, before=""):
    """What a process says that ranks a table of each kind, and its warnings."""
    done = subprocess.run(
        [sys.executable, "-B", "-c", before + RANK.format(kinds=kinds)],
        capture_output=True, text=True, env={**os.environ, "NUMBA_CACHE_DIR": str(folder)},
    )  # fmt: skip
    assert not done.stderr
    *numbers, warnings = done.stdout.split("\n", 2 * len(kinds))
    return [*map(int, numbers)], warnings.splitlines()


def test_a_filled_folder_that_cannot_be_written_to(tmp_path):
    """What is there is read; what is not is compiled, and forgotten, of which one warning tells."""
    assert rank(tmp_path, "f4") == ([3, 1], [])
    kept = sorted(tmp_path.rglob("*"))
    numbers, (warning,) = rank(tmp_path, "f4", "f8", before=READ_ONLY)
    assert numbers == [3, 0, 3, 1]
    assert "Read-only file system" in warning
    assert "Set NUMBA_CACHE_DIR to a folder that you own" in warning
    assert sorted(tmp_path.rglob("*")) == kept


def test_a_folder_that_others_can_write_to_is_not_read(tmp_path):
    assert rank(tmp_path, "f4") == ([3, 1], [])
    (folder,) = tmp_path.iterdir()
    folder.chmod(0o777)
    numbers, (warning,) = rank(tmp_path, "f4")
    assert numbers == [3, 1]
    assert f"{folder}: others can write to it (fix with chmod go-w)" in warning
    folder.chmod(0o755)
    assert rank(tmp_path, "f4") == ([3, 0], [])
    for path in folder.iterdir():
        path.chmod(0o666)
    assert rank(tmp_path, "f4") == ([3, 1], [])


def test_a_folder_of_another_user_is_not_read_unless_of_root(tmp_path, monkeypatch):
    me = os.getuid()
    assert why_unsafe(tmp_path.stat()) is None
    monkeypatch.setattr(os, "getuid", lambda: me + 1)
    assert why_unsafe(tmp_path.stat()) == (None if me == 0 else "belongs to another user")
    if me == 0:
        os.chown(tmp_path, me + 2, -1)
        assert why_unsafe(tmp_path.stat()) == "belongs to another user"


def test_a_user_without_a_home_has_no_folder_in_the_working_directory(monkeypatch):
    monkeypatch.setattr("numba.config.CACHE_DIR", "")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert [folder.is_package for folder in folders_of(__file__)] == [True, False]
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # a user id without an entry
    assert [folder.is_package for folder in folders_of(__file__)] == [True]


def test_the_package_s_folder_is_as_safe_as_its_sources(tmp_path):
    tmp_path.chmod(0o777)
    KernelFiles("kernel", [Folder(str(tmp_path), True)]).save("stamp", "key", "code")
    assert KernelFiles("kernel", [Folder(str(tmp_path), True)]).load("stamp", "key") == "code"
    others = KernelFiles("kernel", [Folder(str(tmp_path), False)])
    assert others.load("stamp", "key") is None
    with pytest.raises(OSError, match="others can write to it"):
        others.save("stamp", "key", "code")


@pytest.mark.skipif(os.name != "posix", reason="there are no such permissions")
def test_others_may_read_what_is_kept_and_never_write_to_it(tmp_path):
    """As with Python's bytecode: one user fills the folder of an installation, all load from it."""
    before = os.umask(0)
    try:
        KernelFiles("kernel", [Folder(str(tmp_path / "new"), False)]).save("stamp", "key", "code")
    finally:
        os.umask(before)
    (path,) = (tmp_path / "new").iterdir()
    assert [each.stat().st_mode & 0o777 for each in (path, path.parent)] == [0o644, 0o755]
    assert KernelFiles("kernel", [Folder(str(path.parent), False)]).load("stamp", "key") == "code"


# A package with a kernel that calls another module's and the method of a class it is given.
SOURCES = {
    "__init__.py": "",
    "callee.py": """
from cart.jit.decorators import kernel
@kernel
def step(x):
    return x + 1
""",
    "between.py": "from small.callee import step\n",
    "given.py": """
from typing import NamedTuple
class Rule(NamedTuple):
    offset: int
    def of(self, x):
        return x + self.offset + 10
""",
    "entry.py": """
from cart.jit.decorators import dispatch, entry_kernel
from small import (  # a comment, with a comma
    between,
)
@dispatch
def of(rule, x):
    return rule.of(x)
@entry_kernel
def run(rule, x):
    return of(rule, between.step(x))
""",
    "other.py": "",
}
CALL = """
from small.entry import run
from small.given import Rule
print(run(Rule(100), 0), sum(run.stats.cache_misses.values()))
"""


def start(folder, program=CALL):
    """Begin a process that calls the kernel."""
    path = os.pathsep.join([str(folder), os.getcwd()])
    own = {"NUMBA_CACHE_DIR": str(folder / "kept"), "PYTHONPATH": path}
    return subprocess.Popen(
        [sys.executable, "-B", "-c", program], env=os.environ | own, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def end(process):
    """What the kernel gave, and how many were compiled."""
    said, errors = process.communicate()
    assert process.returncode == 0, errors
    assert not errors
    return tuple(map(int, said.split()))


def write_small(folder):
    (folder / "small").mkdir()
    for name, text in SOURCES.items():
        (folder / "small" / name).write_text(text)
    return folder


@pytest.fixture
def small(tmp_path):
    """The folder of the package, whose kernel was never compiled."""
    return write_small(tmp_path)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    folder = write_small(tmp_path_factory.mktemp("compiled"))
    assert end(start(folder)) == (111, 1)
    return folder


@pytest.fixture
def kept(compiled, tmp_path):
    """The folder of the package, whose kernel is kept, wherever it was compiled."""
    shutil.copytree(compiled, tmp_path, dirs_exist_ok=True)
    return tmp_path


def edit(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_an_edited_callee_is_compiled_anew(kept):
    edit(kept / "small" / "callee.py", "x + 1", "x + 2")
    assert end(start(kept)) == (112, 1)
    edit(kept / "small" / "callee.py", "x + 2", "x + 1")
    assert end(start(kept)) == (111, 0)  # kept before


def test_an_edited_class_that_a_kernel_is_given_is_compiled_anew(kept):
    edit(kept / "small" / "given.py", "offset + 10", "offset + 20")
    assert end(start(kept)) == (121, 1)


def test_an_edit_of_what_a_kernel_does_not_import_changes_nothing(kept):
    (kept / "small" / "other.py").write_text("x = 1")
    assert end(start(kept)) == (111, 0)


def test_a_kernel_edited_after_its_import_is_not_kept(kept):
    """Its code is that of the old sources, its digest would be that of the new ones."""
    callee = kept / "small" / "callee.py"
    edit_first = f"""
import pathlib, small.entry
file = pathlib.Path({str(callee)!r})
file.write_text(file.read_text().replace("x + 1", "x + 3"))
"""
    assert end(start(kept, edit_first + CALL)) == (111, 1)
    assert end(start(kept)) == (113, 1)


def test_a_kernel_that_is_given_text_is_not_kept(small):
    """A process that loaded it, and had compiled nothing, would crash."""
    entry = small / "small" / "entry.py"
    edit(entry, "def run(rule, x):", "def run(rule, x, how):")
    edit(entry, "between.step(x))", "between.step(x)) if how == 'add' else 0")
    program = CALL.replace("(Rule(100), 0)", "(Rule(100), 0, 'add')")
    for _ in range(2):
        assert end(start(small, program)) == (111, 1)


def test_without_sources_nothing_is_kept(small):
    """Code of which nobody can tell what it was made from."""
    compileall.compile_dir(small / "small", legacy=True, quiet=1)
    for path in (small / "small").glob("*.py"):
        path.unlink()
    process = start(small, "import warnings; warnings.simplefilter('ignore')" + CALL)
    assert end(process) == (111, 1)
    said, errors = start(small).communicate()
    assert said.split() == ["111", "1"]
    assert errors.count("the source of small.entry cannot be read") == 1
    assert not (small / "kept").exists()


def test_imports_are_found_as_a_parser_finds_them():
    root = Path(cart.__file__).parents[1]
    for path in (p for package in ("cart", "forest") for p in (root / package).rglob("*.py")):
        source = path.read_bytes()
        found = {*imported_names(source)}
        for node in ast.parse(source).body:
            if isinstance(node, ast.Import):
                assert {alias.name for alias in node.names} <= found
            elif isinstance(node, ast.ImportFrom):
                names = {f"{node.module}.{alias.name}" for alias in node.names}
                assert names | {node.module} <= found


def damage(data, how):
    middle = len(data) // 2
    return {
        "empty": b"",
        "truncated": data[:middle],
        "flipped first": bytes([data[0] ^ 1]) + data[1:],
        "flipped": data[:middle] + bytes([data[middle] ^ 16]) + data[middle + 1 :],
        "foreign": pickle.dumps("another's"),
    }[how]


DAMAGE = ["empty", "truncated", "flipped first", "flipped", "foreign"]


@pytest.mark.parametrize("how", DAMAGE)
def test_a_damaged_file_is_not_read(tmp_path, how):
    files = KernelFiles("kernel", [Folder(str(tmp_path), False)])
    files.save("stamp", "key", "code" * 99)
    (path,) = tmp_path.iterdir()
    path.write_bytes(damage(path.read_bytes(), how))
    assert files.load("stamp", "key") is None


def test_a_kernel_whose_file_is_damaged_is_compiled_anew_and_kept_again(kept):
    (path,) = (kept / "kept" / "cartwood").iterdir()
    path.write_bytes(damage(path.read_bytes(), "flipped"))
    assert end(start(kept)) == (111, 1)
    assert end(start(kept)) == (111, 0)


def test_two_processes_with_nothing_compiled(small):
    both = [start(small), start(small)]
    assert [end(process)[0] for process in both] == [111, 111]
    assert end(start(small)) == (111, 0)


SAVE = """
from cart.jit.disk_cache import KernelFiles
from cart.jit.folders import Folder
files = KernelFiles("kernel", [Folder({folder!r}, False)])
print("ready", flush=True)
for i in range(10**9):
    files.save("stamp", "key", bytes([i % 256]) * 3_000_000)
"""


@pytest.mark.parametrize("after", [0.01, 0.05])
def test_a_writer_that_is_killed_leaves_the_whole_file_or_none(small, after):
    folder = str(small / "kept" / "cartwood")
    files = KernelFiles("kernel", [Folder(folder, False)])
    with start(small, SAVE.format(folder=folder)) as writer:
        assert writer.stdout.readline() == "ready\n"
        for _ in range(3):
            time.sleep(after)
            found = files.load("stamp", "key")
            assert found is None or found == found[:1] * 3_000_000
        writer.send_signal(signal.SIGKILL)
    found = files.load("stamp", "key")
    assert found is None or found == found[:1] * 3_000_000
    files.save("stamp", "key", b"again")
    assert files.load("stamp", "key") == b"again"


def test_one_kernel_in_the_place_of_another_is_not_read(tmp_path):
    files = KernelFiles("kernel", [Folder(str(tmp_path), False)])
    files.save("stamp", "of integers", "integers")
    (integers,) = tmp_path.iterdir()
    files.save("stamp", "of floats", "floats")
    (floats,) = {*tmp_path.iterdir()} - {integers}
    integers.write_bytes(floats.read_bytes())
    assert files.load("stamp", "of integers") is None
    assert files.load("stamp", "of floats") == "floats"


def test_code_of_old_sources_is_dropped_after_a_week(tmp_path):
    files = KernelFiles("kernel", [Folder(str(tmp_path), False)])
    other = KernelFiles("kernel_of_another", [Folder(str(tmp_path), False)])
    for stamp, key in (("1", "old"), ("2", "new"), ("3", "days")):
        files.save(stamp, key, key)
    other.save("1", "old", "other")
    for path in tmp_path.iterdir():
        if ".3." not in path.name:
            os.utime(path, times=(0.0, time.time() - 8 * 24 * 3600.0))
    files.save("2", "latest", "latest")
    found = [files.load(stamp, key) for stamp, key in (("1", "old"), ("2", "new"), ("3", "days"))]
    assert found == [None, "new", "days"]
    assert other.load("1", "old") == "other"


def test_a_writer_that_is_stopped_leaves_nothing(tmp_path, monkeypatch):
    files = KernelFiles("kernel", [Folder(str(tmp_path), False)])

    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", stop)
        with pytest.raises(KeyboardInterrupt):
            files.save("stamp", "key", "code")
    assert files.load("stamp", "key") is None
    assert not [*tmp_path.iterdir()]
