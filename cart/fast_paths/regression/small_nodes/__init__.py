"""Nodes of few rows: packed into words, searched with vectors, grown to their leaves in one go."""
