"""Algorithms that know nothing of trees: sorting, random numbers, float ordering, threads."""
