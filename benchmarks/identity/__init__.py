"""How far trees are scikit-learn's: every difference is judged in exact arithmetic."""
