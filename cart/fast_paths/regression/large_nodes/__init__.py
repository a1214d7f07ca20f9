"""Nodes of many rows: cuts screened by bounds, features shared among threads."""
