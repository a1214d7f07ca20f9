"""What speed is made of: kernel families, phases of growth, the start of a process."""
