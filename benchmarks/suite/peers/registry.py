"""The registry of peers: libraries that fit forests, each in an environment of its own."""

from typing import NamedTuple


class Peer(NamedTuple):
    """A library that is measured; `models.py` or `forest.R` defines its models."""

    name: str
    language: str  # "Python" or "R"
    installs: bool  # from environments/NAME.txt; otherwise it is in this environment, or in R
    repeats: bool  # measured in every round, not only in the first
    has_threads: bool
    starts_soon: bool  # otherwise --quick leaves it out
    note: str  # how its forests differ from scikit-learn's


PEERS = (
    Peer("cartwood", "Python", False, True, True, True, "scikit-learn's trees, node for node"),
    Peer("scikit-learn", "Python", False, True, True, True, "the reference"),
    Peer("scikit-learn-intelex", "Python", True, True, True, True, "bins of at most 256 values"),
    Peer("lightgbm", "Python", True, False, True, True, "255 bins, up to 2**17 leaves, subsamples"),
    Peer("xgboost", "Python", True, False, True, True, "256 bins, subsamples"),
    Peer("ydf", "Python", True, False, True, True, "exact, of its own kind"),
    Peer("wildwood", "Python", True, False, True, False, "256 bins"),
    Peer("ranger", "R", False, False, True, True, "exact, thresholds as it draws them"),
    Peer("randomForest", "R", False, False, False, True, "exact, Breiman's own code"),
)
BY_NAME = {peer.name: peer for peer in PEERS}
OURS, REFERENCE = "cartwood", "scikit-learn"
