"""Tables of indicators, columns of two values: rows as bits, and all columns counted at once."""
