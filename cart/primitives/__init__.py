"""Algorithms that know nothing of trees: sorting, random numbers, order of floats, threads."""
