"""Between our forests and scikit-learn's."""
