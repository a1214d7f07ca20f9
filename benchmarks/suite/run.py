"""The benchmark suite: our forests against those of scikit-learn and other peers, case by case.

Every measurement is a separate process. In each round all sides take turns. The first round tries
one thread and two; later rounds use the better number.
"""

import json
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from types import SimpleNamespace

import numpy as np

from benchmarks.harness import display, results
from benchmarks.harness.errors import DataError
from benchmarks.identity.agreement import NOTE, agree, share_of_trees, summarize
from benchmarks.suite import plots as suite_plots
from benchmarks.suite.cases import CASES, QUICK, SCALING, Case
from benchmarks.suite.peers import environment
from benchmarks.suite.peers.registry import BY_NAME, OURS, PEERS, REFERENCE

ROUNDS = 3
MORE_ROUNDS = 7  # of short fits, which other work of the machine disturbs more
SHORT = 10.0  # seconds
PATIENCE = 900.0  # seconds of one measurement
# A side that is measured once is stopped after this many times scikit-learn's time, but not before
# so many seconds.
TOO_SLOW, NOT_BEFORE = 2.0, 60.0
SLOW_START = 90.0  # additional seconds for sides that compile in every process
N_COMPARED = 10  # trees of either side


def run(args):
    """Measure all cases; results are saved after each case, so that a run may be interrupted."""
    chosen = QUICK if args.quick else CASES + SCALING
    chosen = [case for case in chosen if args.only in case.name]
    names = args.peers.split(",") if args.peers else [peer.name for peer in PEERS]
    unknown = set(names) - set(BY_NAME)
    if unknown:
        raise DataError(f"unknown peer {sorted(unknown)[0]!r}; choose from {', '.join(BY_NAME)}.")
    commands, absent = _commands(names, args.quick)
    before = {} if args.quick else results.load("suite") or {}
    kept = {row["case"]: row for row in before.get("rows", [])}
    known = before.get("absent", {}).items()
    absent |= {name: reason for name, reason in known if name not in names}
    with display.progress(len(chosen)) as step:
        for case in chosen:
            step(case.name)
            try:
                row = _measure(case, _asked(case, commands), 1 if args.quick else MORE_ROUNDS)
            except DataError as error:
                display.say(f"{case.name} is left out: {error}")
            else:
                kept[case.name] = row
                if not args.quick:
                    results.save("suite", {"rows": _in_order(kept), "absent": absent})
            step()
    content = {"rows": _in_order(kept), "absent": absent}
    for make in (table, peer_table, sizes_table, scaling_table):
        display.show(make(content))
    if not args.quick:
        display.say(*(f"wrote {path}" for path in suite_plots.draw(_known(content))))
    wrong = [row for row in content["rows"] if row.get("wrong")]
    for row in wrong:
        display.say(f"NOT THE SAME TREES: {row['case']}: {row['identity']}")
    return 1 if wrong else 0


def table(content):
    """Table of ours against scikit-learn, with the bars."""
    rows = []
    for row in _known(content):
        case, ours, peer = row["what"], row["sides"].get(OURS, {}), row["sides"].get(REFERENCE, {})
        if "fit" not in ours or "fit" not in peer or case.is_scaling:
            continue
        cells = [case.name, display.seconds(ours["fit"]), display.seconds(peer["fit"])]
        for what, bar in (("fit", case.fit_bar), ("predict", case.predict_bar)):
            ratio = peer[what] / ours[what]
            reached = "-" if bar is None else "yes" if ratio >= bar else "no"
            cells += [display.ratio(ratio), "-" if bar is None else display.ratio(bar), reached]
        same = row.get("identity")
        cells.append("-" if same is None else share_of_trees(same, case.has_ties))
        rows.append(cells)
    return display.Table(
        "Against scikit-learn",
        ["case", "Cartwood\nfit", "scikit-learn\nfit", "ratio", "bar", "reached", "predict\nratio",
         "bar", "reached", "the same\ntrees"],
        rows,
        "Medians over separate processes, with alternating sides; fits at the better of one and "
        "two threads (large tables: two), predictions at the better of both; kernels compiled, "
        "tables encoded again in every fit. A quarter of the rows is held out and predicted. Bar: "
        "the ratio aimed at. scikit-learn has no bins: its exact forest is compared with "
        f"Cartwood's of 255 bins. The same: node for node, of the first {N_COMPARED} trees. {NOTE}",
    )  # fmt: skip


def peer_table(content):
    """Table of the fits of all sides, with their scores on held-out rows."""
    names = [
        peer.name for peer in PEERS if any(peer.name in row["sides"] for row in content["rows"])
    ]
    rows = []
    for row in _known(content):
        if row["what"].is_scaling:
            continue
        rows.append([row["case"], *(_cell(row["sides"].get(name, {})) for name in names)])
    said = "; ".join(f"{name}: {reason}" for name, reason in content.get("absent", {}).items())
    notes = "; ".join(f"{name}: {BY_NAME[name].note}" for name in names)
    return display.Table(
        "Fits of all peers (seconds, and accuracy or R2 on the held-out rows)",
        ["case", *names],
        rows,
        f"{notes}. A peer that is measured once is stopped when its process has run "
        f"{TOO_SLOW:g} times as long as scikit-learn's. A dash means not measured in that run."
        + (f" Not measured: {said}." if said else ""),
    )


def sizes_table(content):
    """Table of memory and sizes of ours and scikit-learn's."""
    rows = []
    for row in _known(content):
        ours, peer = row["sides"].get(OURS, {}), row["sides"].get(REFERENCE, {})
        if row["what"].is_scaling or not (ours.get("pickle") and peer.get("pickle")):
            continue
        rows.append(
            [
                row["case"],
                *(_megabytes(side["memory"]) for side in (ours, peer)),
                *(f"{side['pickle'] / 1e6:,.2f} MB" for side in (ours, peer)),
                f"{ours['pickle'] / peer['pickle']:.2f}",
                *(_bytes_of_a_node(side) for side in (ours, peer)),
                *(_milliseconds(side.get("one_row")) for side in (ours, peer)),
            ]
        )
    return display.Table(
        "Memory of a fit, size of a pickle, bytes of a node, one row",
        ["case", "Cartwood\nmemory", "scikit-learn\nmemory", "Cartwood\npickle",
         "scikit-learn\npickle", "share", "Cartwood\na node", "scikit-learn\na node",
         "Cartwood\none row", "scikit-learn\none row"],
        rows,
        "Memory: the peak of the process during the fit beyond what it held before, including the "
        "fitted forest. A node: bytes per node of a fitted tree. One row: predict_proba of a "
        "single row, at the better of one and two threads.",
    )  # fmt: skip


def scaling_table(content):
    """Table of times as rows and trees grow, and of the gain from a second thread."""
    rows = []
    for row in _known(content):
        if not row["what"].is_scaling:
            continue
        sides = [row["sides"].get(name, {}) for name in (OURS, REFERENCE)]
        if all("fit" in side for side in sides):
            cells = [cell for side in sides for cell in _threads(side)]
            rows.append([row["case"].partition(": ")[2], *cells])
    return display.Table(
        "As the work grows",
        ["", "Cartwood", "two threads\nagainst one", "scikit-learn", "two threads\nagainst one"],
        rows,
        "Fits of two classes and 20 features: 20 trees on the given number of rows, or the given "
        "number of trees on 10,000 rows unless stated otherwise. Only peers that are measured in "
        "every round take part.",
    )


def _threads(side):
    """The time of a fit, and how many times as fast it is with a second thread."""
    one, two = (side["fit_by_jobs"].get(n) for n in ("1", "2"))
    return display.seconds(side["fit"]), display.ratio(one / two) if one and two else "-"


ALL_CASES = {case.name: case for case in (*CASES, *SCALING, *QUICK)}


def _known(content):
    """Rows whose case still exists, together with the case."""
    rows = [row for row in content["rows"] if row["case"] in ALL_CASES]
    return [{**row, "what": ALL_CASES[row["case"]]} for row in rows]


def _in_order(kept):
    """The rows of cases that still exist, in the order of the cases."""
    return [kept[name] for name in ALL_CASES if name in kept]


def _cell(side):
    if "fit" not in side:
        return side.get("why", "-")
    return f"{display.significant(side['fit'])} ({side['score']:.3f})"


def _bytes_of_a_node(side):
    return f"{side['node_bytes'] / side['nodes']:.1f}" if side.get("node_bytes") else "-"


def _megabytes(n_bytes):
    megabytes = n_bytes / 1e6
    return f"{megabytes:,.{1 if megabytes < 10 else 0}f} MB"


def _milliseconds(seconds):
    return "-" if seconds is None else f"{1e3 * seconds:.3f} ms"


def _commands(names, is_quick):
    """Commands that start the peers, and why the others cannot be started."""
    commands, absent = {}, {}
    for name in names:
        if is_quick and not BY_NAME[name].starts_soon:
            absent[name] = "compiles for most of a minute in every process"
            continue
        try:
            commands[name] = environment.command(BY_NAME[name], not is_quick)
        except environment.NotInstalled as reason:
            absent[name] = str(reason)
    return commands, absent


def _asked(case, commands):
    """The commands of the sides that take part in a case.

    In scaling cases these are only the sides that are measured in every round.
    """
    return {
        name: command
        for name, command in commands.items()
        if BY_NAME[name].repeats or not case.is_scaling
    }


def _measure(case, commands, n_rounds):
    """Measure all sides of one case."""
    with TemporaryDirectory() as folder:
        n_features = write_table(case, Path(folder))
        found, best = {name: [] for name in commands}, {}
        failed = {}
        patience = PATIENCE
        for number in range(n_rounds):
            if number == ROUNDS and _longest_fit(found) > SHORT:
                break
            for name, command in commands.items():
                if name in failed or (number > 0 and not BY_NAME[name].repeats):
                    continue
                jobs = [best[name]] if name in best and not case.is_scaling else case.jobs
                if not BY_NAME[name].has_threads:
                    jobs = [1]
                tried = {}
                limit = PATIENCE if BY_NAME[name].repeats else patience
                limit += 0.0 if BY_NAME[name].starts_soon else SLOW_START
                start = perf_counter()
                for n_jobs in jobs:
                    try:
                        tried[n_jobs] = _launch(
                            case, name, command, n_jobs, folder, n_features, limit
                        )
                    except _Failed as reason:
                        failed[name] = str(reason)
                if name == REFERENCE:
                    patience = max(NOT_BEFORE, TOO_SLOW * (perf_counter() - start))
                if tried:
                    found[name].append(tried)
                    fits = _fits_by_jobs(found[name])
                    best[name] = min(fits, key=fits.get)
        sides = {name: {"why": reason} for name, reason in failed.items() if not found[name]}
        for name, rounds in found.items():
            if rounds:
                sides[name] = _sum_up(rounds, best[name])
        # Cases may be measured at different times.
        row = {"case": case.name, "sides": sides, "commit": results.environment()["commit"]}
        if case.is_exact and OURS in sides and REFERENCE in sides:
            row |= _compare(case, Path(folder))
    return row


def _longest_fit(found):
    """Seconds of the longest fit among the sides that are measured in every round."""
    again = (rounds for name, rounds in found.items() if BY_NAME[name].repeats)
    fits = (each["fit"] for rounds in again for tried in rounds for each in tried.values())
    return max(fits, default=np.inf)


class _Failed(Exception):
    """A process ended without a measurement."""


def write_table(case: Case, folder):
    """Write the table for the processes; return its number of columns."""
    X, X_test, y, y_test = case.load()
    for name, array in {"X": X, "y": y, "X_test": X_test, "y_test": y_test}.items():
        np.save(folder / f"{name}.npy", array)
        array.astype(np.float64).T.tofile(folder / f"{name}.bin")  # for R, by column
    return X.shape[1]


def _launch(case, name, command, n_jobs, folder, n_features, patience):
    share = case.params["max_features"]
    task = {
        "library": name,
        "task": case.task,
        "params": case.params,
        "n_jobs": n_jobs,
        "data": folder,
    }
    if BY_NAME[name].language == "R":
        if case.params["model"] == "tree" or case.params["criterion"] == "entropy":
            raise _Failed("has no such model")
        if not case.is_exact:
            raise _Failed("has no bins")
        n_candidates = {"sqrt": int(n_features**0.5), None: n_features}.get(share)
        task |= {
            "n_features": n_features,
            "n_candidates": n_candidates or max(1, int(share * n_features)),
        }
    else:
        task["only_fits"] = case.is_scaling
    if name in (OURS, REFERENCE):
        task["keep_trees"] = N_COMPARED
    try:
        done = subprocess.run(
            command, input=json.dumps(task), capture_output=True, text=True, timeout=patience,
            env=environment.variables(), check=True,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise _Failed(f"over {patience:.0f} s") from None
    except subprocess.CalledProcessError as error:
        last = [line for line in error.stderr.splitlines() if line.strip()]
        display.say(f"{name} failed on {case.name}: {last[-1] if last else error}")
        raise _Failed("failed") from None
    found = json.loads(done.stdout.splitlines()[-1])
    if "unsupported" in found:
        raise _Failed(found["unsupported"])
    return found


def _sum_up(rounds, n_jobs):
    """Medians over the rounds with that number of threads, and the times of all fits."""
    mine = [tried[n_jobs] for tried in rounds if n_jobs in tried]
    summed = {
        key: float(np.median([each[key] for each in mine]))
        for key, value in mine[0].items()
        if isinstance(value, int | float)
    }
    return summed | {
        "version": mine[0]["version"],
        "n_jobs": n_jobs,
        "fits": [each["fit"] for each in mine],
        "fit_by_jobs": {str(n): fit for n, fit in _fits_by_jobs(rounds).items()},
    }


def _fits_by_jobs(rounds):
    """Median time of a fit with each number of threads that was tried."""
    tried = sorted({n_jobs for each in rounds for n_jobs in each})
    return {n: float(np.median([each[n]["fit"] for each in rounds if n in each])) for n in tried}


def _compare(case, folder):
    """Compare the first trees with scikit-learn's, node for node."""
    ours, theirs = (_read_trees(folder / f"{name}.npz") for name in (OURS, REFERENCE))
    summary = summarize([agree(a, b) for a, b in zip(ours, theirs, strict=True)])
    differ = summary["identical_trees"] < summary["trees"]
    return {"identity": summary, "wrong": differ and not case.has_ties}


def _read_trees(path):
    with np.load(path) as arrays:
        return [
            SimpleNamespace(
                **{
                    name.removesuffix(f"_{t}"): arrays[name]
                    for name in arrays.files
                    if name.endswith(f"_{t}") and name.rpartition("_")[2] == str(t)
                }
            )
            for t in range(int(arrays["n_trees"]))
        ]
