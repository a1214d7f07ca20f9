"""Slow, obvious twins of what the kernels compute, for the identity benchmark and the tests."""
