"""Mutation testing: small faults in a copy of the code, one at a time, and the nearest tests."""
