"""Forests of other libraries: which there are, where they are installed, what measures them."""
