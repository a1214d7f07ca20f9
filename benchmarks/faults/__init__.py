"""Faults on purpose: what is damaged, by a stated seed, and counted in processes of their own."""
