"""The commands, a module each: what it is, its examples, its arguments, and what it does."""
