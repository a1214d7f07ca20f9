"""Deliberate faults: hostile, extreme or damaged inputs, and what happens then."""
