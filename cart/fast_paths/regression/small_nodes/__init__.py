"""Nodes of few rows: held in words, searched by vectors, grown to their leaves in one go."""
