"""How many trees to grow together: finished groups are reported, and kept on Ctrl-C."""

# Approximate number of in-bag rows of the first group, in each process.
_FIRST_ROWS = 1 << 21
_SECONDS = 10.0  # approximate limit of the time that a later group takes
_MOST_MORE = 4  # a group has at most this many times the trees of the previous one
# Every level of a group costs a round trip to all workers. If that takes most of the time, twice as
# many trees take hardly longer. Groups grow while the rate of trees grows by at least this factor.
_PAYS = 1.25


class Pace:
    """Chooses the sizes of groups by the times that previous groups took.

    Parameters
    ----------
    n_rows : int
        In-bag rows of a tree, in each process.
    most : int
        Largest group for which memory suffices.
    given : int or None
        Size of every group, if the user gives it.
    """

    def __init__(self, n_rows: int, most: int, given: int | None = None) -> None:
        self._most = max(1, most) if given is None else given
        self._n = given or max(1, min(_FIRST_ROWS // max(1, n_rows), most))
        self._rate = 0.0  # trees per second

    def next(self, n_left: int) -> int:
        """Size of the next group if `n_left` trees are left, divided into groups of equal size."""
        n_groups = -(-n_left // self._n)
        return -(-n_left // n_groups)

    def note(self, n_trees: int, seconds: float) -> None:
        """Note how long a group took."""
        seconds = max(seconds, 1e-6)
        rate = n_trees / seconds
        if rate > _PAYS * self._rate or seconds < _SECONDS / 2:
            wanted = min(n_trees * _SECONDS / seconds, _MOST_MORE * n_trees)
            self._n = min(max(int(wanted), 2 * n_trees), self._most)
        self._rate = rate
