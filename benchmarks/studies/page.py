"""The page benchmark: `cartwood importance` on a large table, from the CSV to the page."""

import html
import re
import subprocess
import sys
from os import cpu_count, getloadavg
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from tempfile import TemporaryDirectory
from time import perf_counter

from benchmarks.harness import display, flights, results

BAR = 120.0  # seconds on two cores


def run(args):
    """Write the CSV, run the command as users would, and report its time and finding."""
    table = flights.read_all()
    table = table.sample(20_000, random_state=0) if args.quick else table
    with TemporaryDirectory() as folder:
        source, page = Path(folder) / "flights.csv", Path(folder) / "page.html"
        table.to_csv(source, index=False)
        words = [str(source), "--target", "arr_delay", "--n-jobs", "2", "--output", str(page)]
        load, before, begin = getloadavg()[0], getrusage(RUSAGE_CHILDREN), perf_counter()
        subprocess.run([sys.executable, "-m", "cartwood", "importance", *words], check=True)
        seconds, after = perf_counter() - begin, getrusage(RUSAGE_CHILDREN)
        lead = re.search(r'<p class="lead">(.*?)</p>', page.read_text(encoding="utf-8"))[1]
    found = {
        "rows": len(table), "columns": table.shape[1], "cores": cpu_count(), "load before": load,
        "seconds": seconds, "processor seconds": after.ru_utime - before.ru_utime,
        "peak MB": after.ru_maxrss / 1024, "bar": BAR, "first words": html.unescape(lead),
    }  # fmt: skip
    for name, value in found.items():
        display.say(f"{name}: {value:,.1f}" if isinstance(value, float) else f"{name}: {value}")
    results.keep(args, "page", found)
