"""Components of speed: kernel families, phases of growth, the start of a process."""
