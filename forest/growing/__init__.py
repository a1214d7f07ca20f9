"""Growing trees in threads and on workers: progress, interrupts, when to stop."""
