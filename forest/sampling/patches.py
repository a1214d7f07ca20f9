"""The rows and features drawn for each estimator of Bagging: random patches."""

from dataclasses import dataclass

import numpy as np
from sklearn.utils.random import sample_without_replacement

from cart.files import storable
from forest.sampling.bootstrap import Bootstrap, Draws, restart_stream


@dataclass(frozen=True, eq=False)
class Patches(Draws):
    """The rows and features that each estimator of Bagging is fitted on.

    These random patches (Louppe and Geurts 2012) are drawn as in scikit-learn: a stream from the
    seed of an estimator gives first its features, then its rows.

    Parameters
    ----------
    seeds : ndarray of shape (n_estimators,), int64
    n_samples : int
        Number of rows of the training table.
    n_draws : int
        Number of rows drawn per estimator.
    bootstrap : bool
        Draw rows with replacement.
    n_features : int
        Number of features of the training table.
    n_drawn_features : int
        Number of features drawn per estimator.
    bootstrap_features : bool
        Draw features with replacement.
    probabilities : ndarray of shape (n_samples,), floating, or None
        Probability of each row at each draw; None is uniform.
    """

    seeds: np.ndarray
    n_samples: int
    n_draws: int
    bootstrap: bool
    n_features: int
    n_drawn_features: int
    bootstrap_features: bool
    probabilities: np.ndarray | None = None

    def features(self, i: int) -> np.ndarray:
        """Features drawn for estimator i, in the order of the draws.

        Returns
        -------
        ndarray of shape (n_drawn_features,), int64
        """
        return self._draw_features(restart_stream(self.seeds[i]))

    def draws(self, i: int) -> np.ndarray:
        """Rows drawn for estimator i, in the order of the draws.

        Returns
        -------
        ndarray of shape (n_draws,), int64
        """
        stream = restart_stream(self.seeds[i])
        self._draw_features(stream)
        if self.probabilities is None:
            return _draw_uniform(stream, self.n_samples, self.n_draws, self.bootstrap)
        return stream.choice(
            self.n_samples, self.n_draws, replace=self.bootstrap, p=self.probabilities
        )

    def check(self) -> None:
        """Check that only rows and features of the table are drawn; see `Bootstrap.check`."""
        Bootstrap(self.seeds, self.n_samples, self.n_draws, self.probabilities).check()
        Bootstrap(self.seeds, self.n_features, self.n_drawn_features).check()

    def _draw_features(self, stream):
        return _draw_uniform(
            stream, self.n_features, self.n_drawn_features, self.bootstrap_features
        )


storable("Patches", Patches)


def _draw_uniform(stream, n_population, n_draws, replace):
    if replace:
        return stream.randint(0, n_population, n_draws)
    return sample_without_replacement(n_population, n_draws, random_state=stream)
