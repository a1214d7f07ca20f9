"""Draw the wings in docs/architecture.md, from the imports.

Each row is a wing; it imports only wings below it.
"""

from benchmarks.harness import display
from benchmarks.structure.sources import PACKAGES, ROOT, arrows, docstring_of, modules

PAGE = ROOT / "docs" / "architecture.md"
BEGIN = "<!-- wings, by python -m benchmarks architecture -->"
END = "<!-- end of wings -->"
WHOLE = ("cartwood", *PACKAGES)  # including the public package
DOORS = ("__init__", "__main__")


def run(args):
    """Write the drawing into the page."""
    PAGE.write_text(with_picture(PAGE.read_text()))
    display.say(f"wrote {PAGE.relative_to(ROOT)}")


def with_picture(text):
    """The page's text with a fresh drawing."""
    head, begin, rest = text.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"{PAGE.name} lacks the lines {BEGIN!r} and {END!r}")
    return f"{head}{begin}\n```text\n{picture()}\n```\n{end}{tail}"


def picture(root=ROOT):
    """The packages and their wings from top to bottom: what each is, and what it imports."""
    found = modules(root, WHOLE)
    blocks = []
    for package in WHOLE:
        targets = {
            wing: below - {*DOORS}
            for wing, below in arrows(found, package).items()
            if wing not in DOORS
        }
        order = _from_top_to_bottom(targets)
        width = max(map(len, order))
        heads = [f"  {wing:{width}}  {_first_line(found, package, wing)}" for wing in order]
        room = max(map(len, heads))
        rows = [
            f"{head:{room}}  {_arrow(targets[wing], order)}".rstrip()
            for head, wing in zip(heads, order, strict=True)
        ]
        blocks.append("\n".join([package, *rows]))
    return "\n    |\n    v\n".join(blocks)


def _arrow(below, order):
    return "-> " + ", ".join(wing for wing in order if wing in below) if below else ""


def _from_top_to_bottom(targets):
    """Order wings so that each is above those that it imports; otherwise by name."""
    left = dict(sorted(targets.items()))
    order = []
    while left:
        imported = set().union(*left.values())
        free = [wing for wing in left if wing not in imported]
        if not free:
            raise ValueError(f"wings import each other in a circle: {', '.join(left)}")
        order.append(free[0])
        del left[free[0]]
    return order


def _first_line(found, package, wing):
    """First line of the docstring of a wing, without its full stop."""
    names = (f"{package}/{wing}/__init__.py", f"{package}/{wing}.py")
    module = next(module for module in found if module.name in names)
    docstring = docstring_of(module.tree)
    text = docstring.value.value.splitlines()[0] if docstring else ""
    return text.rstrip(".")
