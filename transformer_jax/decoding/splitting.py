"""A text that is too long for one piece, cut into parts."""

import bisect
import re
from collections.abc import Callable

_SENTENCE_END = re.compile(r"""[.!?…]['")\]»”’]*\s+|[。！？]['"”’」』）]*""")  # noqa: RUF001  meant
_SPACE = re.compile(r"\s+")
# Few pieces of a vocabulary are longer; a longer one could only make a part shorter than it might be.
_CHARACTERS_PER_TOKEN = 16


def split(text: str, longest: int, count: Callable[[str], int]) -> list[str]:
  """Parts of at most `longest` tokens, cut at the ends of sentences, else at spaces, else between characters.

  Only the spaces around a cut are lost. A part is as long as it can be.

  Args:
    text: a line.
    longest: most tokens of a part; a single character that has more is still a part.
    count: how many tokens a text has.
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
  enough = start + longest  # a text is counted that is not much longer than the part
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
