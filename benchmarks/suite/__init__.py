"""Fit and predict against scikit-learn and other peers, case by case."""
