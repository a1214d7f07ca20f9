"""Which features a node may look at, in what order, and the other draws of a node.

`Draw` is scikit-learn's random stream, order and bookkeeping. `KeyedDraw` has no stream: what it
draws is a hash of the tree's seed, the node's path and the feature's name, so that the order of the
columns does not matter. Both keep the protocol below.
"""

import hashlib
from typing import NamedTuple

import numpy as np

from cart.jit.decorators import dispatch, inline_kernel, kernel

# A tree starts its stream from a seed in [0, DRAW_SEED_MAX) (RAND_R_MAX in `_splitter.pyx`).
DRAW_SEED_MAX = np.iinfo(np.int32).max
GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # steps of SplitMix64


class Drawing(NamedTuple):
    """How far the draws of a node have come. Kernels keep it in registers; see `Draw`."""

    n_known: int  # constant features that an ancestor found
    n_drawn: int  # of these
    n_found: int  # constant features that this node found
    n_visited: int
    end: int  # of the features that are not searched yet


# ---------------------------------------------------------------------------- the protocol


@dispatch
def restart(draw, seed):
    """Begin a new tree with that seed."""


@dispatch
def key_children(draw, row):
    """Note what the draws of a split's children depend on: it waits in that row of the stack, the
    right child will there, the left one in the next."""


@dispatch
def move_key(draw, row, to):
    """Note that a node waits in another row of the stack."""


@dispatch
def begin_draw(draw, row, n_known):
    """Begin the draws of the node in a row of the stack, of which an ancestor knows `n_known`
    constant features.

    Returns a Drawing.
    """


@dispatch
def next_feature(draw, drawing, max_features):
    """Position in `draw.features` of the next feature to look at, or -1, and the Drawing then.

    It goes on past `max_features` until one feature that is not constant was seen.
    """


@dispatch
def likely_next(draw, drawing, j, n_numbers):
    """The feature that comes after the one at position j if that is not constant, and if so many
    numbers are drawn before. For caches: it may be another."""


@dispatch
def mark_constant(draw, drawing, j):
    """The feature at position j turned out to be constant in this node; return the Drawing then."""


@dispatch
def mark_searched(draw, drawing, j):
    """The feature at position j varies in this node and is searched; return the Drawing then."""


@dispatch
def random_between(draw, feature, low, high):
    """A number in [low, high], to cut the feature at."""


@dispatch
def random_side(draw, feature, i):
    """Heads or tails, the feature's i-th."""


@dispatch
def end_draw(draw, drawing):
    """End the draws of the node; return how many features its children know to be constant."""


# ---------------------------------------------------------------------- scikit-learn's stream


class Draw(NamedTuple):
    """scikit-learn's draw. `features` is a permutation of the features, kept arranged as

        [ drawn constants | known constants | found constants | not drawn yet | drawn, searched ]
          0 .. n_drawn      .. n_known        .. + n_found      .. end           .. n_features

    Known constants were found constant by an ancestor and are not looked at again.
    (Reference: `node_split_best` in scikit-learn's `_splitter.pyx`; xorshift: Marsaglia 2003.)
    """

    features: np.ndarray  # (n_features,) int64: permutation, see above
    constants: np.ndarray  # (n_features,) int64: constant features in the order they were found
    state: np.ndarray  # (1,) uint32: of the random stream

    @classmethod
    def create(cls, n_features):
        features = np.arange(n_features)
        return cls(features, features.copy(), np.zeros(1, np.uint32))

    def restart(self, seed):
        for feature in range(self.features.shape[0]):
            self.features[feature] = feature
        self.state[0] = max(seed, 1)

    def key_children(self, row):
        pass

    def move_key(self, row, to):
        pass

    def begin_draw(self, row, n_known):
        zero = np.int64(0)
        return Drawing(np.int64(n_known), zero, zero, zero, np.int64(self.features.shape[0]))

    def next_feature(self, drawing, max_features):
        n_known, n_drawn, n_found, n_visited, end = drawing
        while end > n_known + n_found and (
            n_visited < max_features or n_visited <= n_found + n_drawn
        ):
            n_visited += 1
            left = np.uint64(end - n_found - n_drawn)
            j = n_drawn + np.int64(np.uint64(_next_number(self.state)) % left)
            if j >= n_known:
                return j + n_found, Drawing(n_known, n_drawn, n_found, n_visited, end)
            _exchange(self.features, j, n_drawn)
            n_drawn += 1
        return np.int64(-1), Drawing(n_known, n_drawn, n_found, n_visited, end)

    def likely_next(self, drawing, j, n_numbers):
        n_passed, number = drawing.n_found + drawing.n_drawn, np.int64(self.state[0])
        for _ in range(n_numbers + 1):
            number = _after(number)
        left = np.uint64(max(drawing.end - 1 - n_passed, 1))
        at = n_passed + np.int64(np.uint64(number & DRAW_SEED_MAX) % left)
        return self.features[at if at != j else drawing.end - 1]

    def mark_constant(self, drawing, j):
        n_known, n_drawn, n_found, n_visited, end = drawing
        _exchange(self.features, j, n_known + n_found)
        return Drawing(n_known, n_drawn, n_found + 1, n_visited, end)

    def mark_searched(self, drawing, j):
        n_known, n_drawn, n_found, n_visited, end = drawing
        _exchange(self.features, j, end - 1)
        return Drawing(n_known, n_drawn, n_found, n_visited, end - 1)

    def random_between(self, feature, low, high):
        share = np.float64(_next_number(self.state))
        return ((high - low) * share / np.float64(DRAW_SEED_MAX)) + low

    def random_side(self, feature, i):
        return _next_number(self.state) % 2 == 1

    def end_draw(self, drawing):
        """Restore the order of the known constants."""
        n_known = drawing.n_known
        n_total = n_known + drawing.n_found
        for i in range(n_known):
            self.features[i] = self.constants[i]
        for i in range(n_known, n_total):
            self.constants[i] = self.features[i]
        return n_total


@inline_kernel
def _next_number(state):
    """The next number of the stream, in [0, DRAW_SEED_MAX]."""
    state[0] = _after(np.int64(state[0]))
    return np.int64(state[0]) & DRAW_SEED_MAX


@inline_kernel
def _after(x):
    """The state of the stream after x."""
    x ^= (x << 13) & 0xFFFFFFFF
    x ^= x >> 17
    return x ^ (x << 5) & 0xFFFFFFFF


@inline_kernel
def _exchange(features, i, j):
    feature = features[i]
    features[i] = features[j]
    features[j] = feature


# ------------------------------------------------------------------------- keyed by the names

# What a hash is drawn for, beside the order of the features.
_FOR_THRESHOLD = np.uint64(0x74687265)
_FOR_SIDE = np.uint64(0x73696465)


class KeyedDraw(NamedTuple):
    """Draws that depend on the seed, the node's path and the feature's name only.

    A node looks at features in the order of a hash. `features` holds those not looked at yet, a
    heap with the next one on top, then those looked at:

        [ heap    | looked at ]
          0 .. end  .. n_features

    A node does not learn from its ancestors which features are constant: one that comes up counts
    as looked at, as a known constant does in scikit-learn.
    """

    features: np.ndarray  # (n_features,) int64: permutation, see above
    names: np.ndarray  # (n_features,) uint64: hashes of the names
    place: np.ndarray  # (n_features,) uint64: of each feature in the order of the node
    keys: np.ndarray  # (n_rows of the stack,) uint64: of the nodes that wait there

    @classmethod
    def create(cls, names, n_rows=1):
        place, keys = np.empty(len(names), np.uint64), np.zeros(n_rows, np.uint64)
        return cls(np.arange(len(names)), names, place, keys)

    def restart(self, seed):
        self.keys[0] = root_key(seed)

    def key_children(self, row):
        key = self.keys[row]
        self.keys[row], self.keys[row + 1] = child_key(key, False), child_key(key, True)

    def move_key(self, row, to):
        self.keys[to] = self.keys[row]

    def begin_draw(self, row, n_known):
        n_features, key = self.features.shape[0], self.keys[row]
        for feature in range(n_features):
            self.place[feature] = _mix(key ^ self.names[feature])
        for i in range(n_features // 2 - 1, -1, -1):
            _sink(self.features, self.place, i, n_features)
        zero = np.int64(0)
        return Drawing(zero, zero, zero, zero, np.int64(n_features))

    def next_feature(self, drawing, max_features):
        n_known, n_drawn, n_found, n_visited, end = drawing
        if end == 0 or n_visited >= max(max_features, n_found + 1):
            return np.int64(-1), drawing
        end -= 1
        _exchange(self.features, 0, end)
        _sink(self.features, self.place, 0, end)
        return end, Drawing(n_known, n_drawn, n_found, n_visited + 1, end)

    def likely_next(self, drawing, j, n_numbers):
        return self.features[0]

    def mark_constant(self, drawing, j):
        n_known, n_drawn, n_found, n_visited, end = drawing
        return Drawing(n_known, n_drawn, n_found + 1, n_visited, end)

    def mark_searched(self, drawing, j):
        return drawing

    def random_between(self, feature, low, high):
        share = np.float64(_mix(self.place[feature] ^ _FOR_THRESHOLD) >> np.uint64(11)) * 2.0**-53
        return (high - low) * share + low

    def random_side(self, feature, i):
        return _mix(_mix(self.place[feature] ^ _FOR_SIDE) + np.uint64(i)) >> np.uint64(63) == 1

    def end_draw(self, drawing):
        return np.int64(0)


@inline_kernel
def root_key(seed):
    """The key of the root of a tree."""
    return _mix(np.uint64(seed))


@inline_kernel
def child_key(key, is_left):
    """The key of a child of the node with that key."""
    return _mix(key ^ np.uint64(1 if is_left else 2))


@inline_kernel
def _mix(x):
    """A 64-bit hash: one step of SplitMix64."""
    return scramble(x + GOLDEN)


@inline_kernel
def scramble(x):
    """SplitMix64's output function (Steele, Lea and Flood 2014)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@kernel
def _sink(features, place, i, end):
    """Let the feature in position i sink to its place in the heap features[:end]."""
    child = 2 * i + 1
    while child < end:
        if child + 1 < end and place[features[child + 1]] < place[features[child]]:
            child += 1
        if place[features[i]] <= place[features[child]]:
            return
        _exchange(features, i, child)
        i = child
        child = 2 * i + 1


def create_draw(names, n_features, n_rows):
    """The draws of trees: keyed by hashes of names, where there are any; with so many rows of the
    stack."""
    return Draw.create(n_features) if names is None else KeyedDraw.create(names, n_rows)


def hash_names(names):
    """What `KeyedDraw` knows features by.

    Parameters
    ----------
    names : sequence of str or int

    Returns
    -------
    ndarray of shape (n_features,), uint64
    """
    digests = (hashlib.blake2b(str(name).encode(), digest_size=8).digest() for name in names)
    return np.frombuffer(b"".join(digests), "<u8").astype(np.uint64)
