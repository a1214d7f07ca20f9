"""Benchmarks: Cartwood and scikit-learn side by side, on the same data and seeds."""
