"""The tables of docs/benchmarks.md, from the results that were kept."""

from importlib import import_module

from benchmarks import display, results

BENCHMARKS = {
    "speed": ["table"],
    "groups": ["table"],
    "categorical": ["table", "generated_table"],
    "voting": ["table"],
    "intervals": ["table", "pinball_table", "race_table"],
    "forest": ["table", "curve_table", "partition_table"],
    "importance": ["table", "speed_table"],
    "calibration": ["table"],
    "phases": ["table"],
    "startup": ["table"],
    "identity": ["table", "matrix_table"],
}
PAGE = results.ROOT / "docs" / "benchmarks.md"


def run(args):
    """Write the page again."""
    parts = ["# Benchmarks\n\nMade by `python -m benchmarks tables` from `benchmarks/results`.\n"]
    for name, kinds in BENCHMARKS.items():
        content = results.load(name)
        if content is None:
            display.say(f"no results of {name} yet; run `python -m benchmarks {name}`")
            continue
        module = import_module(f"benchmarks.{name}")
        parts += [display.markdown(getattr(module, kind)(content)) for kind in kinds]
        where = ", ".join(f"{key} {value}" for key, value in content["environment"].items())
        parts.append(f"Measured with: {where}.\n")
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text("\n".join(parts))
    display.say(f"wrote {PAGE}")
