"""Extra trees on whole class counts, on tables with categories: random subsets of these go left.

words     a  b  a  c  b           categories of a node's rows
places    a 0    b 1    c 0       drawn in the order in which the categories occur; 0 goes left
codes     0  1  0  0  1           counted like codes up to a threshold
"""

from typing import NamedTuple

from cart.fast_paths.classification.category_cuts import CategoryCountsPath, CategoryCuts
from cart.fast_paths.classification.cuts import write_threshold
from cart.fast_paths.classification.random_cut import RandomClassCountsPath, search_cut
from cart.jit.decorators import like
from cart.splitting.category_subsets import write_list


@like(CategoryCuts)
class RandomSubsetCuts(NamedTuple):
    """Tries one cut of a feature: at a random threshold, or a random subset of categories."""

    name: int = 0  # numba wants a field

    def search_feature(self, way, node, searched, feature, best):
        return search_cut(way, node, searched, feature, best)

    def write_cut(self, way, tree, this, node, cut, children):
        write_threshold(tree, this, cut)
        write_list(way.table, this, way.table.columns[cut.feature])


class RandomCategoryCountsPath(CategoryCountsPath, RandomClassCountsPath):
    """Grows extra trees for classification on tables with categories, one at a time."""

    takes_across = False

    def _create_cuts(self):
        return RandomSubsetCuts()
