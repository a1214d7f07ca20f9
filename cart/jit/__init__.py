"""Compilation: the only wing that knows numba."""
