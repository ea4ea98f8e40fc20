"""Kernels behind the plain formulas: they compute the same, faster."""
