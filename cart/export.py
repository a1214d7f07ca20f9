"""Text, Graphviz and matplotlib pictures of a tree: scikit-learn's, of the tree it would have."""

import functools

import sklearn.tree

from cart.bridge import to_sklearn


def _of_our_tree(draw):
    """`draw` for trees of `cart` as well."""

    @functools.wraps(draw)
    def draw_ours(decision_tree, *args, **kwargs):
        if not isinstance(decision_tree, sklearn.tree.BaseDecisionTree):
            decision_tree = to_sklearn(decision_tree)
        return draw(decision_tree, *args, **kwargs)

    return draw_ours


export_text = _of_our_tree(sklearn.tree.export_text)
export_graphviz = _of_our_tree(sklearn.tree.export_graphviz)
plot_tree = _of_our_tree(sklearn.tree.plot_tree)
