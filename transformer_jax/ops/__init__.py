"""Faster computations of plain formulas."""
