"""The twoing rules: splits that separate two groups of classes, which the rule itself picks.

Gini and entropy look for pure nodes; twoing looks for the two superclasses that a cut separates
best (Breiman et al. 1984, sections 4.3.2 and 11.8). With P(c|L) and P(c|R) the class shares on
either side, and pL, pR the sides' shares of the node's weight, the cut's quality is

    twoing           pL pR / 4 * (sum over c of |P(c|L) - P(c|R)|)^2
    ordered twoing   pL pR * max over s of (P(c <= s|L) - P(c <= s|R))^2

where classes up to s form one superclass and the others form the other. With two classes both rules
choose the same cuts as Gini. They define no impurity of a node: limits, importances and pruning use
Gini's.
"""

from cart.jit.decorators import inline_kernel
from cart.splitting.class_criteria import Gini, count_left


@inline_kernel
def _share_difference(criterion, side, k, c):
    """The share of class c on the left minus that on the right."""
    left = count_left(criterion, side, k, c)
    right = criterion.node[k, c] - left
    return left / side.weight - right / (criterion.weight[0] - side.weight)


@inline_kernel
def _balance(criterion, side):
    """pL pR."""
    share = side.weight / criterion.weight[0]
    return share * (1.0 - share)


class Twoing(Gini):
    """Separates the classes into any two groups; scores are summed over outputs."""

    __slots__ = ()

    def may_score(self, side, least):
        return True  # Gini's bound is one of its own score

    def score(self, side):
        total = 0.0
        for k in range(self.node.shape[0]):
            distance = 0.0
            for c in range(self.node.shape[1]):
                distance += abs(_share_difference(self, side, k, c))
            total += distance * distance
        return _balance(self, side) * total / 4.0


class OrderedTwoing(Twoing):
    """Separates the classes up to one from those above it; scores are summed over outputs."""

    __slots__ = ()

    def score(self, side):
        total = 0.0
        for k in range(self.node.shape[0]):
            widest = 0.0
            difference = 0.0
            for c in range(self.node.shape[1] - 1):
                difference += _share_difference(self, side, k, c)
                widest = max(widest, difference * difference)
            total += widest
        return _balance(self, side) * total
