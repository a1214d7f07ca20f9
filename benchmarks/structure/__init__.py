"""The code as data: what the house is measured by, and the picture of its wings."""
