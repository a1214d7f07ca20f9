"""Gini and entropy on whole class counts."""
