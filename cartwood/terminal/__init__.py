"""What a command says on the terminal: lines, tables, progress, errors in words."""

from cartwood.terminal.errors import UserError, nearest, require
from cartwood.terminal.progress import Phases, Steps
from cartwood.terminal.text import named_version, print_table, say

__all__ = [
    "Phases",
    "Steps",
    "UserError",
    "named_version",
    "nearest",
    "print_table",
    "require",
    "say",
]
