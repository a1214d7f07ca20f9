"""How many trees are grown together: what a group has finished is told, and kept by Ctrl-C."""

# In-bag rows of the first group, in each process, about.
_FIRST_ROWS = 1 << 21
# Seconds that a later group may take, about. Fewer trees would have as many levels, each with a way
# to all workers and back.
_SECONDS = 10.0
_MOST_MORE = 4  # times as many trees as in the group before


class Pace:
    """Sizes of groups, which follow from the time that the group before took.

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
        self._is_given = given is not None
        self._most = max(1, most)
        self._n = max(1, min(_FIRST_ROWS // max(1, n_rows), most)) if given is None else given

    def next(self, n_left: int) -> int:
        """Trees of the next group, where so many are left: groups to come are alike."""
        n_groups = -(-n_left // self._n)
        return -(-n_left // n_groups)

    def note(self, n_trees: int, seconds: float) -> None:
        """A group of so many trees took so long."""
        if not self._is_given:
            wanted = int(n_trees * _SECONDS / max(seconds, 1e-6))
            self._n = max(1, min(wanted, _MOST_MORE * n_trees, self._most))
