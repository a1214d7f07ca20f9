"""Conversion of trees to and from other libraries; former names of modules."""
