"""What the documentation claims of importances, intervals, votes and categories."""
