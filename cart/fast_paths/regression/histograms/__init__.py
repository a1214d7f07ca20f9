"""Sums of a node's rows by code, where sums are exact in any order."""
