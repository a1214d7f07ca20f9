"""Trees over threads and workers: progress, interrupts, when to stop."""
