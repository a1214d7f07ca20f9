"""The split criteria by the names that users give."""

from cart.splitting.class_criteria import Entropy, Gini
from cart.splitting.mean_criteria import Poisson, SquaredError
from cart.splitting.median_criterion import AbsoluteError
from cart.splitting.twoing import OrderedTwoing, Twoing

CLASSIFICATION = {
    "gini": Gini,
    "entropy": Entropy,
    "log_loss": Entropy,
    "twoing": Twoing,
    "ordered_twoing": OrderedTwoing,
}
REGRESSION = {"squared_error": SquaredError, "absolute_error": AbsoluteError, "poisson": Poisson}
