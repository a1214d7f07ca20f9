"""rpart's trees, cp tables and predictions, reproduced.

(What each node has besides, surrogates and competitors, is in
`tests/cart/growth/test_rpart_alternatives.py`.) Where rpart and we cannot agree is listed here, one
by one, and nowhere else:

- Between exact ties `random_state` decides with us, and the order of the columns in rpart. `SEEDS`
  has a seed with which they fall as in rpart, in the tree and in all ten folds.
- `CP_OF_RPART`: the complexity of a split in rpart looks one level down. Where a branch two levels
  down would go first it is not the weakest link, and contradicts rpart's own column "rel error":
  between two neighbours CP must be the fall of the error per split. Ours is. `NOT_BEST`: so rpart's
  table may have a subtree that is the best at no complexity, and lack one that is.
- rpart's xerror judges held-out rows by the transposed loss matrix. With ours transposed there
  (and there only) it is reproduced; the root's xerror, which must be 1, shows which is right.
- A value that equals a threshold goes right in rpart and left here, as in scikit-learn. Training
  values never do; held-out ones may, since a threshold lies halfway between two others: in
  stagec_time_weights, car90 and car90_deep one or two rows. With held-out values moved up by the
  last bit xerror is reproduced.
- `DROPPED`: rpart leaves out a surrogate on a factor that disagrees with the split in fewer than
  two rows, which is the best there could be; in folds of stagec_time and stagec_priors_and_loss
  rows go by it with us. (With rpart's rule put in, three of the latter's four rows of the table are
  rpart's; the xerror of row 2 is not: 1.348, there 1.317. Why is not known.)
- `OTHERS` have no form here: usesurrogate=0 and 1 leave rows at a node (where no row of the table
  needs it, 1 is reproduced).
- Subsets of more than two classes' categories are searched exhaustively by both up to 8 categories,
  by rpart beyond: Country of cu_summary has 10, and in that tree and its folds the order along the
  principal component leads to the same splits.
"""

import numpy as np
import pytest

from benchmarks.oracles.rpart import GOLDEN, OTHERS, Case, pairs_of_nodes
from cart import DecisionTreeClassifier, cp_table, cv_prune, prune_at
from cart.estimators.class_costs import node_costs
from cart.estimators.pruning.cross_validation import _Folded
from cart.estimators.pruning.risk import Sequence

NAMES = sorted({path.stem for path in GOLDEN.glob("*.json")} - OTHERS)
EACH = pytest.mark.parametrize("name", NAMES)
SEEDS = {
    "kyphosis_deep": 95, "kyphosis_entropy": 2, "stagec_style_1_use_2": 47, "car90": 5,
    "car90_deep": 7, "cu_summary": 1,
}  # fmt: skip
# Row of the table: what rpart says, what it is.
CP_OF_RPART = {
    "kyphosis_entropy": {0: (3 / 34, 5 / 51)},
    "kyphosis_priors_and_loss": {4: (1 / 64, 5 / 256)},
    "cu_summary_numbers": {4: (3 / 236, 4 / 295)},
}
NOT_BEST = {"stagec_costs": [1, 2]}
DROPPED = {"stagec_time": 4, "stagec_priors_and_loss": 2}  # rows of the table before it matters
RTOL = 1e-9


def fitted(name):
    """The case, and our tree pruned by rpart's cp."""
    case = Case(name)
    whole = case.estimator(random_state=SEEDS.get(name, 0)).fit(case.X, case.y, case.weight)
    return case, prune_at(whole, case.golden["control"]["cp"])


@EACH
def test_nodes(name):
    """Every split, and what rpart says of every node."""
    case, model = fitted(name)
    tree, golden = model.tree_, case.golden
    pairs = list(pairs_of_nodes(golden, model))
    assert len(pairs) == len(golden["nodes"]) == tree.node_count
    total = case.weight.sum()
    for theirs, ours, is_mirrored in pairs:
        assert is_mirrored is not None, theirs
        assert tree.n_node_samples[ours] == theirs["n"]
        if case.is_classification:
            loss = getattr(model, "loss_", None)
            risk = node_costs(tree, loss)[ours] * total
            shares = tree.value[ours, 0]
            if loss is not None:
                shares = shares / loss.sum(axis=1) / (shares / loss.sum(axis=1)).sum()
            np.testing.assert_allclose(shares, theirs["shares"], rtol=RTOL)
        else:
            weight = tree.weighted_n_node_samples[ours]
            risk = weight * tree.impurity[ours]
            np.testing.assert_allclose(weight, theirs["weight"], rtol=RTOL)
            np.testing.assert_allclose(tree.value[ours, 0, 0], theirs["value"], rtol=RTOL)
        np.testing.assert_allclose(risk, theirs["risk"], rtol=1e-8, atol=1e-9 * total)
        if "primary" in theirs and not case.X.isna().any(axis=None):
            decrease = decrease_of(tree, ours)
            if not case.is_classification:
                decrease /= tree.weighted_n_node_samples[ours] * tree.impurity[ours]
            factor = np.log(2.0) if model.criterion == "entropy" else 1.0  # of logarithms
            np.testing.assert_allclose(decrease * factor, theirs["primary"]["value"], rtol=1e-8)


def decrease_of(tree, node):
    burden = tree.weighted_n_node_samples * tree.impurity
    children = tree.children_left[node], tree.children_right[node]
    return burden[node] - burden[[*children]].sum()


@EACH
def test_training_rows_get_their_nodes_answer(name):
    case, model = fitted(name)
    by_id = {node["id"]: node for node in case.golden["nodes"]}
    theirs = [by_id[number] for number in case.golden["where"]]
    if case.is_classification:
        shares = [node["shares"] for node in theirs]
        np.testing.assert_allclose(model.predict_proba(case.X), shares, rtol=RTOL)
        labels = case.golden["classes"]
        expected = [labels.index(node["label"]) for node in theirs]
        assert np.searchsorted(model.classes_, model.predict(case.X)).tolist() == expected
    else:
        values = [node["value"] for node in theirs]
        np.testing.assert_allclose(model.predict(case.X), values, rtol=RTOL)


@EACH
def test_cp_table(name, monkeypatch):
    case = Case(name)
    model = case.estimator(random_state=SEEDS.get(name, 0))
    theirs = np.array(case.golden["cp_table"]["rows"])
    cp = case.golden["control"]["cp"]
    for row, (said, right) in CP_OF_RPART.get(name, {}).items():
        np.testing.assert_allclose(theirs[row, 0], said, rtol=1e-8)
        fall = -np.diff(theirs[row : row + 2, 2]) / np.diff(theirs[row : row + 2, 1])
        np.testing.assert_allclose(fall, right, rtol=1e-8)  # by rpart's own columns
        theirs[row, 0] = right
    judge_as_rpart(monkeypatch)
    pruned = cv_prune(model, case.X, case.y, case.weight, cv=case.folds, cp=cp)
    ours = pruned.cp_table_.columns()
    assert [*ours] == case.golden["cp_table"]["columns"]
    is_there = ~np.isin(np.arange(len(theirs)), NOT_BEST.get(name, []))
    is_same = is_there.copy()  # is a row judged halfway between the same complexities?
    for row in (*CP_OF_RPART.get(name, {}), *NOT_BEST.get(name, [])):
        is_same[[max(row, 1), row + 1]] = False
    is_same[DROPPED.get(name, len(theirs)) :] = False
    for j, (column, values) in enumerate(ours.items()):
        rows = is_same if column in ("xerror", "xstd") else is_there
        np.testing.assert_allclose(values[rows], theirs[rows, j], rtol=RTOL, err_msg=column)


@EACH
def test_no_subtree_of_rpart_is_cheaper(name):
    """At any complexity, by rpart's own columns; at some, one of ours is where NOT_BEST says so."""
    case, model = fitted(name)
    theirs = np.array(case.golden["cp_table"]["rows"])
    table = cp_table(model)
    cp = np.geomspace(case.golden["control"]["cp"] + 1e-6, 1.0, 2_000)[:, np.newaxis]
    ours = (table.rel_error + cp * table.n_splits).min(axis=1)
    more = (theirs[:, 2] + cp * theirs[:, 1]).min(axis=1) - ours
    assert more.min() > -1e-9
    assert (more.max() > 1e-6) == (name in NOT_BEST)


def judge_as_rpart(monkeypatch):
    """Judge held-out rows by the transposed losses, and send them right from a threshold."""
    of_ours, create = Sequence.judged, _Folded.__init__

    def judged(*args):
        pruned = of_ours(*args)
        return pruned._replace(loss=pruned.loss.T.copy())

    def create_with_moved_rows(self, draft, prepared, *args):
        create(self, draft, prepared, *args)
        is_number = ~np.broadcast_to(getattr(draft, "is_categorical_", False), prepared.X.shape[1])
        self._rows = np.where(is_number, np.nextafter(self._rows, np.inf), self._rows)

    monkeypatch.setattr(Sequence, "judged", judged)
    monkeypatch.setattr(_Folded, "__init__", create_with_moved_rows)


@pytest.mark.parametrize("name", ["kyphosis_loss", "kyphosis_priors_and_loss", "stagec_costs"])
def test_the_xerror_of_a_root_is_one(name):
    """By the loss matrix; by rpart's transposed one it is not."""
    case = Case(name)
    pruned = cv_prune(case.estimator(), case.X, case.y, case.weight, cv=case.folds)
    assert pruned.cp_table_.xerror[0] == pytest.approx(1.0)
    assert case.golden["cp_table"]["rows"][0][3] in (0.5, 2.0, 3.0)


def test_importance():
    """The primaries' part of rpart's: the sum of the improvements."""
    case, model = fitted("solder_opening")
    decrease = model.tree_.compute_feature_importances(normalize=False) * case.weight.sum()
    primaries = dict.fromkeys(case.X, 0.0)
    for node in case.golden["nodes"]:
        if "primary" in node:
            primaries[node["primary"]["feature"]] += node["primary"]["value"]
    np.testing.assert_allclose(decrease, [*primaries.values()], rtol=1e-9)


def test_a_wrong_tree_is_seen():
    """The walk stops at a node that is split elsewhere."""
    case = Case("kyphosis")
    other = DecisionTreeClassifier(max_depth=2, precision="float64").fit(case.X, case.y)
    assert any(mirrored is None for _, _, mirrored in pairs_of_nodes(case.golden, other))
