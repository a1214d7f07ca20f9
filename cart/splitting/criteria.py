"""The split criteria by the names that users give, and the protocol that they implement."""

from cart.splitting.class_criteria import Entropy, Gini, share_times_log
from cart.splitting.criterion import (
    EPSILON,
    advance,
    arrange,
    children_impurity,
    impurity,
    load,
    move,
    needs_all,
    score,
    side_values,
    write_value,
)
from cart.splitting.mean_criteria import Poisson, SquaredError
from cart.splitting.median_criterion import AbsoluteError
from cart.splitting.twoing import OrderedTwoing, Twoing

__all__ = [
    "CLASSIFICATION",
    "EPSILON",
    "REGRESSION",
    "AbsoluteError",
    "Entropy",
    "Gini",
    "OrderedTwoing",
    "Poisson",
    "SquaredError",
    "Twoing",
    "advance",
    "arrange",
    "children_impurity",
    "impurity",
    "load",
    "move",
    "needs_all",
    "score",
    "share_times_log",
    "side_values",
    "write_value",
]

CLASSIFICATION = {
    "gini": Gini,
    "entropy": Entropy,
    "log_loss": Entropy,
    "twoing": Twoing,
    "ordered_twoing": OrderedTwoing,
}
REGRESSION = {"squared_error": SquaredError, "absolute_error": AbsoluteError, "poisson": Poisson}
