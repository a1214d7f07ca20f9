"""Which features a node may look at: scikit-learn's random stream, order and bookkeeping.

`Draw.features` is a permutation of the features, which a node's draw keeps arranged as

    [ drawn constants | known constants | found constants | not drawn yet | drawn, searched ]
      0 .. n_drawn      .. n_known        .. n_total        .. end           .. n_features

Known constants were found constant by an ancestor and are not looked at again.
(Reference: `node_split_best` in scikit-learn's `_splitter.pyx`; xorshift: Marsaglia 2003.)
"""

from typing import NamedTuple

import numpy as np

from cart.jit import inline_kernel

# A tree starts its stream from a seed in [0, DRAW_SEED_MAX) (RAND_R_MAX in `_splitter.pyx`).
DRAW_SEED_MAX = np.iinfo(np.int32).max

# slots of Draw.count
N_KNOWN, N_DRAWN, N_FOUND, N_VISITED, END = range(5)


class Draw(NamedTuple):
    features: np.ndarray  # (n_features,) int64: permutation, see above
    constants: np.ndarray  # (n_features,) int64: constant features in the order they were found
    count: np.ndarray  # (5,) int64: the borders above, and how many features were visited
    state: np.ndarray  # (1,) uint32: of the random stream

    @classmethod
    def create(cls, n_features):
        features = np.arange(n_features)
        return cls(features, features.copy(), np.zeros(5, np.int64), np.zeros(1, np.uint32))

    def restart(self, seed):
        """Begin a new tree with the random stream `seed`."""
        self.features[:] = np.arange(len(self.features))
        self.state[0] = seed or 1


@inline_kernel
def _next_number(state):
    """The next number of the stream, in [0, DRAW_SEED_MAX]."""
    x = np.int64(state[0])
    x ^= (x << 13) & 0xFFFFFFFF
    x ^= x >> 17
    x ^= (x << 5) & 0xFFFFFFFF
    state[0] = x
    return x & 0x7FFFFFFF


@inline_kernel
def random_below(state, n):
    """A whole number in [0, n)."""
    return _next_number(state) % n


@inline_kernel
def random_between(state, low, high):
    """A number in [low, high]."""
    return ((high - low) * np.float64(_next_number(state)) / np.float64(DRAW_SEED_MAX)) + low


@inline_kernel
def begin_draw(draw, n_known):
    draw.count[N_KNOWN] = n_known
    draw.count[N_DRAWN] = 0
    draw.count[N_FOUND] = 0
    draw.count[N_VISITED] = 0
    draw.count[END] = draw.features.shape[0]


@inline_kernel
def next_feature(draw, max_features):
    """Position in `draw.features` of the next feature to look at; -1 when the draw is over.

    It goes on past `max_features` until one feature that is not constant was seen.
    """
    count = draw.count
    features = draw.features
    while count[END] > count[N_KNOWN] + count[N_FOUND] and (
        count[N_VISITED] < max_features or count[N_VISITED] <= count[N_FOUND] + count[N_DRAWN]
    ):
        count[N_VISITED] += 1
        drawn = count[N_DRAWN]
        j = drawn + random_below(draw.state, count[END] - count[N_FOUND] - drawn)
        if j >= count[N_KNOWN]:
            return j + count[N_FOUND]
        feature = features[j]
        features[j] = features[drawn]
        features[drawn] = feature
        count[N_DRAWN] += 1
    return -1


@inline_kernel
def mark_constant(draw, j):
    """The feature at position j turned out to be constant in this node."""
    features = draw.features
    border = draw.count[N_KNOWN] + draw.count[N_FOUND]
    feature = features[j]
    features[j] = features[border]
    features[border] = feature
    draw.count[N_FOUND] += 1


@inline_kernel
def mark_searched(draw, j):
    """The feature at position j varies in this node and is searched."""
    features = draw.features
    draw.count[END] -= 1
    border = draw.count[END]
    feature = features[j]
    features[j] = features[border]
    features[border] = feature


@inline_kernel
def end_draw(draw):
    """Restore the order of the known constants; return how many are constant now."""
    n_known = draw.count[N_KNOWN]
    n_total = n_known + draw.count[N_FOUND]
    for i in range(n_known):
        draw.features[i] = draw.constants[i]
    for i in range(n_known, n_total):
        draw.constants[i] = draw.features[i]
    return n_total
