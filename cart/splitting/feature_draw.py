"""The random draws of a node: which features it looks at in what order, thresholds, and sides.

Draws come from scikit-learn's random stream, or are hashes of the tree's seed, the node's path and
the feature's name, so that the order of the columns does not matter. One class, `Draw`, does both,
so that kernels are compiled only once.
"""

import hashlib
from typing import NamedTuple

import numpy as np

from cart.jit.decorators import inline_kernel, kernel

# A tree starts its stream from a seed in [0, DRAW_SEED_MAX) (RAND_R_MAX in `_splitter.pyx`).
DRAW_SEED_MAX = np.iinfo(np.int32).max
GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # the step of SplitMix64

# What a hash is for, if not for the order of the features.
_FOR_THRESHOLD = np.uint64(0x74687265)
_FOR_SIDE = np.uint64(0x73696465)


class Draw(NamedTuple):
    """The state of the draws.

    Without `hashes`, draws come from scikit-learn's stream. `features` is a permutation, kept as

        [ drawn constants | known constants | found constants | not drawn yet | drawn, searched ]
          0 .. n_drawn      .. n_known        .. + n_found      .. end           .. n_features

    Known constants were found constant by an ancestor and are not looked at again.
    (Reference: `node_split_best` in scikit-learn's `_splitter.pyx`; xorshift: Marsaglia 2003.)

    With `hashes`, draws are keyed: a node looks at features in the order of a hash of its key and
    the feature's name. `features` holds the features not looked at yet, as a heap with the next one
    on top, then the others. `hashes` has three parts:

        features  [ heap   | looked at ]        hashes  [ keys   | order      | names      ]
                    0 .. end .. n_features                n_rows   n_features   n_features

    hashes[r], r < n_rows, is the key of the node that waits in row r of the stack. A node does not
    learn from its ancestors which features are constant: a constant feature that is drawn counts as
    looked at, as a known constant does in scikit-learn.
    """

    features: np.ndarray  # (n_features,) int64: permutation, see above
    constants: np.ndarray  # (n_features,) int64: constants in the order found (stream only)
    state: np.ndarray  # (1,) uint32: of the stream
    hashes: np.ndarray  # (n_rows + 2 * n_features,) uint64: see above; (0,) for the stream

    @classmethod
    def create(cls, n_features, names=None, n_rows=1):
        """Create a Draw, keyed if `names` (from `hash_names`) are given; the stack has n_rows."""
        hashes = np.empty(0, np.uint64)
        if names is not None:
            hashes = np.concatenate([np.zeros(n_rows + n_features, np.uint64), names])
        features = np.arange(n_features)
        return cls(features, features.copy(), np.zeros(1, np.uint32), hashes)


class Drawing(NamedTuple):
    """The progress of the draws of a node, which kernels keep in registers; see `Draw`."""

    n_known: int  # constant features that an ancestor found
    n_drawn: int  # how many of these were drawn
    n_found: int  # constant features that this node found
    n_barred: int  # features that vary, but may not be split; see `mark_barred`
    n_visited: int  # features looked at, and known constants drawn
    end: int  # end of the features that are not searched yet


def hash_names(names):
    """Hash the names by which keyed draws know features.

    Parameters
    ----------
    names : sequence of str or int

    Returns
    -------
    ndarray of shape (n_features,), uint64
    """
    digests = (hashlib.blake2b(str(name).encode(), digest_size=8).digest() for name in names)
    return np.frombuffer(b"".join(digests), "<u8").astype(np.uint64)


# ------------------------------------------------------------------- a tree, and where nodes wait


@kernel
def restart(draw, seed):
    """Begin a new tree with a seed."""
    if _is_keyed(draw):
        draw.hashes[0] = root_key(seed)
    else:
        for feature in range(draw.features.shape[0]):
            draw.features[feature] = feature
        draw.state[0] = max(seed, 1)


@kernel
def key_children(draw, row):
    """Set the keys of the children of the node in a row of the stack: that of the right child takes
    the same row, that of the left one the next."""
    if _is_keyed(draw):
        key = draw.hashes[row]
        draw.hashes[row], draw.hashes[row + 1] = child_key(key, False), child_key(key, True)


@inline_kernel
def move_key(draw, row, to):
    """Move the key of a node to another row of the stack."""
    if _is_keyed(draw):
        draw.hashes[to] = draw.hashes[row]


@inline_kernel
def root_key(seed):
    """The key of the root of a tree."""
    return _mix(np.uint64(seed))


@inline_kernel
def child_key(key, is_left):
    """The key of a child of the node with this key."""
    return _mix(key ^ np.uint64(1 if is_left else 2))


# ------------------------------------------------------------------------- the features of a node


@kernel
def begin_draw(draw, row, n_known):
    """Begin the draws of the node in a row of the stack, for which `n_known` features are known to
    be constant.

    Returns a Drawing.
    """
    zero = np.int64(0)
    if _is_keyed(draw):
        _order_by_hash(draw, row)
    return Drawing(np.int64(n_known), zero, zero, zero, zero, np.int64(draw.features.shape[0]))


@kernel
def next_feature(draw, drawing, max_features):
    """Return the position in `draw.features` of the next feature to look at, or -1, and the new
    Drawing.

    Draws go on past `max_features` until a feature was seen that is neither constant nor barred.
    """
    n_known, n_drawn, n_found, n_barred, n_visited, end = drawing
    n_vain = n_found + n_barred
    if _is_keyed(draw):
        if end == 0 or n_visited >= max(max_features, n_vain + 1):
            return np.int64(-1), drawing
        _exchange(draw.features, 0, end - 1)
        _sink(draw, 0, end - 1)
        return end - 1, Drawing(n_known, n_drawn, n_found, n_barred, n_visited + 1, end - 1)
    while end > n_known + n_found and (n_visited < max_features or n_visited <= n_vain + n_drawn):
        n_visited += 1
        left = np.uint64(end - n_found - n_drawn)
        j = n_drawn + np.int64(np.uint64(_next_number(draw.state)) % left)
        if j >= n_known:
            return j + n_found, Drawing(n_known, n_drawn, n_found, n_barred, n_visited, end)
        _exchange(draw.features, j, n_drawn)
        n_drawn += 1
    return np.int64(-1), Drawing(n_known, n_drawn, n_found, n_barred, n_visited, end)


@kernel
def likely_next(draw, drawing, j, n_numbers):
    """The feature that comes after the one at position j, if that is not constant and `n_numbers`
    numbers are drawn for it. It is a guess for prefetching, and may be wrong."""
    if _is_keyed(draw):
        return draw.features[0]
    n_passed, number = drawing.n_found + drawing.n_drawn, np.int64(draw.state[0])
    for _ in range(n_numbers + 1):
        number = _after(number)
    left = np.uint64(max(drawing.end - 1 - n_passed, 1))
    at = n_passed + np.int64(np.uint64(number & DRAW_SEED_MAX) % left)
    return draw.features[at if at != j else drawing.end - 1]


BARRED = 2  # what a feature may be besides constant (True) or not (False), see `mark_barred`


@inline_kernel
def mark(draw, drawing, j, is_constant):
    """Note what the feature at position j is in this node; return the new Drawing."""
    if is_constant == BARRED:
        return mark_barred(draw, drawing, j)
    if is_constant:
        return mark_constant(draw, drawing, j)
    return mark_searched(draw, drawing, j)


@inline_kernel
def mark_constant(draw, drawing, j):
    """Note that the feature at position j is constant in this node; return the new Drawing."""
    n_known, n_drawn, n_found, n_barred, n_visited, end = drawing
    if not _is_keyed(draw):
        _exchange(draw.features, j, n_known + n_found)
    return Drawing(n_known, n_drawn, n_found + 1, n_barred, n_visited, end)


@inline_kernel
def mark_searched(draw, drawing, j):
    """Note that the feature at position j varies in this node and is searched; return the new
    Drawing."""
    if _is_keyed(draw):
        return drawing
    n_known, n_drawn, n_found, n_barred, n_visited, end = drawing
    _exchange(draw.features, j, end - 1)
    return Drawing(n_known, n_drawn, n_found, n_barred, n_visited, end - 1)


@inline_kernel
def mark_barred(draw, drawing, j):
    """Note that the feature at position j varies, but that the guard of categories bars it from
    being split in this node (children may split it); return the new Drawing."""
    n_known, n_drawn, n_found, n_barred, n_visited, end = mark_searched(draw, drawing, j)
    return Drawing(n_known, n_drawn, n_found, n_barred + 1, n_visited, end)


@kernel
def end_draw(draw, drawing):
    """End the draws of the node; return how many features its children know to be constant."""
    if _is_keyed(draw):
        return np.int64(0)
    # Restore the order of the known constants.
    n_known = drawing.n_known
    n_total = n_known + drawing.n_found
    for i in range(n_known):
        draw.features[i] = draw.constants[i]
    for i in range(n_known, n_total):
        draw.constants[i] = draw.features[i]
    return n_total


# ------------------------------------------------------------------------- numbers for a feature


@inline_kernel
def random_between(draw, feature, low, high):
    """Draw a number in [low, high], at which to cut the feature."""
    if _is_keyed(draw):
        share = np.float64(_hash(draw, feature, _FOR_THRESHOLD) >> np.uint64(11)) * 2.0**-53
        return (high - low) * share + low
    share = np.float64(_next_number(draw.state))
    return ((high - low) * share / np.float64(DRAW_SEED_MAX)) + low


@inline_kernel
def random_side(draw, feature, i):
    """Draw a side, as a bool, for the feature: its draw number i."""
    if _is_keyed(draw):
        return _mix(_hash(draw, feature, _FOR_SIDE) + np.uint64(i)) >> np.uint64(63) == 1
    return _next_number(draw.state) % 2 == 1


# ------------------------------------------------------------------------------------- the stream


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


# ------------------------------------------------------------------------------------- the hashes


@inline_kernel
def _is_keyed(draw):
    return draw.hashes.shape[0] > 0


@inline_kernel
def _hash(draw, feature, purpose):
    """A hash of the node's key, the feature's name and the purpose."""
    first = draw.hashes.shape[0] - 2 * draw.features.shape[0]
    return _mix(draw.hashes[first + feature] ^ purpose)


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
def _order_by_hash(draw, row):
    """Build a heap of all features, in the order for the node in a row of the stack."""
    n_features, key = draw.features.shape[0], draw.hashes[row]
    first = draw.hashes.shape[0] - 2 * n_features
    for i in range(first, first + n_features):
        draw.hashes[i] = _mix(key ^ draw.hashes[i + n_features])
    for i in range(n_features // 2 - 1, -1, -1):
        _sink(draw, i, n_features)


@kernel
def _sink(draw, i, end):
    """Sift the feature at position i down to its place in the heap features[:end]."""
    features, first = draw.features, draw.hashes.shape[0] - 2 * draw.features.shape[0]
    order = draw.hashes[first:]
    child = 2 * i + 1
    while child < end:
        if child + 1 < end and order[features[child + 1]] < order[features[child]]:
            child += 1
        if order[features[i]] <= order[features[child]]:
            return
        _exchange(features, i, child)
        i = child
        child = 2 * i + 1
