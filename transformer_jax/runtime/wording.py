"""Phrases that messages share."""

import difflib
import re
from collections.abc import Iterable


def nearest(name: str, known: Iterable[str]) -> str:
  """The end of a message about an unknown name: the known names that may be meant, or an empty string."""
  found = difflib.get_close_matches(name, list(known), n=2)
  return f" (did you mean {' or '.join(found)}?)" if found else ""


def summary(text: str) -> str:
  """A text up to its first colon or full stop, on one line."""
  return re.split(r":\s|\.(?:\s+(?=\D)|$)", text.replace("\n", " "), maxsplit=1)[0]


def counted(number: int, nouns: str) -> str:
  """A number with a noun; `nouns` is the plural: `1 line`, `1,000 lines`, `1 pair skipped`."""
  noun = re.sub(r"(?<=[a-z]{2})s\b", "", nouns, count=1)
  return f"{number:,} {noun if number == 1 else nouns}"
