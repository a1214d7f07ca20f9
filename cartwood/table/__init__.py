"""Tables from files: what is read, and what is done to every column before trees see it."""

from cartwood.table.columns import Recipe
from cartwood.table.files import read
from cartwood.table.task import Task

__all__ = ["Recipe", "Task", "read"]
