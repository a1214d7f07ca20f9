"""Faults on purpose: what is hostile, extreme or damaged, and what then happens."""
