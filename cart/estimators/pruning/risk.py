"""The risk of a fitted tree's nodes, and the nested subtrees of least risk plus complexity."""

from typing import Any, NamedTuple

import numpy as np

from cart.estimators.class_costs import node_costs
from cart.tree.held_out import ABSOLUTE, CLASSES, SQUARES, Pruned
from cart.tree.nodes import LEAF
from cart.tree.pruning import collapse_alphas, subtree
from cart.tree.tree import Tree, parents_of

_NOTHING = 1e-12  # a smaller share of the root's risk is 0 but for rounding
_KINDS = {"squared_error": SQUARES, "absolute_error": ABSOLUTE}


class NestedSubtrees(NamedTuple):
    """A tree, and the complexity from which on each of its nodes is pruned."""

    tree: Tree
    root_risk: float  # per unit of weight
    collapse: np.ndarray  # (node_count,) float64: complexities, as risk per unit of weight
    answer: np.ndarray  # (node_count,) float64: class or number that a node predicts
    risk: np.ndarray  # (node_count,) float64: of each node as a leaf, per unit of the root's weight

    @classmethod
    def of(cls, estimator: Any, tree: Tree) -> "NestedSubtrees":
        """The sequence of a tree that was grown with the parameters of a tree estimator.

        Raises
        ------
        ValueError
            If the squares of y overflow.
        """
        if hasattr(estimator, "classes_"):
            risk = node_costs(tree, getattr(estimator, "loss_", None))
            answer = estimator._decide_classes(tree.value[:, 0])
        else:
            weight = tree.weighted_n_node_samples
            risk = weight * np.maximum(tree.impurity, 0.0) / weight[0]  # rounding may make it < 0
            answer = tree.value[:, 0, 0]
        if not np.isfinite(risk[0]):
            raise ValueError(
                "The squares of y overflow, so the risk of the tree cannot be computed; divide y "
                "by its largest value."
            )
        collapse = collapse_alphas(tree, risk)
        return cls(tree, float(risk[0]), collapse, answer.astype(np.float64), risk)

    def alphas(self, cp: float) -> np.ndarray:
        """The complexities at which nodes are pruned, descending, and `cp` times the root's risk.

        Complexities that are not above this last one are left out.
        """
        last = cp * self.root_risk
        return np.append(np.unique(self.collapse[self.collapse > last])[::-1], last)

    def pruned(self, alpha: float) -> Tree:
        """The subtree at this complexity."""
        return subtree(self.tree, (self.collapse <= alpha) | (self.tree.children_left == LEAF))

    def sizes_and_risks(self, alphas: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Number of splits of the subtrees at these complexities, and the risk of their leaves."""
        split = np.flatnonzero(self.tree.children_left != LEAF)
        children = self.tree.children_left[split], self.tree.children_right[split]
        order = np.argsort(-self.collapse[split], kind="stable")
        saved = self.risk[split] - self.risk[children[0]] - self.risk[children[1]]
        until = np.cumsum(np.append(self.root_risk, -saved[order]))
        sizes = np.searchsorted(-self.collapse[split][order], -alphas)
        risks = until[sizes]
        return sizes, np.where(risks < _NOTHING * self.root_risk, 0.0, risks)

    def judged(self, estimator: Any, alphas: np.ndarray) -> Pruned:
        """The tree, pruned at descending complexities, as the kernel that judges rows takes it."""
        loss = getattr(estimator, "loss_", 1.0 - np.eye(self.tree.max_n_classes))
        kind = _KINDS.get(estimator.criterion, CLASSES)
        until = np.searchsorted(-alphas, -self.collapse, side="right")
        return Pruned(parents_of(self.tree), until, self.answer, loss, kind)


def refuse_other_risks(estimator: Any) -> None:
    """Raise a ValueError for a criterion whose risk may be infinite for a held-out row.

    Raises
    ------
    ValueError
    """
    if estimator.criterion == "poisson":
        raise ValueError(
            'With criterion="poisson" the risk of a held-out count in a leaf of zeros is '
            'infinite; prune with criterion="squared_error".'
        )
