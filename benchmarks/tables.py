"""Write the tables of docs/benchmarks.md and README.md from the saved results."""

from importlib import import_module

from benchmarks.harness import display, results

BENCHMARKS = {  # by name of the results: the module that measured them, and its tables
    "suite": ("suite.run", ["table", "peer_table", "sizes_table", "scaling_table"]),
    "groups": ("studies.groups", ["table"]),
    "kinds": ("studies.kinds", ["table"]),
    "categorical": ("studies.categorical", ["table", "generated_table"]),
    "book": ("studies.book", ["agreement_table", "pruning_table"]),
    "book_missing": ("studies.book_missing", ["table"]),
    "book_speed": ("studies.book_speed", ["table"]),
    "voting": ("studies.voting", ["table"]),
    "intervals": ("studies.intervals", ["table", "pinball_table", "race_table"]),
    "forest": ("studies.forest", ["table", "curve_table", "partition_table"]),
    "distributed": ("studies.distributed", ["table"]),
    "importance": ("studies.importance", ["table", "speed_table"]),
    "calibration": ("studies.calibration", ["table"]),
    "words": ("studies.words", ["table"]),
    "conditional": ("studies.conditional", ["table", "time_table"]),
    "shap": ("studies.shap", ["table", "race_table", "null_table"]),
    "phases": ("micro.phases", ["table"]),
    "startup": ("micro.startup", ["table"]),
    "identity": ("identity.run", ["table", "matrix_table"]),
}
PAGE = results.ROOT / "docs" / "benchmarks.md"
README = results.ROOT / "README.md"
INTRODUCTION = """# Benchmarks

Made by `python -m benchmarks tables` from `benchmarks/results`; `python -m benchmarks --help` lists
the commands that measure. A *bar* is the value aimed at, and *reached* tells whether it was met.
The end of each section gives the versions, the CPU and the commits of the measurement.
"""
BEGIN, END = "<!-- figures, by python -m benchmarks tables -->\n", "<!-- end of figures -->\n"


def run(args):
    """Rewrite the page and the figures in README.md."""
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page())
    display.say(f"wrote {PAGE}")
    if (content := results.load("suite")) is not None:
        README.write_text(with_figures(README.read_text(), content))
        display.say(f"wrote {README}")


def page():
    """The text of docs/benchmarks.md."""
    parts = [INTRODUCTION]
    for name, (home, kinds) in BENCHMARKS.items():
        content = results.load(name)
        if content is None:
            display.say(f"no results of {name} yet; run `python -m benchmarks {name}`")
            continue
        module = import_module(f"benchmarks.{home}")
        parts += [display.markdown(getattr(module, kind)(content)) for kind in kinds]
        for figure in sorted((PAGE.parent / "figures").glob(f"{name}_*.png")):
            parts.append(f"![{figure.stem.replace('_', ' ')}](figures/{figure.name})\n")
        parts.append(_measured_with(content))
    return "\n".join(parts)


def _measured_with(content):
    """The environment of the last measurement, and the commits of rows that are older."""
    where = ", ".join(f"{key} {value}" for key, value in content["environment"].items())
    lists = (rows for rows in content.values() if isinstance(rows, list))
    rows = (row for rows in lists for row in rows if isinstance(row, dict))
    older = {row["commit"] for row in rows if "commit" in row} - {content["environment"]["commit"]}
    also = f" Other rows are of {', '.join(sorted(older))}." if older else ""
    return f"Measured with: {where}.{also}\n"


def with_figures(text, content):
    """The text of README.md with its figures replaced by those of the suite.

    Parameters
    ----------
    text : str
    content : dict
        Results of the suite.

    Returns
    -------
    str
    """
    table = import_module("benchmarks.suite.run").table(content)
    kept = [0, 1, 2, 3, 6]  # case, both fits, their ratio, the ratio of predicting
    small = display.Table(
        "", [table.columns[i] for i in kept], [[row[i] for i in kept] for row in table.rows]
    )
    lines = display.markdown(small).split("\n", 2)[2]
    before, rest = text.split(BEGIN)
    return before + BEGIN + "\n" + lines + "\n" + END + rest.split(END)[1]
