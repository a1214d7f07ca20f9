"""scikit-learn's own tests of trees, forests and Bagging, on our classes: `make conformance`."""
