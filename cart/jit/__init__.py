"""Compilation of kernels: the only wing that imports numba."""

import time

# Sources of kernels are read after this time, as the first of them imports this wing. The margin
# covers that first source, and file systems that tell time in steps of a few milliseconds.
SOURCES_READ_SINCE = time.time() - 0.1
