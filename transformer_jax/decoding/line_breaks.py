"""Line breaks inside a translation, which byte tokens can spell: each becomes a space, as a translation is one line."""

import re

# All characters that some program takes for the end of a line.
_LINE_BREAK = re.compile("[\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029]")


def without_line_breaks(text: str) -> str:
  """The text with a space for each line break."""
  return _LINE_BREAK.sub(" ", text)
