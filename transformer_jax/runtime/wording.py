"""Phrases of messages that are the same everywhere."""

import difflib
from collections.abc import Iterable


def nearest(name: str, known: Iterable[str]) -> str:
  """The end of a sentence about a name that is not known: which one may be meant, or nothing."""
  found = difflib.get_close_matches(name, list(known), n=2)
  return f" (did you mean {' or '.join(found)}?)" if found else ""


def counted(number: int, noun: str) -> str:
  """A number with its noun: `1 line`, `2 lines`, `1,000 lines`."""
  return f"{number:,} {noun}{'' if number == 1 else 's'}"
