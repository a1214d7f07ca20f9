"""`cartwood compare`: our forest and scikit-learn's on one table, one split and one seed."""

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from cartwood import interop, page
from cartwood.commands import fitting, judging
from cartwood.terminal import Steps, UserError, counted, print_table, say

HELP = "compare Cartwood's forest with scikit-learn's: scores, times and importances"
EXAMPLES = (
    "cartwood compare houses.csv --target price",
    "cartwood compare houses.csv --target price --no-permutation   # scikit-learn's takes longest",
)
N_REPEATS = 5  # of scikit-learn's permutations
TEST_SHARE = 0.25  # of the rows
TOP = 25  # columns that the page shows as bars


class Side(NamedTuple):
    """The results of one library's forest on the table.

    Attributes
    ----------
    name : str
    model : fitted forest
    score, seconds_fit, seconds_predict : float
        Accuracy or R² on the held-out rows; times of one run.
    is_useless : bool
        See `fitting.is_useless`.
    mdi : ndarray of shape (n_columns,)
    permutation, error : ndarray of shape (n_columns,), or None
        Out of bag for ours, with standard errors over data; on the held-out rows for
        scikit-learn's, with standard errors of a mean over permutations.
    """

    name: str
    model: Any
    score: float
    seconds_fit: float
    seconds_predict: float
    is_useless: bool
    mdi: np.ndarray
    permutation: np.ndarray | None = None
    error: np.ndarray | None = None


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of a fit, what to leave out, and where the page goes."""
    fitting.add_arguments(parser)
    parser.add_argument(
        "--exact", action="store_true",
        help="judge each of Cartwood's trees on all its out-of-bag rows, not on "
        f"{judging.MAX_ROWS:,} drawn ones",
    )  # fmt: skip
    parser.add_argument(
        "--no-permutation", action="store_true", help="leave out permutation importances"
    )
    parser.add_argument(
        "--output", type=Path, metavar="FILE", help="where to write the page (compare-TABLE.html)"
    )


def run(args: Namespace) -> None:
    """Fit and judge both forests, print the table, and write the page."""
    training = fitting.load(args)
    _refuse_too_large(training.X)
    split = _split(training, args.seed)
    ours = _measure_ours(training, split, args)
    peer = _measure_peer(training, split, ours.model, args)
    lead = finding(ours, peer, training, len(split[1]))
    columns, rows = _table(ours, peer, list(training.X.columns))
    say("", lead)
    print_table(columns, rows)
    say(*fitting.doubts_on_copies(ours.model, split[0], split[2]))
    title = f"Cartwood and scikit-learn on {training.name}"
    page.write(args.output, title, lead, _blocks(ours, peer, training))
    say(f"the page is {args.output}")


def _refuse_too_large(X):
    """Refuse numbers too large for scikit-learn's forest, before anything is fitted."""
    largest = X.select_dtypes("number").abs().max()
    for name in largest.index[largest > np.finfo(np.float32).max][:1]:
        raise UserError(
            f"column {name!r} has numbers above 3.4e38, which scikit-learn's forest refuses; "
            f'--drop "{name}" leaves it out.'
        )


def _split(training, seed):
    """Training and test tables, training and test targets."""
    from sklearn.model_selection import train_test_split

    return train_test_split(training.X, training.task.y, test_size=TEST_SHARE, random_state=seed)


def _measure_ours(training, split, args):
    from importance import mdi, oob_permutation

    X, X_test, y, y_test = split
    model = fitting.new_forest(training, args)
    small = fitting.new_forest(training, args).set_params(n_estimators=1, oob_score=False)
    small.fit(X, y).predict(X_test)  # compiles the kernels, so that times are without it
    side = _fit("Cartwood", model, X, X_test, y, y_test)
    side = side._replace(mdi=mdi(model).values)
    if args.no_permutation:
        say("permutation importances are left out (--no-permutation)")
        return side
    n = None if args.exact else judging.MAX_ROWS
    with Steps("permuting columns out of bag, Cartwood", len(model.estimators_)) as step:
        result = oob_permutation(model, X, y, max_rows=n, n_jobs=args.n_jobs, callback=step)
    if result.max_rows is not None:
        say(f"{judging.drawn(result)}; --exact uses all")
    return side._replace(permutation=result.values, error=result.standard_error)


def _measure_peer(training, split, ours, args):
    from sklearn.inspection import permutation_importance
    from sklearn.metrics import get_scorer

    X, X_test, y, y_test = split
    categorical = training.recipe.categorical
    if categorical:
        say(f"scikit-learn needs numbers: its forest gets codes for {', '.join(categorical)}")
    numbers = interop.encode(X, categorical, X)
    X_test = interop.encode(X_test, categorical, X)
    peer = interop.peer_of(ours)
    about = f" (about {_estimate(peer, numbers, y, args.n_jobs):.0f} s, judging by its first trees)"
    side = _fit("scikit-learn", peer, numbers, X_test, y, y_test, about)
    side = side._replace(mdi=peer.feature_importances_)
    if args.no_permutation:
        return side
    scoring = "neg_mean_squared_error" if judging.is_regression(training) else "accuracy"
    score = get_scorer(scoring)
    n_scores = 1 + X_test.shape[1] * N_REPEATS
    with Steps("permuting columns of held-out rows, scikit-learn", n_scores) as step:

        def score_and_tell(*given):
            found = score(*given)
            step()
            return found

        found = permutation_importance(
            peer, X_test, y_test, scoring=score_and_tell, n_repeats=N_REPEATS,
            random_state=args.seed,
        )  # fmt: skip
    error = found.importances.std(axis=1, ddof=1) / np.sqrt(N_REPEATS)
    return side._replace(permutation=found.importances_mean, error=error)


def _estimate(model, X, y, n_jobs):
    """Estimated seconds of a fit by scikit-learn, which does not report progress.

    Scales up the time of a fit with one tree per thread.
    """
    from sklearn.base import clone

    n_first = min(n_jobs, model.n_estimators)
    first = clone(model).set_params(n_estimators=n_first, oob_score=False)
    return _seconds(lambda: first.fit(X, y)) * model.n_estimators / n_first


def _fit(name, model, X, X_test, y, y_test, about=""):
    """Fit one forest; return its side without importances. Ours reports every tree."""
    is_ours = "callback" in model.get_params(deep=False)
    n_steps = model.n_estimators if is_ours else 1
    trees = counted(model.n_estimators, "tree")
    progress = Steps(f"growing {trees}, {name}{about}", n_steps)
    if is_ours:
        model.set_params(callback=progress)
    with progress, fitting.quiet_about_rows_in_every_bag():
        seconds_fit = _seconds(lambda: model.fit(X, y))
    seconds_predict = _seconds(lambda: model.predict(X_test))
    score = model.score(X_test, y_test)
    is_useless = fitting.is_useless(model, y)
    return Side(name, model, score, seconds_fit, seconds_predict, is_useless, np.empty(0))


def _seconds(call: Callable[[], Any]) -> float:
    begin = perf_counter()
    call()
    return perf_counter() - begin


def finding(ours: Side, peer: Side, training: fitting.Training, n_test: int) -> str:
    """One sentence: which is faster, which predicts better, whether they agree on what matters."""
    score = "R²" if judging.is_regression(training) else "accuracy"
    agreement = _agreement(ours, peer, training.X.columns)
    return (
        f"On {training.name}, Cartwood fits in {page.seconds(ours.seconds_fit)} and scikit-learn "
        f"in {page.seconds(peer.seconds_fit)}; on {n_test:,} held-out rows their {score} is "
        f"{ours.score:.3f} and {peer.score:.3f}; {agreement}."
    )


def _agreement(ours, peer, columns):
    """Which column comes first on either side, if it is clearly above 0 on both."""
    first = [np.argmax(_leading(side)) for side in (ours, peer)]
    names = columns[first]
    for side, j in zip((ours, peer), first, strict=True):
        error = 0.0 if side.error is None else side.error[j]
        is_clear = _leading(side)[j] > judging.CLEAR * error
        if side.is_useless or not is_clear:
            why = "forest predicts no better than a constant"
            if not side.is_useless:
                why = "largest importance is not clearly above 0"
            return f"which column matters most is unknown, because {side.name}'s {why}"
    by = "MDI" if ours.permutation is None else "permutation"
    if names[0] == names[1]:
        return f"by {by}, {names[0]} comes first in both"
    return f"by {by}, {names[0]} comes first in Cartwood's forest, {names[1]} in scikit-learn's"


def _leading(side):
    return side.mdi if side.permutation is None else side.permutation


def _table(ours, peer, names):
    """Every column with the measures of both sides, the most important for ours first."""
    order = np.argsort(-_leading(ours), kind="stable")
    columns, cells = ["column"], [[names[j] for j in order]]
    for side in (ours, peer):
        if side.permutation is not None:
            columns.append(f"permutation, {side.name}")
            cells.append(page.estimates(side.permutation[order], side.error[order]))
    for side in (ours, peer):
        columns.append(f"MDI, {side.name}")
        cells.append(page.estimates(side.mdi[order]))
    return columns, list(zip(*cells, strict=True))


def _blocks(ours, peer, training) -> Iterator[str]:
    """The blocks of the page."""
    score = "R²" if judging.is_regression(training) else "accuracy"
    yield page.heading("Scores and times")
    yield page.table(
        ["", ours.name, peer.name],
        [
            (f"{score} on held-out rows", f"{ours.score:.4f}", f"{peer.score:.4f}"),
            (f"{score} out of bag", *(f"{s.model.oob_score_:.4f}" for s in (ours, peer))),
            ("fit", *(page.seconds(s.seconds_fit) for s in (ours, peer))),
            ("predict the held-out rows", *(page.seconds(s.seconds_predict) for s in (ours, peer))),
        ],
        "Each was run once; Cartwood's kernels were compiled before. Where columns hold "
        "categories, scikit-learn's forest gets codes for them, so the models differ.",
    )
    for title, attribute, unit in (
        (
            "Permutation", "permutation",
            "± one standard error, over data for Cartwood and over permutations for scikit-learn",
        ),
        ("Mean decrease in impurity", "mdi", "shares, which sum to 1"),
    ):  # fmt: skip
        if getattr(ours, attribute) is None:
            continue
        for side in (ours, peer):
            yield page.heading(f"{title}, {side.name}")
            yield _bars(side, attribute, list(training.X.columns))
        yield page.note(f"{unit[0].upper()}{unit[1:]}.")
    yield page.heading("All columns")
    yield page.table(*_table(ours, peer, list(training.X.columns)))


def _bars(side, attribute, names):
    values = getattr(side, attribute)
    shown = np.argsort(-values, kind="stable")[:TOP]
    errors = side.error if attribute == "permutation" else np.zeros(len(values))
    texts = page.estimates(values[shown])
    return page.bars([names[j] for j in shown], values[shown], errors[shown], texts)
