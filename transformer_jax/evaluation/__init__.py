"""Scores of translations and parses."""
