"""Compilation: the only wing that knows numba."""

import time

# Sources of kernels are read from here on, while the first that needs this wing is imported. File
# systems tell time in steps of a few milliseconds.
SOURCES_READ_SINCE = time.time() - 0.1
