"""Slow, obvious counterparts of what the kernels compute, for the identity benchmark and tests."""
