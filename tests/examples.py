"""How many examples a property is tried on: few where kernels are plain Python."""

from hypothesis import settings
from numba import config


def examples(n):
    """Decorate a test of hypothesis to try n examples; with the JIT off, two."""
    return settings(max_examples=2 if config.DISABLE_JIT else n)
