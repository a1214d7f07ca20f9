"""What all benchmarks share: tables, timing, results, data, plots."""
