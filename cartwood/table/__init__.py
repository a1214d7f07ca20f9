"""Tables from files: reading them, and converting every column to what trees take."""

from cartwood.table.columns import Recipe
from cartwood.table.files import read
from cartwood.table.task import Task

__all__ = ["Recipe", "Task", "read"]
