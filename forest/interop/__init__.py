"""Conversion between our forests and scikit-learn's."""
