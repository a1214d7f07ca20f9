"""Slow, obvious minimal cost-complexity pruning by definition (Breiman et al. 1984)."""

import numpy as np


def prune(tree, alpha):
    """Numbers of samples in the nodes of the pruned tree, depth first.

    Repeatedly the node whose branch saves least per leaf becomes a leaf, as long as it saves no
    more than `alpha`. Ties go to the node with the lowest number.
    """
    cost = tree.impurity * tree.weighted_n_node_samples / tree.weighted_n_node_samples[0]
    leaves = set(np.flatnonzero(tree.children_left < 0).tolist())

    def descend(node):
        yield node
        if node not in leaves:
            yield from descend(tree.children_left[node])
            yield from descend(tree.children_right[node])

    def saving(node):
        mine = [leaf for leaf in descend(node) if leaf in leaves]
        return (cost[node] - cost[mine].sum()) / (len(mine) - 1)

    while 0 not in leaves:
        weakest = min((node for node in sorted(descend(0)) if node not in leaves), key=saving)
        if saving(weakest) > alpha:
            break
        leaves.add(weakest)
    return tree.n_node_samples[list(descend(0))]
