"""Shared by all benchmarks: tables, timing, results, data, plots."""
