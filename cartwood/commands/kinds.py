"""Small calls of every kind, which together compile the kernels that users need.

    a kind of tree      by itself, with the usual criteria, for a tree and a forest
    a prediction        of fitted forests, in and out of bag
    an importance       of forests of numbers and of categories

Each kind is compiled by itself; of the combinations of two (such as bins with three outputs) only a
few are covered.
"""

import functools
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

_N_ROWS = 60
_CATEGORIES = {"categorical_features": [4]}
_BINS = {"max_bins": 255}
_BY_SURROGATES = {"missing": "surrogate", "surrogates": 2, "competitors": 1}


# Cases for which wheels have kernels in addition to the plain ones: tables with categories and
# dates, those that are mostly 0, extra trees, class weights, the importances of `cartwood
# importance` and of the README.
USUAL = (
    "classes: categories, gini", "classes: categories, gini, a forest",
    "classes: numbers, gini, extra trees", "classes: oob_permutation, numbers",
    "classes: oob_permutation, categories", "classes: unbiased_mdi, categories",
    "classes: class weights", "classes: class weights, three classes", "classes: sparse, gini",
    "classes: indicators, gini", "numbers: indicators, squared_error",
    "numbers: categories, squared_error", "numbers: categories, squared_error, a forest",
    "numbers: categories, whole targets",
    "numbers: numbers, squared_error, extra trees", "numbers: oob_permutation, numbers",
    "numbers: oob_permutation, categories", "numbers: unbiased_mdi, categories",
    "numbers: double precision, squared_error, a forest", "numbers: double precision, leaves",
    "numbers: oob_permutation of scikit-learn's forest", "numbers: nodes that threads share",
)  # fmt: skip


class Work(NamedTuple):
    """A name, and the call that compiles the kernels."""

    name: str
    call: Callable[[], Any]


class Side(NamedTuple):
    """Estimators of classification or regression, usual and other criteria, and targets."""

    Tree: Any
    Extra: Any
    Pruned: Any
    Forest: Any
    Extras: Any
    criteria: tuple[str, ...]
    others: tuple[str, ...]
    y: np.ndarray
    outputs: np.ndarray  # of shape (n_rows, 3)


class Tables(NamedTuple):
    """The same rows in all forms that have kernels of their own."""

    numbers: np.ndarray  # the last column has three values
    missing: np.ndarray
    sparse: scipy.sparse.csc_matrix
    many: np.ndarray  # with more distinct values than 16 bits can number

    @property
    def indicators(self) -> np.ndarray:
        """As many columns of two values as are grown on by bits."""
        return np.tile(self.numbers > 0, 6).astype(float)

    def by_name(self) -> Iterator[tuple[str, Any, dict]]:
        """Name, table, and the parameters that ask for it."""
        yield "numbers", self.numbers, {}
        yield "missing values", self.missing, {}
        yield "categories", self.numbers, _CATEGORIES
        yield "missing values and categories", self.missing, _CATEGORIES
        yield "bins", self.numbers, _BINS
        yield "double precision", self.numbers, {"precision": "float64"}
        yield "sparse", self.sparse, {}

    def numbers_and_categories(self, criterion: str = "") -> Iterator[tuple[str, Any, dict]]:
        """Tables whose kernels differ for all criteria; absolute_error takes no categories."""
        yield "missing values", self.missing, {}
        if criterion != "absolute_error":
            yield "categories", self.numbers, _CATEGORIES


def all_work() -> list[Work]:
    """All work, the plain cases first."""
    import cart.__main__ as plain

    rng = np.random.default_rng(0)
    X = rng.normal(size=(_N_ROWS, 5))
    X[:, 4] = rng.integers(0, 3, _N_ROWS)
    missing = np.where(rng.random(X.shape) < 0.1, np.nan, X)
    many = rng.random((plain.MANY, 2))
    sparse = scipy.sparse.csc_matrix(np.where(X > 2, X, 0.0))  # a fuller one is made dense
    tables = Tables(X, missing, sparse, many)
    work = [Work("random draws", lambda: plain.first_draws([0], 2))]
    work += [Work(case.name, partial(plain.use, case)) for case in plain.CASES]
    for name, side in _sides(rng).items():
        parts = (_tables, _parameters, _outputs, _books, _predictions, _partitions, _importances)
        for part in parts:
            work += (Work(f"{name}: {what}", call) for what, call in part(side, tables))
    return work


def usual_work() -> list[Work]:
    """The work whose kernels wheels have in addition to the plain cases."""
    work = {each.name: each for each in all_work()}
    return [work[name] for name in USUAL]


def _sides(rng):
    import cart
    import forest

    classes, numbers = rng.integers(0, 2, _N_ROWS), rng.normal(size=_N_ROWS) ** 2
    return {
        "classes": Side(
            cart.DecisionTreeClassifier, cart.ExtraTreeClassifier, cart.PrunedTreeClassifier,
            forest.RandomForestClassifier, forest.ExtraTreesClassifier,
            ("gini", "entropy"), ("twoing", "ordered_twoing"), classes,
            rng.integers(0, 3, (_N_ROWS, 3)),
        ),
        "numbers": Side(
            cart.DecisionTreeRegressor, cart.ExtraTreeRegressor, cart.PrunedTreeRegressor,
            forest.RandomForestRegressor, forest.ExtraTreesRegressor,
            ("squared_error",), ("absolute_error", "poisson"), numbers,
            rng.normal(size=(_N_ROWS, 3)) ** 2,
        ),
    }  # fmt: skip


def _fit(model, X, y, **weights):
    return lambda: model.fit(X, y, **weights).predict(X)


def _tables(side, tables):
    """A tree, a forest and extra trees on every form of table."""
    for criterion in side.criteria:
        for what, X, asked in tables.by_name():
            parameters = {"criterion": criterion, **asked}
            yield f"{what}, {criterion}", _fit(side.Tree(**parameters), X, side.y)
            forest = side.Forest(3, oob_score=what != "sparse", **parameters)
            yield f"{what}, {criterion}, a forest", _fit(forest, X, side.y)
            if "max_bins" not in asked:
                extras = side.Extras(3, **parameters)
                yield f"{what}, {criterion}, extra trees", _fit(extras, X, side.y)
    yield "an extra tree", _fit(side.Extra(), tables.numbers, side.y)
    if "squared_error" in side.criteria:
        tree = side.Tree(**_CATEGORIES)
        yield "categories, whole targets", _fit(tree, tables.numbers, np.rint(side.y))
    for criterion in side.others:
        for what, X, asked in tables.numbers_and_categories(criterion):
            model = side.Forest(3, criterion=criterion, **asked)
            yield f"{what}, {criterion}", _fit(model, X, side.y)
        model = side.Forest(1, criterion=criterion, max_depth=2)
        yield f"many values, {criterion}", _fit(model, tables.many, _repeated(side.y, tables))


def _repeated(y, tables):
    """Targets repeated for the rows of `tables.many`."""
    return np.resize(y, (len(tables.many), *y.shape[1:]))


def _parameters(side, tables):
    """Parameters that select other kernels: limits, weights, draws, constraints."""
    X, y, Tree, Forest = tables.numbers, side.y, side.Tree, side.Forest
    for what, table, asked in tables.numbers_and_categories():
        for criterion in side.criteria:
            best_first = {"criterion": criterion, "max_leaf_nodes": 5, **asked}
            yield f"best first, {what}, {criterion}", _fit(Forest(3, **best_first), table, y)
        extras = side.Extras(3, max_leaf_nodes=5, **asked)
        yield f"best first, {what}, extra trees", _fit(extras, table, y)
    for criterion in side.criteria:
        model, many_y = Forest(1, criterion=criterion, max_leaf_nodes=3), _repeated(y, tables)
        yield f"best first, many values, {criterion}", _fit(model, tables.many, many_y)
        yield f"indicators, {criterion}", _fit(Tree(criterion=criterion), tables.indicators, y)
    fractions = np.linspace(0.5, 1.5, _N_ROWS)
    for criterion in side.criteria:
        fit = partial(Forest, 3, criterion=criterion)
        yield f"fractional weights, {criterion}", _fit(fit(), X, y, sample_weight=fractions)
        yield f"monotonic, {criterion}", _fit(fit(monotonic_cst=[1, -1, 0, 0, 0]), X, y)
        yield f"least weight of leaves, {criterion}", _fit(fit(min_weight_fraction_leaf=0.05), X, y)
    yield "few features a split", _fit(Forest(3, max_features=1), X, y)
    yield "few features a split, indicators", _fit(Tree(max_features=5), tables.indicators, y)
    yield "cost-complexity pruning", _fit(Tree(ccp_alpha=0.01), X, y)
    yield "fractional weights, extra trees", _fit(side.Extras(3), X, y, sample_weight=fractions)
    if len(np.unique(y)) > 2:
        yield "nodes that threads share", partial(_share_nodes, X, y)
    if len(np.unique(y)) == 2:
        three, balanced = side.outputs[:, 0], {"class_weight": "balanced"}
        yield "class weights", _fit(Forest(3, class_weight="balanced_subsample"), X, y)
        yield "class weights, three classes", _fit(Tree(**balanced), X, three)
        extras = side.Extras(3, **balanced)
        yield "class weights, three classes, extra trees", _fit(extras, X, three)
    keyed_rows = Forest(3, bootstrap_draw="keyed", oob_score=True)
    yield "keyed draws of rows", _fit(keyed_rows, X, y)


def _share_nodes(X, y):
    """Do the work that threads without a tree do for others (see `FastPath.helper`)."""
    from cart import DecisionTreeRegressor
    from cart.fast_paths.regression.sorted_path import SortedPath
    from cart.growth.plan import make_plan
    from cart.splitting.criteria import SquaredError
    from cart.table.columns import Columns
    from cart.table.encoding import encode

    plan = make_plan(DecisionTreeRegressor(), SquaredError, "best", *X.shape, 1, 1)
    path = SortedPath(encode(Columns(X.astype(np.float32))), y[:, np.newaxis], plan)
    path.grow(np.ones((1, len(y))), [0], True)
    path.helper()()


def _outputs(side, tables):
    """Fits with three outputs, and with more where these have kernels of their own."""
    for criterion in side.criteria:
        for what, X, asked in tables.numbers_and_categories(criterion):
            model = side.Forest(3, criterion=criterion, **asked)
            yield f"three outputs, {what}, {criterion}", _fit(model, X, side.outputs)
        tree = side.Tree(criterion=criterion)
        yield f"three outputs, indicators, {criterion}", _fit(tree, tables.indicators, side.outputs)
        model, y = side.Forest(1, criterion=criterion, max_depth=2), _repeated(side.outputs, tables)
        yield f"three outputs, many values, {criterion}", _fit(model, tables.many, y)
    if len(np.unique(side.y)) > 2:
        for criterion in side.others:
            model = side.Forest(3, criterion=criterion)
            yield f"three outputs, {criterion}", _fit(model, tables.numbers, side.outputs)
    for what, X, asked in tables.numbers_and_categories():
        yield f"three outputs, {what}, extra trees", _fit(side.Extras(3, **asked), X, side.outputs)
    if "squared_error" in side.criteria:
        for what, model in (("forest", side.Forest(3)), ("extra trees", side.Extras(3))):
            six = np.tile(side.outputs, 2)
            yield f"six outputs, {what}", _fit(model, tables.numbers, six)


def _books(side, tables):
    """Surrogates, the other rules for missing values, priors and losses, pruning by risk."""
    from cart import cp_table, cv_prune

    X, y = tables.missing, side.y
    for criterion in side.criteria:
        for more, asked in (("", {}), (", categories", _CATEGORIES)):
            model = side.Forest(3, criterion=criterion, **_BY_SURROGATES, **asked)
            yield f"surrogates, {criterion}{more}", _fit(model, X, y)
            model = side.Forest(3, criterion=criterion, missing="majority", **asked)
            yield f"majority, {criterion}{more}", _fit(model, X, y)
        model = side.Forest(3, criterion=criterion, **_BY_SURROGATES)
        yield f"surrogates, complete rows, {criterion}", _fit(model, tables.numbers, y)

    @functools.cache
    def fitted():
        return side.Forest(5, random_state=0, **_BY_SURROGATES).fit(X, y)

    yield "surrogates, a tree", _fit(side.Tree(**_BY_SURROGATES), X, y)
    yield "importance of surrogates", partial(_judge, "surrogate_importance", fitted)
    whole, given = side.Forest(5, random_state=0, **_BY_SURROGATES), (tables.numbers, y)
    out_of_bag = partial(_judge, "surrogate_importance", lambda: whole.fit(*given), *given)
    yield "importance of surrogates out of bag", partial(out_of_bag, on="oob")
    yield "masking", partial(_judge, "masking", fitted)
    yield "pruning by risk", lambda: cp_table(cv_prune(side.Tree(random_state=0), X, y, cv=3))
    yield "a pruned tree", _fit(side.Pruned(cv=3), tables.numbers, y)
    if len(np.unique(y)) == 2:
        costs = {"priors": [0.3, 0.7], "loss": [[0.0, 2.0], [1.0, 0.0]]}
        yield "priors and losses", _fit(side.Forest(3, **costs), tables.numbers, y)


def _predictions(side, tables):
    """Everything that fitted forests predict."""
    from forest import nearest_rows, outlier_scores, proximity

    X, y = tables.numbers, side.y

    @functools.cache
    def fitted():
        return side.Forest(20, random_state=0).fit(X, y)

    yield "leaves", lambda: (fitted().apply(X), fitted().decision_path(X))
    yield "double precision, leaves", lambda: side.Tree(precision="float64").fit(X, y).apply(X)
    rows = scipy.sparse.csr_matrix(X)
    wide = np.asfortranarray(np.tile(X, (1, 20)))
    forms = wide, wide.copy(), wide.astype(np.float32)
    yield "wide tables", lambda: list(map(side.Tree(max_depth=2).fit(wide, y).apply, forms))
    yield "sparse rows", lambda: (fitted().predict(rows), fitted().apply(rows))
    yield "out of bag", lambda: fitted().out_of_bag(X, y)
    is_classes = len(np.unique(y)) == 2
    for voting in ("oob_weighted", "stacked", *(["majority"] if is_classes else [])):
        yield f"{voting} votes", _fit(side.Forest(5, voting=voting, random_state=0), X, y)
    if is_classes:
        yield "standard errors", lambda: fitted().predict_proba_std(X)
    else:
        yield "quantiles", lambda: fitted().predict_quantiles(X, [0.1, 0.9])
        yield "intervals", lambda: fitted().predict_interval(X)
        yield "standard errors", lambda: fitted().predict(X, return_std=True)
    for pairs in ("all", "out_of_bag", "gap"):
        yield f"proximity, {pairs}", lambda pairs=pairs: proximity(fitted(), X, pairs=pairs)
    labels = y if is_classes else None
    yield "rows alike", lambda: (nearest_rows(fitted(), X, 3), outlier_scores(fitted(), X, labels))


def _partitions(side, tables):
    """A forest of a table in partitions, grown by threads of this process."""
    if find_spec("dask") is None:
        return
    from importlib import import_module

    together = import_module("forest.dask")
    for criterion in side.criteria:
        model = side.Forest(2, criterion=criterion, **_BINS, feature_draw="keyed")
        parts = np.array_split(tables.missing, 2), np.array_split(side.y, 2)
        yield f"partitions, {criterion}", partial(together.fit, model, *parts)


def _importances(side, tables):
    """Every measure on numbers; on missing values and categories, those with other kernels."""
    from forest.interop.bridge import to_sklearn

    X, y = tables.numbers, side.y

    @functools.cache
    def peer():
        return to_sklearn(side.Forest(20, random_state=0).fit(X, y))

    for name in ("oob_permutation", "unbiased_mdi"):
        yield f"{name} of scikit-learn's forest", partial(_judge, name, peer, X, y)
    yield "SHAP values of scikit-learn's forest", partial(_judge, "shap_values", peer, X)
    for what, table, asked in [*tables.by_name()][:3]:

        @functools.cache
        def fitted(table=table, asked=asked):
            return side.Forest(20, random_state=0, **asked).fit(table, y)

        few = {"conditional_permutation", "drop_column", "oob_permutation", "shap_values",
               "unbiased_mdi"}  # fmt: skip
        for name, options in _MEASURES.items():
            function = name.partition(",")[0]
            if what == "numbers" or function in few:
                given = _GIVEN.get(function, lambda X, y: (X, y))(table, y)
                yield f"{name}, {what}", partial(_judge, function, fitted, *given, **options)
    small = side.Forest(3, random_state=0)
    beside = partial(_judge, "shap_values", lambda: small.fit(X, y), X)
    yield "SHAP values beside a background", partial(beside, background=X[:5])


def _judge(name, fitted, *given, **options):
    """Compute an importance of a forest, which is fitted only at this point."""
    import importance

    return getattr(importance, name)(fitted(), *given, **options)


# Arguments besides the forest, for functions that do not take X and y.
_GIVEN: dict[str, Callable[[Any, Any], tuple]] = {
    "mdi": lambda X, y: (),
    "held_out_permutation": lambda X, y: (X + 0.5, y),
    "shap_values": lambda X, y: (X,),
}
_FEW: dict[str, Any] = {"random_state": 0, "n_jobs": 1}
# Options by name of the function; a comma separates what tells its cases apart.
_MEASURES: dict[str, dict[str, Any]] = {
    "mdi": {},
    "unbiased_mdi": {},
    "unbiased_mdi, out of bag": {"method": "mdi_oob"},
    "optimism": {},
    "oob_permutation": {},
    "oob_permutation, groups": {"groups": {"some": [0, 1], "others": [2, 3, 4]}},
    "oob_permutation, ranger's": {"definition": "ranger", "random_state": 0},
    "held_out_permutation": {},
    "forest_permutation": {"n_repeats": 1},
    "conditional_permutation": {},
    "conditional_permutation, neighbours": {"method": "neighbours"},
    "conditional_test": {"cv": 2, "n_draws": 2, **_FEW},
    "drop_column": {},
    "over_data": {"n_subsamples": 2, **_FEW},
    "permutation_test": {"n_repeats": 2, **_FEW},
    "shadow": {"n_rounds": 2, **_FEW},
    "select_features": {"n_rounds": 19, **_FEW},
    "shap_values": {},
    "shap_values, out of bag": {"out_of_bag": True},
    "shap_values, interactions": {"interactions": True},
    "compare": {},
}
