"""Forests of other libraries: who they are, where they are installed, and what measures them."""
