"""Mutations: where one change can be made in a source, and what it is."""

import ast
import copy
from typing import NamedTuple

COMPARISONS = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
ARITHMETIC = {ast.Add: ast.Sub, ast.Sub: ast.Add}
EXTREMES = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum"}
# Left as they are: words for people, and checks that precede any work.
UNTOUCHED = (ast.Raise, ast.Assert, ast.JoinedStr, ast.Import, ast.ImportFrom)


class Mutation(NamedTuple):
    """One change of a source: the characters from `start` to `end` become `text`.

    `line` is the first line of the statement.
    """

    line: int
    start: int
    end: int
    kind: str
    text: str
    before: str

    def apply(self, source: str) -> str:
        """The changed source."""
        return source[: self.start] + self.text + source[self.end :]

    @property
    def words(self) -> str:
        """The code before and after, on one line."""
        return " ".join(f"{self.before}  ->  {self.text}".split("\n"))


def mutations(source: str) -> list[Mutation]:
    """All mutations of a source, in the order of its lines.

    Comparisons gain or lose their "equal", sums become differences, `and` becomes `or`, `min`
    becomes `max` (and vice versa), indices and integers grow by one, floats by one half of their
    value (0.0 becomes 1.0), truth values are negated, and statements that write or call are left
    out.

    Parameters
    ----------
    source : str
        The text of a module.

    Returns
    -------
    list of Mutation
    """
    lines = source.splitlines(keepends=True)
    first = [0]
    for line in lines:
        first.append(first[-1] + len(line))
    found = []

    def place(line, column):
        text = lines[line - 1].encode()[:column].decode()
        return first[line - 1] + len(text)

    for line, node in _code(ast.parse(source)):
        start = place(node.lineno, node.col_offset)
        end = place(node.end_lineno, node.end_col_offset)
        for kind, text in _changes(node):
            found.append(Mutation(line, start, end, kind, text, source[start:end]))
    return sorted(found)


def _changes(node):
    """Kinds of change, and the text that replaces a node."""
    if isinstance(node, ast.stmt):
        if _may_be_left_out(node):
            yield "statement left out", "pass"
        if isinstance(node, ast.AugAssign) and type(node.op) in ARITHMETIC:
            yield "+ and -", _unparse(node, op=ARITHMETIC[type(node.op)]())
    elif isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARISONS:
        ops = [COMPARISONS[type(node.ops[0])](), *node.ops[1:]]
        yield "comparison", f"({_unparse(node, ops=ops)})"
    elif isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
        yield "+ and -", f"({_unparse(node, op=ARITHMETIC[type(node.op)]())})"
    elif isinstance(node, ast.BoolOp):
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield "and, or, not", f"({_unparse(node, op=other)})"
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield "and, or, not", f"({ast.unparse(node.operand)})"
    elif isinstance(node, ast.Subscript):
        yield from _indices(node)
    elif isinstance(node, ast.Constant):
        yield from _constants(node)
    elif isinstance(node, ast.Name) and node.id in EXTREMES:
        yield "min and max", EXTREMES[node.id]
    elif isinstance(node, ast.Attribute) and node.attr in EXTREMES:
        yield "min and max", _unparse(node, attr=EXTREMES[node.attr])


def _code(tree):
    """Nodes of computing code, with the first line of their statement.

    Leaves out messages, type hints and decorators; plain indices are changed as part of their
    subscript only.
    """
    waiting = [(0, tree)]
    while waiting:
        line, node = waiting.pop()
        if isinstance(node, ast.stmt):
            line = node.lineno
        if isinstance(node, (ast.stmt, ast.expr)):
            yield line, node
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list"):
                continue
            for child in value if isinstance(value, list) else [value]:
                is_words = isinstance(child, UNTOUCHED) or _is_docstring(child)
                is_index = isinstance(node, ast.Subscript) and name == "slice" and _is_plain(child)
                if isinstance(child, ast.AST) and not is_words and not is_index:
                    waiting.append((line, child))


def _is_docstring(node):
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_plain(node):
    return isinstance(node, (ast.Constant, ast.Name))


def _may_be_left_out(node):
    """Whether a statement writes somewhere or calls. Names left unset would be no test of tests."""
    if isinstance(node, ast.Assign):
        return all(isinstance(target, (ast.Subscript, ast.Attribute)) for target in node.targets)
    return isinstance(node, (ast.AugAssign, ast.Continue, ast.Break, ast.Expr))


def _indices(node):
    """Replace an index by the next one, except in a shape, which may not have it."""
    index = node.slice
    if isinstance(node.value, ast.Attribute) and node.value.attr == "shape":
        return
    if isinstance(index, ast.Constant) and not isinstance(index.value, int):
        return
    if isinstance(index, (ast.Constant, ast.Name)):
        yield "index", _unparse(node, slice=_plus_one(index))


def _plus_one(node):
    if isinstance(node, ast.Constant):
        return ast.Constant(node.value + 1)
    return ast.BinOp(node, ast.Add(), ast.Constant(1))


def _constants(node):
    if isinstance(node.value, bool):
        yield "and, or, not", str(not node.value)
    elif isinstance(node.value, int):
        yield "number", str(node.value + 1)
    elif isinstance(node.value, float):
        yield "number", repr(node.value * 1.5 if node.value else 1.0)


def _unparse(node, **changed):
    node = copy.copy(node)
    for name, value in changed.items():
        setattr(node, name, value)
    return ast.unparse(node)
