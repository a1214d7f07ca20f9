"""Which features matter: functions of a fitted forest, each with its uncertainty and its bias."""

from importance.drop_column import drop_column
from importance.forest_level import forest_permutation
from importance.impurity import mdi
from importance.permutation import oob_permutation
from importance.result import Importances

__all__ = ["Importances", "drop_column", "forest_permutation", "mdi", "oob_permutation"]
