"""The SHAP benchmark: values against their definition and other packages, races, null designs.

Other packages take part if they are installed; the table says which could not.
"""

from functools import partial
from os import getloadavg
from time import perf_counter

import numpy as np
import sklearn.ensemble
import sklearn.tree
from sklearn.datasets import load_breast_cancer, load_iris, make_friedman1

import cart
import forest
from benchmarks.harness import display, results
from benchmarks.oracles import shapley as oracle
from benchmarks.studies import shap_figures
from benchmarks.studies.importance_designs import strobl_2007
from benchmarks.studies.shap_peers import LEAST_SECONDS, LIMIT, PEERS, ask, name_of
from cart.jit.decorators import entry_kernel
from importance import shap_values
from importance.shap import falls_out_of_bag, mean_absolute_shap
from importance.shap.covered_trees import cover_trees
from importance.shap.values import explain, forest_or_tree, trees_out_of_bag

EXACT, EQUAL, ADDITIVE = 1e-10, 1e-8, 1e-9  # relative to the largest value, value, prediction
WIDTHS = (120, 150, 400)  # distinct features of the deep design
PEER_ROWS = 4  # rows that packages are raced on; their time is taken per row
N_TURNS = 3  # of ours and shap; the others have one
N_SETS = 100


def run(args):
    """Check, race, study the null designs, and draw the figures of docs/shap.md."""
    parts = {
        "correctness": [_check_definitions, _check_extremes, _check_peers, _check_background],
        "race": [_race_friedman, _race_breast_cancer],
        "null": [_null_association, _false_rate],
    }
    parts = {name: checks for name, checks in parts.items() if args.only in name}
    content = {name: [] for name in parts}
    with display.progress(sum(map(len, parts.values()))) as step:
        for name, checks in parts.items():
            for check in checks:
                step(check.__name__.strip("_"))
                content[name] += check(args.quick)
                step()
    shows = {"correctness": table, "race": race_table, "null": null_table}
    for name in content:
        display.show(shows[name](content))
    if args.quick:
        return
    if not args.only:
        display.say(*shap_figures.draw_all())
    before = results.load("shap") or {} if args.only else {}
    kept = {name: rows for name, rows in before.items() if name in shows}
    display.say(f"wrote {results.save('shap', {**kept, **content})}")


def table(content):
    """Table of the checks, and of failures of other packages."""
    return display.Table(
        "SHAP values against their definition",
        ["what", "found", "bar", "reached"],
        [[row["what"], row["found"], row["bar"], row["reached"]] for row in content["correctness"]],
        "Gaps are relative to the largest value, those of sums to the largest prediction. The "
        "deep design: k = permutation(3 p) % p, X = eye(p)[k], y = 1.3**k, one tree. shap sums "
        "interventional values in single precision (tree_shap_indep in its tree_shap.h); it is "
        "compared where that is exact: two features, whole numbers, four trees at most.",
    )


def race_table(content):
    """Table of times per row and tree."""
    return display.Table(
        "Time of SHAP values",
        [
            "case", "package", "per row and tree", "per row and node", "Cartwood is faster", "gap",
            "load",
        ],
        [
            [
                row["case"], row["package"], display.seconds(row["seconds"])
                if row["seconds"] else "-", f"{row['nanoseconds']:.2f} ns"
                if row["nanoseconds"] else "-",
                display.ratio(row["ratio"]) if row["ratio"] else "-", row["gap"],
                f"{row['load']:.1f}",
            ]
            for row in content["race"]
        ],
        f"One run on two cores; the median of {N_TURNS} alternating turns for Cartwood and shap. "
        f"Other packages explain {PEER_ROWS} rows of friedman1 and all of breast_cancer, but only "
        f"{PEER_ROWS} if all take more than {LIMIT:.0f} s; times are per row explained. Cartwood "
        "explains all rows at once with n_jobs=2, and reads the forest each time. A walk of all "
        "nodes: one comparison at every node for every row, also on two cores. Load: of the "
        "machine, over a minute. The bars: 40x shap on friedman1, 20x on breast_cancer.",
    )  # fmt: skip


def null_table(content):
    """Table of the values of noise, in and out of bag."""
    return display.Table(
        "SHAP values of noise, in and out of bag",
        ["what", "found", "bar", "reached"],
        [[row["what"], row["found"], row["bar"], row["reached"]] for row in content["null"]],
        f"{N_SETS} tables of the null case of Strobl et al. (2007), 120 rows. SE: standard error "
        "over the tables. The false rate is the share of tables for which `compare` reports a fall "
        "of |SHAP| although the trees declared not to have seen a row are drawn at random.",
    )


def _row(what, found, bar, reached):
    return {"what": what, "found": found, "bar": bar, "reached": "yes" if reached else "no"}


def _gap(found, expected):
    return float(np.abs(found - expected).max() / np.abs(expected).max())


def _gap_row(what, gap, bar):
    return _row(what, f"{gap:.0e}", f"{bar:.0e}", gap <= bar)


# ------------------------------------------------------------------------------ correctness


def _check_definitions(quick):
    """Compare with all subsets, on trees of 5 and of 10 features."""
    rows = []
    for p in (5,) if quick else (5, 10):
        X, y = make_friedman1(200, p, noise=1.0, random_state=0)
        X = X.astype(np.float32).astype(np.float64)
        model = forest.RandomForestRegressor(2, random_state=0, max_features=3).fit(X, y)
        trees = [tree.tree_ for tree in model.estimators_]
        games = {
            "path-dependent": ({}, oracle.path_dependent),
            "interventional": (
                {"background": X[-3:]},
                lambda tree, x, X=X: oracle.interventional(tree, x, X[-3:]),
            ),
        }
        for name, (options, game) in games.items():
            found = shap_values(model, X[:2], **options).values
            expected = [
                np.mean([oracle.shapley(game(t, x), p) for t in trees], axis=0)[:, 0] for x in X[:2]
            ]
            gap = _gap(found, np.array(expected))
            rows.append(_gap_row(f"{name}, {p} features: largest gap to all subsets", gap, EXACT))
        if p == 5:
            found = shap_values(model, X[:2], interactions=True).interactions
            expected = [
                np.mean([oracle.interactions(oracle.path_dependent(t, x), p) for t in trees], 0)
                for x in X[:2]
            ]
            gap = _gap(found, np.array(expected)[..., 0])
            rows.append(
                _gap_row("interactions, 5 features: largest gap to all subsets", gap, EXACT)
            )
    return rows


def deep_design(p, seed=0):
    """A table on which a tree has about p distinct features on one path."""
    k = np.random.RandomState(seed).permutation(3 * p) % p
    return np.eye(p)[k], 1.3**k


def _check_extremes(quick):
    """Check additivity with many distinct features on one path."""
    rows = []
    for p in WIDTHS[:1] if quick else WIDTHS:
        X, y = deep_design(p)
        model = sklearn.tree.DecisionTreeRegressor(random_state=0).fit(X, y)
        said, found = model.predict(X), shap_values(model, X)
        gap = _gap(found.prediction, said)
        rows.append(_gap_row(f"Cartwood, p = {p}: gap of the sums", gap, ADDITIVE))
        for name in PEERS:
            answer = ask(name, model, X)
            what = f"{name_of(name)}, p = {p}: gap of the sums"
            if answer.values is None:
                rows.append(_row(what, answer.error, f"{ADDITIVE:.0e}", False))
                continue
            values = answer.values.reshape(len(X), -1)
            gap = _gap(values.sum(axis=1) + found.base_value, said)
            words = f"{gap:.0e}, largest value {np.abs(values).max() / said.max():.2g} predictions"
            rows.append(_row(what, words, f"{ADDITIVE:.0e}", gap <= ADDITIVE))
    return rows


def _check_peers(quick):
    """Compare ours with shap's for every kind of estimator that both support."""
    X, y = load_iris(return_X_y=True)
    task = {"Classifier": y, "Regressor": X[:, 0]}
    rows = []
    for kind, suffix, options in _estimators(10):
        package = sklearn.ensemble if options else sklearn.tree
        model = getattr(package, kind + suffix)(random_state=0, **options).fit(X, task[suffix])
        answer = ask("shap", model, X)
        what = f"{kind}{suffix}: largest gap to {name_of('shap')}"
        if answer.values is None:
            rows.append(_row(what, answer.error, f"{EQUAL:.0e}", False))
        else:
            rows.append(_gap_row(what, _gap(shap_values(model, X).values, answer.values), EQUAL))
    return rows


def _check_background(quick):
    """Check interventional values against shap's, and on a tree with more than 2**15 nodes."""
    rng = np.random.RandomState(0)
    X = rng.uniform(size=(2_000 if quick else 20_000, 3))
    model = cart.DecisionTreeRegressor(random_state=0).fit(X, rng.normal(size=len(X)))
    found = shap_values(model, X[:20], background=X[-20:])
    gap = _gap(found.prediction, model.predict(X[:20]))
    what = f"interventional, {model.tree_.node_count:,} nodes: gap of the sums"
    return [_gap_row(what, gap, ADDITIVE), *_against_shap(X)]


def _against_shap(X):
    """Compare with the truth, and with shap's values where single precision is exact."""
    try:
        from shap import TreeExplainer
    except ImportError as error:
        return [_row("interventional: largest gap to shap", str(error)[:80], "-", False)]

    def theirs(model, X, references):
        explainer = TreeExplainer(model, references, feature_perturbation="interventional")
        return explainer.shap_values(X, check_additivity=False)

    X = X[:2_000].astype(np.float32).astype(np.float64)
    y = np.sin(5 * X[:, 0]) + X[:, 1] * X[:, 2]
    model = sklearn.ensemble.RandomForestRegressor(5, max_depth=8, random_state=0).fit(X, y)
    trees, some, references = [tree.tree_ for tree in model.estimators_], X[:10], X[-20:]
    games = [[oracle.interventional(tree, x, references) for tree in trees] for x in some]
    truth = np.array([np.mean([oracle.shapley(g, 3) for g in of], 0)[:, 0] for of in games])
    what, by = "interventional, 5 trees: largest gap to all subsets", name_of("shap")
    ours = shap_values(model, some, background=references).values
    rows = [
        _gap_row(f"Cartwood, {what}", _gap(ours, truth), EXACT),
        _gap_row(f"{by}, {what}", _gap(theirs(model, some, references), truth), EXACT),
    ]
    X = np.random.RandomState(0).permutation(np.argwhere(np.ones((20, 20)))).astype(float)
    target = {"Classifier": (X[:, 0] * X[:, 1]) % 3, "Regressor": (3 * X[:, 0] + X[:, 1] ** 2) % 64}
    for kind, suffix, options in _estimators(4, bootstrap=False):
        package = sklearn.ensemble if options else sklearn.tree
        model = getattr(package, kind + suffix)(random_state=0, **options).fit(X, target[suffix])
        found = shap_values(model, X[:50], background=X[-20:]).values
        gap = _gap(found, theirs(model, X[:50], X[-20:]))
        rows.append(_gap_row(f"interventional, {kind}{suffix}: largest gap to {by}", gap, EQUAL))
    return rows


def _estimators(n_trees, **of_forests):
    """Estimators that shap supports, their tasks and options; those without options are trees."""
    for kind in ("RandomForest", "ExtraTrees", "DecisionTree", "ExtraTree"):
        options = {} if kind.endswith("Tree") else {"n_estimators": n_trees, **of_forests}
        for suffix in ("Classifier", "Regressor"):
            yield kind, suffix, options


# ------------------------------------------------------------------------------------- race


def _race_friedman(quick):
    n_rows, n_trees = (2_000, 10) if quick else (20_000, 100)
    X, y = make_friedman1(n_rows, 10, noise=1.0, random_state=0)
    model = sklearn.ensemble.RandomForestRegressor(n_trees, n_jobs=2, random_state=0).fit(X, y)
    return _race(f"friedman1 {n_rows:,} x 10", model, X[:200], PEER_ROWS)


def _race_breast_cancer(quick):
    X, y = load_breast_cancer(return_X_y=True)
    n_trees = 10 if quick else 100
    model = sklearn.ensemble.RandomForestClassifier(n_trees, random_state=0).fit(X, y)
    return _race("breast_cancer 569 x 30", model, X, len(X))


def _race(case, model, X, n_peer_rows):
    """Time every package in turn, ours between them; packages too slow for all rows get a few."""
    X = X.astype(np.float32).astype(np.float64)  # some packages do not round as the trees did
    trees = [tree.tree_ for tree in model.estimators_]
    n_nodes = np.mean([tree.node_count for tree in trees])
    covered = cover_trees(trees, slice(0, 1))
    ours = partial(shap_values, model, X, n_jobs=2)
    walk = partial(_walk_in_threads, covered, X)
    expected = ours().values
    walk()
    own, bare, answers = [], [], {name: [] for name in PEERS}
    for turn in range(N_TURNS):
        own.append(_seconds(ours))
        bare.append(_seconds(walk))
        for name in PEERS if turn == 0 else ("shap",):
            answer = ask(name, model, X[:n_peer_rows])
            if answer.values is None and answer.seconds == LIMIT and n_peer_rows > PEER_ROWS:
                answer = ask(name, model, X[:PEER_ROWS])
            answers[name].append(answer)
    mine, rows = float(np.median(own)) / len(X) / len(trees), []
    load = getloadavg()[0]

    def add(package, seconds, gap):
        ns = seconds / n_nodes * 1e9 if seconds else None
        ratio = seconds / mine if seconds else None
        rows.append({
            "case": case, "package": package, "seconds": seconds, "nanoseconds": ns,
            "ratio": ratio, "gap": gap, "load": load,
        })  # fmt: skip

    add("Cartwood", mine, "-")
    add("a walk of all nodes", float(np.median(bare)) / len(X) / len(trees), "-")
    for name, turns in answers.items():
        if turns[0].values is None:
            add(name_of(name), None, turns[0].error)
            continue
        seconds = float(np.median([answer.seconds for answer in turns]))
        n_rows, gap = _compared(turns[0].values, expected)
        add(name_of(name), seconds / n_rows / len(trees), gap)
    return rows


def _compared(said, expected):
    """How many rows a package explains, and the gap; if it gives one class, that with the least."""
    if said.ndim == 3 and said.shape[0] == 2:  # classes first
        said = np.moveaxis(said, 0, -1)
    known = expected[: len(said)]
    if said.ndim < known.ndim:
        return len(said), f"{min(_gap(said, of) for of in np.moveaxis(known, -1, 0)):.0e}"
    is_same = said.shape == known.shape
    return len(said), f"{_gap(said, known):.0e}" if is_same else f"shape {said.shape}"


def _seconds(work):
    """Seconds per call, averaged over enough calls: a few milliseconds are easily disturbed."""
    start, n = perf_counter(), 0
    while n == 0 or perf_counter() - start < LEAST_SECONDS:
        work()
        n += 1
    return (perf_counter() - start) / n


def _walk_in_threads(covered, X):
    """Compare every row at every node, in two threads."""
    from cart.primitives.threads import in_parts

    columns = np.ascontiguousarray(X.T)

    def work(first, end):
        _walk_all(covered, columns, np.arange(first, end), np.zeros(1))

    in_parts(work, len(X), 2)


@entry_kernel
def _walk_all(trees, columns, rows, found):
    for t in range(trees.depth.shape[0]):
        for node in range(trees.start[t], trees.start[t + 1]):
            values = columns[trees.features[trees.start[t] + trees.feature[node]]]
            threshold, share = trees.threshold[node], trees.share[node]
            for i in range(rows.shape[0]):
                if values[rows[i]] <= threshold:
                    found[0] += share


# ------------------------------------------------------------------------------ null designs


def _null_association(quick):
    """For each tree, the mean over rows of phi times y, on in-bag and on out-of-bag rows."""
    n_sets, n_trees = (5, 10) if quick else (N_SETS, 50)
    found, sizes = np.empty((2, n_sets, 5)), np.empty((2, n_sets, 5))
    for s in range(n_sets):
        X, y = strobl_2007(120, np.random.RandomState(s))
        model = forest.RandomForestClassifier(n_trees, random_state=s).fit(X, y)
        adopted = forest_or_tree(model)
        out = trees_out_of_bag(adopted, X)
        for place, takes in enumerate((~out, out)):
            of_trees = [
                _association(tree, X[rows], y[rows])
                for tree, rows in zip(model.estimators_, takes, strict=True)
            ]
            found[place, s] = np.mean(of_trees, axis=0)
            sizes[place, s] = explain(adopted, X, takes).mean_abs().values
    rows = []
    for place, where in enumerate(("seen", "not seen")):
        mean = found[place].mean(axis=0)
        error = found[place].std(axis=0, ddof=1) / np.sqrt(n_sets)
        for j in range(5):
            z = mean[j] / error[j]
            reached = abs(z) <= 3.0 if place else abs(z) > 3.0
            words = f"{mean[j]:.2e}, {z:.1f} SE from 0; mean |SHAP| {sizes[place, :, j].mean():.3f}"
            bar = "at most 3 SE" if place else "more than 3 SE"
            rows.append(_row(f"x{j + 1}: phi times y, rows {where}", words, bar, reached))
    return rows


def _association(tree, X, y):
    values = shap_values(tree, X).values[:, :, 1]
    return (values * (y - y.mean())[:, np.newaxis]).mean(axis=0)


def _false_rate(quick):
    """How often `compare` reports a fall, with exchanged out-of-bag rows and with the true ones."""
    n_sets = 5 if quick else N_SETS
    designs = {
        "noise": lambda s: strobl_2007(120, np.random.RandomState(s)),
        "friedman1, 200 rows": lambda s: make_friedman1(200, 10, noise=1.0, random_state=s),
    }
    rows = []
    for name, make in designs.items():
        spoke = np.zeros(2, int)
        for s in range(n_sets):
            X, y = make(s)
            kind = forest.RandomForestClassifier if name == "noise" else (
                forest.RandomForestRegressor
            )  # fmt: skip
            model = kind(100, random_state=s).fit(X, y)
            adopted = forest_or_tree(model)
            inside, out = mean_absolute_shap(model, X), trees_out_of_bag(adopted, X)
            exchanged = np.random.default_rng(s).permuted(out, axis=1)
            notable = inside.values >= 0.5 * inside.values.mean()
            for place, takes in enumerate((exchanged, out)):
                outside = explain(adopted, X, takes).mean_abs(per_row=True)
                spoke[place] += (falls_out_of_bag(inside, outside) & notable).any()
        rate = spoke / n_sets
        rows.append(_row(f"{name}: false rate of a fall", f"{rate[0]:.0%}", "5 %", rate[0] <= 0.05))
        rows.append(_row(f"{name}: rate of a fall, rows not seen", f"{rate[1]:.0%}", "-", True))
    return rows
