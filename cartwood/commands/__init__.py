"""The commands, one module each: help, examples, arguments, and the function that runs it."""
