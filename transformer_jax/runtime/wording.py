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


def duration(seconds: float) -> str:
  """A time in its two largest units, such as `2 hours 5 minutes`."""
  whole = round(seconds)
  units = (("days", 86_400), ("hours", 3600), ("minutes", 60), ("seconds", 1))
  parts = []
  for names, size in units:
    count, whole = divmod(whole, size)
    if count or parts:
      parts.append((count, names))
  return " ".join(counted(count, names) for count, names in parts[:2] if count) or "less than a second"
