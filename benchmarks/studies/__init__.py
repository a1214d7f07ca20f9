"""Studies behind the documentation's claims on importances, intervals, votes and categories."""
