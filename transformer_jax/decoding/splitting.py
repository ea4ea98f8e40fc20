"""Splits a text that is too long to be translated at once."""

import bisect
import re
from collections.abc import Callable

_SENTENCE_END = re.compile(r"""[.!?…]['")\]»”’]*\s+|[。！？]['"”’」』）]*""")  # noqa: RUF001  meant
_SPACE = re.compile(r"\s+")
# Few tokens spell more characters; one that does could only make a part shorter than necessary.
_CHARACTERS_PER_TOKEN = 16


def split(text: str, longest: int, count: Callable[[str], int]) -> list[str]:
  """Splits a text into parts of at most `longest` tokens.

  It cuts at the end of a sentence if there is one, else at a space, else between
  characters. Only the spaces around a cut are lost. Each part is as long as
  possible.

  Args:
    text: a line.
    longest: the most tokens of a part; a single character with more tokens is still a part.
    count: returns the number of tokens of a text.
  """
  parts = []
  start = 0
  while start < len(text):
    end = _end_of_part(text, start, longest, count)
    parts.append(text[start:end].strip())
    start = end
  return [part for part in parts if part]


def _end_of_part(text: str, start: int, longest: int, count: Callable[[str], int]) -> int:
  def too_long(end: int) -> bool:
    return count(text[start:end].strip()) > longest

  horizon = min(start + longest * _CHARACTERS_PER_TOKEN, len(text))
  enough = start + longest  # grows until it is beyond the part, as counting a much longer text would be slow
  while enough < horizon and not too_long(enough):
    enough += enough - start
  ends = range(start + 1, min(enough, horizon) + 1)
  farthest = start + bisect.bisect_left(ends, True, key=too_long)
  if farthest == len(text):
    return farthest
  for boundary in (_SENTENCE_END, _SPACE):
    for match in reversed(list(boundary.finditer(text, start, farthest))):
      if not too_long(match.end()):
        return match.end()
  return max(farthest, start + 1)
