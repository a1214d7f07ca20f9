"""How many examples a property is tried on, and on how many rows: few where kernels are plain
Python. EXAMPLES times as many, drawn anew each time, where that is set (`make fuzz` does)."""

import os

from hypothesis import settings
from numba import config

TIMES = int(os.environ.get("EXAMPLES", "1"))


def examples(n):
    """Decorate a test of hypothesis to try n examples; with the JIT off, two."""
    return settings(max_examples=2 if config.DISABLE_JIT else n * TIMES)


def fewer(n):
    """n rows of a table, or fits; with the JIT off, a fifth."""
    return n // 5 if config.DISABLE_JIT else n
