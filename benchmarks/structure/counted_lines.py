"""Count the lines that a reader has to understand.

Public docstrings, drawings, and lines that signatures need only for type hints do not count.
"""

import ast
import re

from benchmarks.structure.sources import docstring_of

WIDTH = 100  # line length of the formatter
# A drawing's line in a comment or docstring: cells side by side, boxes, braces below arrays.
_DRAWS = re.compile(
    r"[│┌┐└┘├┤┬┴┼─▲▼→←↑↓]{2}|[│┃] .* [│┃]|\|.*\|.*\||\[[^\]]*\|[^\]]*\]|\+-{2,}|-{2,}>|<-{2,}|"
    r"(\S+ {3,}){3}|(\S+ {2,}){4}|\[ \S+( \S+)+ \]|(\b\w\w? ){3}\|( \w\w?\b){3}|\^ +\^|\\_+/|\._*\."
)


def count(module):
    """Number of lines of a module that count."""
    aside = set()
    for node in ast.walk(module.tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
            docstring = docstring_of(node)
            if docstring and not getattr(node, "name", "").startswith("_"):
                aside.update(range(docstring.lineno, docstring.end_lineno + 1))
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            aside.update(range(node.lineno, node.end_lineno + 1))
    aside.update(i for i, line in drawn_lines(module))
    return len(module.lines) - len(aside) - sum(map(_lines_of_hints, _hinted(module)))


def drawn_lines(module):
    """Numbers and texts of the lines of drawings in comments and docstrings."""
    for first, last in _blocks(module):
        block = range(first, last + 1)
        drawn = [i for i in block if _DRAWS.search(module.lines[i - 1])]
        if len(drawn) >= 2:
            yield from ((i, module.lines[i - 1]) for i in range(drawn[0], drawn[-1] + 1))


def _blocks(module):
    """First and last lines of paragraphs of docstrings, and of runs of comments."""
    for node in ast.walk(module.tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
            docstring = docstring_of(node)
            if docstring:
                yield from _paragraphs(module, docstring.lineno, docstring.end_lineno)
    first = None
    for i, line in enumerate([*module.lines, ""], 1):
        is_comment = line.lstrip().startswith("#")
        if is_comment and first is None:
            first = i
        elif not is_comment and first is not None:
            yield first, i - 1
            first = None


def _paragraphs(module, first, last):
    start = first
    for i in range(first, last + 1):
        if not module.lines[i - 1].strip():
            yield start, i - 1
            start = i + 1
    yield start, last


def _hinted(module):
    for node in ast.walk(module.tree):
        if isinstance(node, ast.FunctionDef):
            arguments = [*ast.walk(node.args)]
            if node.returns or any(getattr(item, "annotation", None) for item in arguments):
                yield node


def _lines_of_hints(node):
    """How many lines a signature takes beyond those it would take without hints."""
    text = ast.unparse(node.args)
    n_lines = (docstring_of(node) or node.body[0]).lineno - node.lineno
    for argument in ast.walk(node.args):
        if isinstance(argument, ast.arg) and argument.annotation:
            text = text.replace(f": {ast.unparse(argument.annotation)}", "", 1)
    bare = node.col_offset + len(f"def {node.name}({text}):")
    if bare <= WIDTH:
        needed = 1
    elif node.col_offset + 4 + len(text) <= WIDTH:
        needed = 3
    else:
        needed = 2 + len([item for item in ast.walk(node.args) if isinstance(item, ast.arg)])
    return max(0, n_lines - needed)
