"""How many trees are grown together: what a group has finished is told, and kept by Ctrl-C."""

# In-bag rows of the first group, in each process, about.
_FIRST_ROWS = 1 << 21
_SECONDS = 10.0  # that a later group may take, about
_MOST_MORE = 4  # times as many trees as in the group before
# Every group has all levels, each with a way to all workers and back. Where that is most of the
# time, twice the trees take hardly longer: by so much more trees a second they are worth it.
_PAYS = 1.25


class Pace:
    """Sizes of groups, which follow from the time that groups before took.

    Parameters
    ----------
    n_rows : int
        In bag for a tree, in each process.
    most : int
        Trees that memory allows.
    given : int or None
        Trees of every group, where the user says so.
    """

    def __init__(self, n_rows: int, most: int, given: int | None = None) -> None:
        self._most = max(1, most) if given is None else given
        self._n = given or max(1, min(_FIRST_ROWS // max(1, n_rows), most))
        self._rate = 0.0  # trees a second

    def next(self, n_left: int) -> int:
        """Trees of the next group, where so many are left: groups to come are alike."""
        n_groups = -(-n_left // self._n)
        return -(-n_left // n_groups)

    def note(self, n_trees: int, seconds: float) -> None:
        """A group of so many trees took so long."""
        seconds = max(seconds, 1e-6)
        rate = n_trees / seconds
        if rate > _PAYS * self._rate or seconds < _SECONDS / 2:
            wanted = min(n_trees * _SECONDS / seconds, _MOST_MORE * n_trees)
            self._n = min(max(int(wanted), 2 * n_trees), self._most)
        self._rate = rate
