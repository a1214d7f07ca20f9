"""What each row contributes to an importance, and from that its standard error over data.

trees where row i is out of bag    t1     t4     t5         d: (its increase of loss - the tree's)
influence of row i               ( d_1i + d_4i + d_5i ) / T    x its share of the weight of rows

If only some of a tree's rows are drawn to judge it, the squared influence also contains the
variance of the draws. That part is known and is subtracted: the error over trees contains it.
"""

from typing import NamedTuple, Self

import numpy as np

from cart.jit.decorators import entry_kernel

# A row acts as a receiver of values, whose influence is known; as a donor, with similar influence;
# and as a row that trees are grown on. The variance of receivers alone is too small. Multiplied by
# these factors it covers the mean over tables in 92 to 98 % of intervals, pooled over features of
# signal and noise (`python -m benchmarks calibration --only rows`). Growth adds more in regression.
IN_CLASSIFICATION, IN_REGRESSION = 3.0, 4.0
MOST_ROWS = 1 << 12  # rows whose influence is summed, spread over the table


class Influence(NamedTuple):
    """Sums over trees of what each row adds to each group's importance."""

    number: np.ndarray  # (n_samples,) int64: index of the row, or its group, in `total`; or -1
    total: np.ndarray  # (n_groups, n_followed) float64
    of_draws: np.ndarray  # (n_groups,) float64: part of its squares due to the draws of rows

    @classmethod
    def empty(cls, units: np.ndarray, n_groups: int) -> Self:
        """An influence of no tree yet, for all rows or for MOST_ROWS spread over the table.

        `units` numbers the rows, or the groups of rows that the forest draws as a whole: rows of a
        group are added up.
        """
        rows = followed(units.max() + 1)
        number = np.full(units.max() + 1, -1)
        number[rows] = np.arange(len(rows))
        return cls(number[units], np.zeros((n_groups, len(rows))), np.zeros(n_groups))

    def again(self) -> Self:
        """An influence of no tree yet, for the same rows."""
        return self._replace(total=np.zeros_like(self.total), of_draws=np.zeros_like(self.of_draws))

    def add(
        self, groups: np.ndarray, increase: np.ndarray, rows: np.ndarray, of_rows: np.ndarray,
        weight: np.ndarray, drawn: float = 1.0,
    ) -> None:  # fmt: skip
        """Add a tree: the increase of its loss, (n_used,), and of each row's, (n_used, n_rows).

        `drawn` is the share of the tree's out-of-bag rows that `rows` are.
        """
        share = weight / weight.sum()
        _add(self, groups, increase, self.number[rows], of_rows, share, 1.0 - drawn)

    def merge(self, other: Self) -> None:
        """Add the sums of other trees."""
        self.total[:] += other.total
        self.of_draws[:] += other.of_draws


def followed(n_samples: int) -> np.ndarray:
    """Row numbers that are followed, ascending: all, or MOST_ROWS spread over the table."""
    n_followed = min(n_samples, MOST_ROWS)
    return np.arange(n_followed) * n_samples // max(1, n_followed)


def error_over_data(
    total: np.ndarray, n_samples: int, n_trees: int, has_classes: bool, over_trees: np.ndarray,
    of_draws: np.ndarray | float = 0.0,
) -> np.ndarray:  # fmt: skip
    """Standard error over data of the mean over trees, (n_groups,), from the sums of an Influence.

    `over_trees` is the standard error over trees.
    """
    times = IN_CLASSIFICATION if has_classes else IN_REGRESSION
    squares = np.maximum(np.square(total).sum(axis=1) - of_draws, 0.0) / n_trees**2
    return np.sqrt(times * squares * (n_samples / total.shape[1]) + over_trees**2)


@entry_kernel
def _add(influence, groups, increase, number, of_rows, share, left_out):
    for k in range(groups.shape[0]):
        squares = 0.0
        for i in range(number.shape[0]):
            if number[i] >= 0:
                added = (of_rows[k, i] - increase[k]) * share[i]
                influence.total[groups[k], number[i]] += added
                squares += added * added
        influence.of_draws[groups[k]] += left_out * squares
