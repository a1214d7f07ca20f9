"""Kernels that are read from the disk do what freshly compiled ones do."""

import os
import subprocess
import sys
from collections import Counter

import pytest
from numba.core.caching import IndexDataCacheFile

from cart.jit.disk_cache import KernelFiles

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

from numba.core.caching import FunctionCache
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
from numba.core.caching import FunctionCache
from numba.core.dispatcher import Dispatcher
modules = [m for name, m in sys.modules.items() if name.split(".")[0] in ("cart", "forest")]
kernels = {k for m in modules for k in vars(m).values() if isinstance(k, Dispatcher)}
for kernel in {k for k in kernels if isinstance(k._cache, FunctionCache)}:  # not parts of others
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
    """Growth for the widths of codes, the rest once."""
    counts = Counter(line.split()[1] for line in warm)
    assert (
        counts.pop("cart.fast_paths.classification.path._grow_trees") == 2 * 3
    )  # criteria; 8, 16 and 32 bits
    assert counts.pop("cart.fast_paths.regression.histogram_path._grow_trees") == 2  # 8 and 16 bits
    assert (
        counts.pop("cart.fast_paths.regression.sorted_path._grow_trees") == 2
    )  # with lists of codes, or sorting them
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


def test_without_a_folder_to_write_to():
    """Kernels are compiled, and forgotten."""
    program = """
from numba.core.caching import _CacheLocator
def refuse(self):
    raise PermissionError(13, "read-only")
_CacheLocator.ensure_cache_path = refuse
import numpy as np
from cart.table.columns import Columns
from cart.table.encoding import encode
print(encode(Columns(np.eye(3, dtype=np.float32))).codes.sum())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "3", done.stderr


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
warnings.simplefilter("error")
import numpy as np
from cart.table import ranking as rank
from cart.table.columns import Columns
from cart.table.encoding import encode
for kind in {kinds}:
    print(encode(Columns(np.eye(3, dtype=kind))).codes.sum())
    print(sum(rank._rank_columns.stats.cache_misses.values()))
"""


def test_a_filled_folder_that_cannot_be_written_to(tmp_path):
    """What is there is read; what is not is compiled, and forgotten."""

    def run(program):
        done = subprocess.run(
            [sys.executable, "-B", "-c", program], capture_output=True, text=True,
            env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
        )  # fmt: skip
        return done.stdout.split(), done.stderr

    assert run(RANK.format(kinds="('f4',)")) == (["3", "1"], "")
    kept = sorted(tmp_path.rglob("*"))
    assert run(READ_ONLY + RANK.format(kinds="('f4', 'f8')")) == (["3", "0", "3", "1"], "")
    assert sorted(tmp_path.rglob("*")) == kept


def keep_at_the_same_time(kind, folder):
    """A process keeps its kernel while another, which has seen no other yet, keeps one too."""
    one, other, reader = (kind(str(folder), "kernel", "stamp") for _ in range(3))
    write = one._save_data

    def interrupted(name, data):
        other.save("of floats", "floats")
        write(name, data)

    one._save_data = interrupted
    other._load_index = dict
    one.save("of integers", "integers")
    return reader


def test_kernels_that_are_kept_at_the_same_time_are_not_mistaken(tmp_path):
    files = keep_at_the_same_time(KernelFiles, tmp_path)
    assert files.load("of integers") in (None, "integers")  # what is lost is compiled again
    assert files.load("of floats") in (None, "floats")
    (tmp_path / "numba").mkdir()
    files = keep_at_the_same_time(IndexDataCacheFile, tmp_path / "numba")
    assert files.load("of floats") == "integers"  # why ours are named otherwise
