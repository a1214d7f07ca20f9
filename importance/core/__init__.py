"""Shared by all importances: the result, the fitted forest, groups of columns, losses, plots."""

from importance.core.one_output import of_output
from importance.core.result import Importances

__all__ = ["Importances", "of_output"]
