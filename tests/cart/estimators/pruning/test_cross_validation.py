"""Pruning by risk and cross-validation, against all subtrees and against plain loops of fits."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold
from sklearn.tree import DecisionTreeClassifier as PeerTree

import cart
from cart import (
    CpTable,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    PrunedTreeClassifier,
    PrunedTreeRegressor,
    cp_table,
    cv_prune,
    prune_at,
)
from cart.estimators.class_costs import node_costs
from cart.estimators.pruning.folds import folds_of
from forest import RandomForestClassifier
from tests.data import load
from tests.examples import examples

LOSS = [[0, 3], [1, 0]]
LAST = (np.arange(60) == 59) * 1.0
seeds = st.integers(0, 2**32 - 1)


def small(seed, n=60, is_classification=True):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 30, (n, 3)).astype(float)
    signal = X[:, 0] + 10 * rng.standard_normal(n)
    y = (signal > 15).astype(int) if is_classification else signal
    y[:2] = 0, 1
    return X, y, rng


def subtrees(tree, node, risk):
    """(leaves, risk) of all subtrees below a node, as Pareto-best pairs by number of leaves."""
    best = {1: risk[node]}
    if tree.children_left[node] >= 0:
        left = subtrees(tree, tree.children_left[node], risk)
        right = subtrees(tree, tree.children_right[node], risk)
        for a, risk_a in left.items():
            for b, risk_b in right.items():
                best[a + b] = min(best.get(a + b, np.inf), risk_a + risk_b)
    return best


@examples(30)
@given(seeds)
def test_no_subtree_is_better(seed):
    """At any complexity: of all subtrees the pruned one costs least, and is the smallest such."""
    is_classification = seed % 2 == 0
    X, y, _rng = small(seed, 40, is_classification)
    if is_classification:
        model = DecisionTreeClassifier(random_state=0, loss=LOSS, priors=[0.4, 0.6])
    else:
        model = DecisionTreeRegressor(random_state=0)
    model.fit(X, y)
    tree = model.tree_
    table = cp_table(model)
    if is_classification:
        risk = node_costs(tree, np.array(LOSS))
    else:
        risk = tree.weighted_n_node_samples * tree.impurity / len(y)
    every = subtrees(tree, 0, risk / risk[0])
    sizes, risks = np.array([*every]), np.array([*every.values()])
    for i in range(len(table.cp) - 1):
        cp = (table.cp[i] + table.cp[i + 1]) / 2
        costs = risks + cp * sizes
        rounding = min(1e-9, (table.cp[i] - table.cp[i + 1]) / 4)  # a leaf more costs twice this
        n_leaves = sizes[costs <= costs.min() + rounding].min()
        assert n_leaves == table.n_splits[i + 1] + 1
        assert costs.min() == pytest.approx(table.rel_error[i + 1] + cp * n_leaves)
        assert prune_at(model, cp).get_n_leaves() == n_leaves
        assert prune_at(model, table.cp[i]).get_n_leaves() == table.n_splits[i] + 1


def table_by_fits(model, X, y, weight, folds, loss_of):
    """xerror and xstd from a fit for every fold and complexity."""
    whole = clone(model).fit(X, y, weight)
    table = cp_table(whole)
    alphas = table.cp * table.root_risk
    halfway = [1e9, *np.sqrt(alphas[:-1] * alphas[1:])]
    lost = np.zeros((len(alphas), len(y)))
    for fold in np.unique(folds):
        rows, held_out = folds != fold, folds == fold
        of_fold = clone(model).fit(X[rows], y[rows], weight[rows])
        root = cp_table(of_fold).root_risk
        for a, alpha in enumerate(halfway):
            smaller = prune_at(of_fold, alpha / root)
            lost[a, held_out] = loss_of(smaller, X[held_out], y[held_out])
    unit = weight.sum() * table.root_risk
    xrisk = lost @ weight
    xstd = np.sqrt((lost**2) @ weight - xrisk**2 / weight.sum())
    return xrisk / unit, xstd / unit


def zero_one(model, X, y):
    return (model.predict(X) != y).astype(float)


def by_loss(model, X, y):
    return np.array(LOSS, float)[y, model.predict(X)]


def squares(model, X, y):
    return (model.predict(X) - y) ** 2


def distance(model, X, y):
    return np.abs(model.predict(X) - y)


@pytest.mark.parametrize(
    ("model", "loss_of"),
    [
        (DecisionTreeClassifier(random_state=0), zero_one),
        (DecisionTreeClassifier(random_state=0, criterion="entropy", min_samples_leaf=3), zero_one),
        (DecisionTreeRegressor(random_state=0), squares),
        (DecisionTreeRegressor(random_state=0, min_samples_split=0.2), squares),
        (DecisionTreeRegressor(random_state=0, criterion="absolute_error", max_depth=4), distance),
    ],
    ids=["gini", "entropy", "squares", "shares", "absolute"],
)
@pytest.mark.parametrize("is_weighted", [False, True])
def test_risks_are_those_of_fits_by_hand(model, loss_of, is_weighted):
    X, y, rng = small(3, 80, hasattr(model, "predict_proba"))
    weight = rng.integers(1, 4, len(y)).astype(float) if is_weighted else np.ones(len(y))
    folds = rng.permutation(len(y)) % 5
    pruned = cv_prune(model, X, y, weight, cv=folds)
    xerror, xstd = table_by_fits(model, X, y, weight, folds, loss_of)
    np.testing.assert_allclose(pruned.cp_table_.xerror, xerror, rtol=1e-9)
    np.testing.assert_allclose(pruned.cp_table_.xstd, xstd, rtol=1e-9)


def test_held_out_rows_lose_by_the_losses():
    """Losses alter the weights of a fold by the whole table's, so that fits by hand need them."""
    X, y, rng = small(4, 90)
    folds = rng.permutation(len(y)) % 3
    model = DecisionTreeClassifier(random_state=0, loss=LOSS, max_depth=3)
    pruned = cv_prune(model, X, y, cv=folds)
    xerror, xstd = table_by_fits(model, X, y, np.ones(len(y)), folds, by_loss)
    np.testing.assert_allclose(pruned.cp_table_.xerror, xerror, rtol=1e-9)
    np.testing.assert_allclose(pruned.cp_table_.xstd, xstd, rtol=1e-9)


def test_the_rules():
    X, y = load("breast_cancer")
    model = DecisionTreeClassifier(random_state=0)
    least, simple = (cv_prune(model, X, y, rule=rule, random_state=1) for rule in ("min", "1se"))
    table = least.cp_table_
    best = table.xerror.argmin()
    assert least.get_n_leaves() == table.n_splits[best] + 1
    within = table.xerror <= table.xerror[best] + table.xstd[best]
    assert simple.get_n_leaves() == table.n_splits[within].min() + 1
    assert simple.get_n_leaves() < least.get_n_leaves() < model.fit(X, y).get_n_leaves()


def test_risks_that_differ_by_rounding_are_one():
    risks = np.array([1.0, 0.1 + 0.2, 0.3])
    table = CpTable(np.zeros(3), np.arange(3), risks, risks, np.zeros(3), 1.0)
    assert (table.best("min"), table.best("1se")) == (1, 1)


def test_equal_tables_are_equal():
    X, y = load("iris")
    tree = DecisionTreeClassifier(random_state=0)
    one, same = (cp_table(tree.fit(X, y)) for _ in range(2))
    assert one == same
    assert one != cp_table(cv_prune(tree, X, y, random_state=0))
    assert one != cp_table(tree.fit(X[:40], y[:40]))
    assert one != cp_table(tree.fit(X[:, :2], y))
    assert one != tuple(one)


@pytest.mark.parametrize("kind", ["Classifier", "Regressor"])
def test_the_estimator_is_the_function(kind):
    """And threads, splitters and pairs of rows say the same as fold numbers."""
    is_classification = kind == "Classifier"
    X, y = load("breast_cancer" if is_classification else "diabetes")
    X = X[:, :4]
    plain = getattr(cart, f"DecisionTree{kind}")(random_state=3, max_depth=5)
    splitter = (StratifiedKFold if is_classification else KFold)(4)
    pairs = list(splitter.split(X, y))
    numbers = np.empty(len(y), int)
    for fold, (_, held_out) in enumerate(pairs):
        numbers[held_out] = fold
    tables = []
    for cv in (splitter, pairs, numbers, numbers.tolist()):
        estimator = getattr(cart, f"PrunedTree{kind}")(cv=cv, random_state=3, max_depth=5, n_jobs=2)
        estimator.fit(X, y)
        pruned = cv_prune(plain, X, y, cv=cv, random_state=3)
        np.testing.assert_array_equal(estimator.predict(X), pruned.predict(X))
        tables += [estimator.cp_table_, pruned.cp_table_]
    for table in tables:
        np.testing.assert_array_equal(table.xerror, tables[0].xerror)
    a, b = (estimator.cost_complexity_pruning_path(X, y), plain.cost_complexity_pruning_path(X, y))
    np.testing.assert_array_equal(a.ccp_alphas, b.ccp_alphas)


def test_folds_hold_every_row_out_once_and_classes_in_proportion():
    y = np.repeat([0.0, 1.0], [90, 12])
    folds = folds_of(5, None, y, True, 0)
    assert np.sort(np.concatenate([held_out for _, held_out in folds])).tolist() == list(range(102))
    for rows, held_out in folds:
        assert np.isin(held_out, rows).sum() == 0
        assert len(rows) + len(held_out) == 102
        assert 2 <= y[held_out].sum() <= 3


def test_categories_and_missing_values():
    pd = pytest.importorskip("pandas")
    X, y, _rng = small(1, 90)
    frame = pd.DataFrame(
        {"a": X[:, 0], "b": pd.Categorical(np.array(list("xyz"))[y + (X[:, 1] > 9)])}
    )
    frame.loc[::7, "a"] = np.nan
    model = PrunedTreeClassifier(categorical_features="from_dtype", random_state=0).fit(frame, y)
    assert model.score(frame, y) > 0.75


def test_a_sparse_table_is_its_dense_one():
    X, y, _ = small(1, 90)
    dense = PrunedTreeClassifier(random_state=0).fit(X, y)
    sparse = PrunedTreeClassifier(random_state=0).fit(csr_matrix(X), y)
    np.testing.assert_array_equal(dense.cp_table_.xerror, sparse.cp_table_.xerror)


def test_a_saved_model_keeps_its_table(tmp_path):
    X, y = load("diabetes")
    model = PrunedTreeRegressor(random_state=0).fit(X, y)
    model.save(tmp_path / "tree")
    loaded = cart.load(tmp_path / "tree")
    assert str(loaded.cp_table_) == str(model.cp_table_) == str(cp_table(loaded))
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


def test_a_later_fit_forgets_the_table():
    X, y, _ = small(0)
    model = cv_prune(DecisionTreeClassifier(random_state=0), X, y, random_state=0)
    assert cp_table(model).xerror is not None
    assert cp_table(model.fit(X, y)).xerror is None


def test_one_class_is_a_root():
    model = PrunedTreeClassifier(cv=2).fit(np.arange(6.0)[:, np.newaxis], ["a"] * 6)
    assert model.get_n_leaves() == 1
    assert np.isfinite(model.cp_table_.xerror).all()


def test_a_variance_that_rounds_below_zero_is_no_risk():
    y = 100.0 + 1e-7 * np.random.default_rng(4).normal(size=8)
    tree = cv_prune(DecisionTreeRegressor(), np.ones((8, 1)), y, cv=2, random_state=0)
    assert tree.tree_.impurity[0] < 0.0
    assert tree.cp_table_.rel_error[0] == 0.0
    assert tree.cp_table_.xerror[0] > 0.0
    assert tree.cp_table_.xstd[0] > 0.0


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"cv": 1}, "at least 2"),
        ({"cv": np.zeros(60)}, "1 fold"),
        ({"cv": np.zeros(59)}, "59 rows, but there are 60"),
        ({"cv": [([], [1]), ([1], [2])]}, "no training rows"),
        ({"cv": None}, "cv must be a number of folds"),
        ({"cv": 5.0}, "cv must be a number of folds.* but is 5.0"),
        ({"cv": "5"}, "cv must be a number of folds.* but is '5'"),
        ({"cv": [(range(30), range(30, 61)), ([1], [2])]}, "numbers from 0 to 59"),
        ({"cv": [([0], [1], [2])] * 2}, "3 parts, not 2"),
        ({"cv": GroupKFold(2)}, r"GroupKFold needs groups.* cv=list\(splitter.split"),
        ({"cv": np.eye(60, 2)}, "a row needs one number, not 2"),
        ({"cv": [([0.5], [1]), ([1], [2])]}, r"numbers from 0 to 59, but are array\(\[0.5\]\)"),
        ({"cv": [(["a"], ["b"]), ([1], [2])]}, "numbers from 0 to 59, but are array"),
        ({"cv": LAST, "sample_weight": LAST == 0}, "All training rows of fold 0 have weight 0"),
        (
            {"cv": [([0], [59]), ([1], [59])], "sample_weight": LAST == 0},
            "All held-out rows have weight 0",
        ),
        ({"rule": "2se"}, "rule must be"),
        ({"cp": -0.1}, "cp must be a non-negative number"),
        ({"cp": np.nan}, "cp must be .* nan"),
        ({"cp": "0.1"}, "cp must be .* '0.1'"),
    ],
)
def test_what_makes_no_sense_is_refused(params, words):
    X, y, _ = small(0)
    with pytest.raises(ValueError, match=words):
        cv_prune(DecisionTreeClassifier(), X, y, **params)


def test_rows_that_a_fold_names_twice_count_twice():
    """As in a bootstrap: a root says the class of most of its draws."""
    X, y = np.zeros((4, 1)), np.array([0, 0, 1, 1])
    for drawn, xerror in (([0, 0, 2], 2.0), ([0, 2, 2], 0.0)):
        found = cv_prune(DecisionTreeClassifier(), X, y, cv=[(drawn, [3])] * 2)
        assert found.cp_table_.xerror == [xerror]


def test_only_trees_of_ours_are_pruned():
    X, y, _ = small(0)
    for stranger in (PeerTree(), RandomForestClassifier(), DecisionTreeClassifier, None):
        with pytest.raises(TypeError, match="cv_prune needs a tree estimator of Cartwood"):
            cv_prune(stranger, X, y)


@pytest.mark.parametrize("criterion", ["squared_error", "absolute_error"])
@pytest.mark.parametrize("scale", [2.0**-20, 2.0**500])
def test_the_table_does_not_depend_on_the_unit_of_the_target(criterion, scale):
    """Also where squares of losses overflow."""
    X, y, _rng = small(0, is_classification=False)
    model = DecisionTreeRegressor(criterion=criterion, max_depth=3, random_state=0)
    table, scaled = (
        cv_prune(model, X, y * unit, random_state=0).cp_table_.columns() for unit in (1.0, scale)
    )
    for name, column in table.items():
        np.testing.assert_allclose(scaled[name], column, rtol=1e-9, err_msg=name)


@pytest.mark.parametrize("exponent", [-800, 800])
def test_the_standard_error_needs_no_squares_of_weights(exponent):
    """A unit of weight is a row: it falls with the root of the weight."""
    X, y, _ = small(5, 60)
    model, folds = DecisionTreeClassifier(random_state=0), np.arange(60) % 3
    plain = cv_prune(model, X, y, np.ones(60), cv=folds).cp_table_
    with np.errstate(over="raise"):
        table = cv_prune(model, X, y, np.full(60, 2.0**exponent), cv=folds).cp_table_
    assert table.xerror[0] == plain.xerror[0]
    assert table.xstd[0] == plain.xstd[0] * 2.0 ** (-exponent // 2)


def test_what_has_no_risk_says_so():
    X, y, _ = small(0)
    with pytest.raises(ValueError, match="ccp_alpha"):
        cv_prune(DecisionTreeClassifier(ccp_alpha=0.1), X, y)
    with pytest.raises(ValueError, match=r"squares of y overflow.* divide y by its largest"):
        cv_prune(DecisionTreeRegressor(), X, 1e200 * y)
    with pytest.raises(ValueError, match="poisson"):
        cv_prune(DecisionTreeRegressor(criterion="poisson"), X, y)
    with pytest.raises(ValueError, match="max_depth"):
        cv_prune(DecisionTreeRegressor(max_depth=-1), X, y)
    with pytest.raises(ValueError, match="2 outputs"):
        cv_prune(DecisionTreeRegressor(), X, np.column_stack((y, y)))
    with pytest.raises(ValueError, match="not cross-validated"):
        cp_table(DecisionTreeClassifier().fit(X, y)).best()
    with pytest.raises(ValueError, match="negative"):
        prune_at(DecisionTreeClassifier().fit(X, y), -0.1)
    with pytest.raises(ValueError, match="cp must be a non-negative number"):
        prune_at(DecisionTreeClassifier().fit(X, y), "0.1")


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_every_tree_is_reported(n_jobs, capsys, monkeypatch):
    """The whole one, and those of the folds; a callback's error ends the work."""
    monkeypatch.setattr("cart.primitives.progress._open_bar", lambda *args: None)  # tqdm's
    X, y, _ = small(0)
    told = []
    how = {"cv": 4, "n_jobs": n_jobs, "verbose": 1, "callback": told.append}
    cv_prune(DecisionTreeClassifier(), X, y, **how)
    PrunedTreeClassifier(**how).fit(X, y)
    assert [(each.n_done, each.n_total) for each in told] == 2 * [(n, 5) for n in range(1, 6)]
    assert capsys.readouterr().err.count("5 of 5 trees") == 2

    def refuse(progress):
        raise RuntimeError(f"at {progress.n_done}")

    with pytest.raises(RuntimeError, match="at 1"):
        PrunedTreeRegressor(callback=refuse).fit(X, y)
    with pytest.raises(TypeError, match="callback=3 must be callable"):
        cv_prune(DecisionTreeClassifier(), X, y, callback=3)
