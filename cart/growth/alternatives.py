"""Find what a plan asks for beside the splits of trees: surrogates, competitors, and routes."""

import numpy as np

from cart.growth.competitors import CompetitorFinder, Judged
from cart.growth.general import make_records
from cart.growth.routing import BySurrogates, Learned
from cart.growth.surrogates import BY_MAJORITY, BY_SURROGATES, BY_TREE, Followed, SurrogateFinder
from cart.primitives.sort_keys import RECORD
from cart.splitting.agreement import Ranking
from cart.splitting.known_rows import OF_KNOWN_ROWS
from cart.table.table import Table, has_missing
from cart.tree.compact import compress_if_large
from cart.tree.nodes import LEAF
from cart.tree.tree import decreases

_ROUNDING = 1e-12  # relative error that multiplying and dividing may leave
_RULES = {"surrogate": BY_SURROGATES, "majority": BY_MAJORITY}


class AlternativesFinder:
    """Finds surrogates and competitors of the trees that one thread grows on a table.

    Parameters
    ----------
    table : Table or CategoricalTable
        Complete.
    codes : ndarray of shape (n_rows,) or (n_rows, n_outputs), float64
        Of the target.
    plan : cart.growth.plan.Plan
        A plan that asks for some.

    Attributes
    ----------
    plan : cart.growth.plan.Plan
        The plan to grow trees by. If `sends_missing`, its splitter does without missing values.
    sends_missing : bool
        Whether some value is missing, and rows go by another rule than scikit-learn's. Then trees
        take the general path, with a `route`.
    surrogates : cart.growth.surrogates.SurrogateFinder
    """

    def __init__(self, table, codes, plan):
        asked = plan.alternatives
        self.sends_missing = bool(asked.by_known_rows and has_missing(table))
        self.plan = plan
        if self.sends_missing:
            self.plan = plan._replace(splitter=OF_KNOWN_ROWS[type(plan.splitter)])
        self._asked = asked
        self._table = table.wide() if isinstance(table, Table) else table
        self._codes, self._competitors = codes, None
        self._factor = None
        if asked.class_factor is not None:
            self._factor = asked.class_factor[codes.reshape(-1).astype(np.int64)]
        # Rows that a surrogate sends by a constrained feature could break its constraint.
        is_barred = (plan.limits.monotonic != 0) & (asked.missing == "surrogate")
        self.surrogates = SurrogateFinder(
            table, asked.n_surrogates, asked.style, asked.n_drawn, is_barred, plan.hashed_names
        )

    def route(self, weight, seed):
        """The route of rows without a value, in a tree with these weights and this seed."""
        if not self.sends_missing:
            return Learned()
        finder = self.surrogates
        finder.weigh(self.unaltered(weight))
        ranking = finder.ranking
        if self._asked.missing == "majority":
            ranking = Ranking.create(0, 0)
        return BySurrogates(finder.rows, ranking, finder.draw_of(seed))

    def add_to(self, tree, weight, seed):
        """Add what the plan asks for to a tree that was grown with these weights and this seed."""
        rule = _RULES.get(self._asked.missing, BY_TREE)
        nodes = tree.nodes
        found = self.surrogates.find(nodes, tree.categories, self.unaltered(weight), seed, rule)
        if rule != BY_TREE:
            _set_default(tree, nodes, found.default_left)
        is_judged = nodes.children_left != LEAF
        primary = np.zeros(len(is_judged))  # decrease of impurity x weight; 0 in leaves
        primary[is_judged] = decreases(nodes, is_judged)
        if self._asked.n_competitors == 0:
            is_judged &= found.has_unknown & (rule != BY_TREE)
        if is_judged.any() or self._asked.n_competitors > 0:
            judged = self._judge(tree, weight, found, np.flatnonzero(is_judged))
            if rule != BY_TREE:
                primary[is_judged] = judged.primary[is_judged]
            if self._asked.n_competitors > 0:
                tree.competitors = judged._replace(primary=primary)
        if self._asked.n_surrogates > 0:
            tree.surrogates = found.surrogates._replace(primary=primary)

    def unaltered(self, weight):
        """Weights of the rows without priors and losses; 0 stays 0, and whole weights are exact."""
        if self._factor is None:
            return weight
        without = np.zeros(len(self._factor))
        np.divide(weight, self._factor, out=without, where=self._factor > 0.0)
        whole = np.rint(without)
        return np.where(np.abs(without - whole) <= _ROUNDING * whole, whole, without)

    def _judge(self, tree, weight, found, nodes):
        """Competitors in some nodes of a tree, and the improvements of the nodes' own splits."""
        if self._competitors is None:
            n_competitors = self._asked.n_competitors
            self._competitors = CompetitorFinder(self._table, self.plan, n_competitors)
        samples = self.surrogates.rows.keys[0] & RECORD
        records = make_records(self._codes, weight)
        least = self.plan.min_weight_fraction_leaf * records[:, 0].sum()
        judged = Judged(nodes, found.runs, samples, records)
        followed = Followed.of(tree.nodes, tree.categories, self._table)
        return self._competitors.find(followed, judged, least)


def _set_default(tree, nodes, default_left):
    """Make rows go the default way where nothing else sends them."""
    default_left[nodes.children_left == LEAF] = 0
    if not np.array_equal(nodes.missing_go_to_left, default_left):
        tree._hold(compress_if_large(nodes._replace(missing_go_to_left=default_left)))
