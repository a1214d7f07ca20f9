"""Read the packages' sources: modules, their imports, functions and kernels."""

import ast
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("importance", "forest", "cart")  # from top to bottom
KERNEL_DECORATORS = ("kernel", "inline_kernel", "entry_kernel", "dispatch", "njit")


class Function(NamedTuple):
    """A function of a module."""

    module: str
    name: str
    n_lines: int  # without its docstring
    n_parameters: int
    is_kernel: bool


class Module:
    """A source file.

    Parameters
    ----------
    path : Path
    root : Path
        Root of the checkout.
    """

    def __init__(self, path, root):
        self.name = path.relative_to(root).as_posix()
        self.text = path.read_text()
        self.lines = self.text.splitlines()

    @property
    def package(self):
        return self.name.partition("/")[0]

    @property
    def wing(self):
        """The folder, or file, of the package that the module is in or is."""
        return self.name.split("/")[1].removesuffix(".py")

    @cached_property
    def tree(self):
        return ast.parse(self.text)

    def imports(self):
        """Dotted names of everything that is imported anywhere in the module."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                yield from (f"{node.module}.{alias.name}" for alias in node.names)

    def functions(self):
        """Every function and method, as a Function."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.FunctionDef):
                n_lines = node.end_lineno - node.lineno + 1 - _span(docstring_of(node))
                arguments = node.args
                names = arguments.posonlyargs + arguments.args + arguments.kwonlyargs
                marks = {_decorator_name(decorator) for decorator in node.decorator_list}
                is_kernel = not marks.isdisjoint(KERNEL_DECORATORS)
                yield Function(self.name, node.name, n_lines, len(names), is_kernel)


def modules(root=ROOT, packages=PACKAGES):
    """The modules of the packages, sorted by path."""
    paths = (path for package in packages for path in (root / package).rglob("*.py"))
    return [Module(path, root) for path in sorted(paths)]


def docstring_of(node):
    """The expression that is the docstring of a module, class or function, or None."""
    first = node.body[0] if node.body else None
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
        return first if isinstance(first.value.value, str) else None
    return None


def _span(node):
    return node.end_lineno - node.lineno + 1 if node else 0


def _decorator_name(node):
    node = node.func if isinstance(node, ast.Call) else node
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def arrows(found, package):
    """The wings that each wing of a package imports: wing -> set of wings."""
    mine = [module for module in found if module.package == package]
    wings = {module.wing for module in mine}
    result = {wing: set() for wing in sorted(wings)}
    for module in mine:
        for name in module.imports():
            first, _, rest = name.partition(".")
            target = rest.partition(".")[0]
            if first == package and target in wings - {module.wing}:
                result[module.wing].add(target)
    return result


def count_floors(targets):
    """Length of the longest chain of imports among wings."""
    known = {}

    def height(wing):
        if wing not in known:
            known[wing] = 0  # ends a circular import
            known[wing] = 1 + max((height(below) for below in targets[wing]), default=0)
        return known[wing]

    return max(map(height, targets))
