"""Groups lines into windows that are translated together."""

import time
from collections.abc import Callable, Iterable, Iterator

from transformer_jax.runtime.errors import InputError
from transformer_jax.runtime.texts import require_text

# A window ends with the line that reaches this number of characters.
_CHARACTERS = 1 << 21
# Seconds to wait for another line, and for all lines of a window.
_PAUSE, _WAIT = 0.05, 1.0


def windows(
  lines: Iterable[str], most: int, more: Callable[[float], bool] = lambda seconds: True, first: int = 1
) -> Iterator[tuple[list[str], InputError | None]]:
  """Yields windows, each with the error that ended it or None.

  A window ends when it has `most` lines or some millions of characters, and when no
  line comes for a moment. An error ends it, too, and comes with the lines before it.

  Args:
    lines: the sentences.
    most: the most lines of a window.
    more: tells whether another line, or the end, comes within a number of seconds.
    first: the number of the first line.
  """
  texts = _texts(lines, first)
  while True:
    window: list[str] = []
    characters, begun = 0, 0.0
    try:
      for text in texts:
        begun = begun or time.monotonic()
        window.append(text)
        characters += len(text)
        if len(window) == most or characters >= _CHARACTERS:
          break
        if not more(max(0.0, min(_PAUSE, begun + _WAIT - time.monotonic()))):
          break
    except InputError as error:
      yield window, error
      return
    if not window:
      return
    yield window, None


def _texts(lines: Iterable[str], first: int) -> Iterator[str]:
  for number, line in enumerate(lines, first):
    require_text(line, f"line {number}")
    yield line
