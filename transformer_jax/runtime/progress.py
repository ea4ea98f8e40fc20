"""Progress on stderr: a bar on a terminal, otherwise a plain line every ten seconds."""

import logging
import re
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tqdm import tqdm
from tqdm.utils import disp_len, disp_trim

from transformer_jax.runtime.errors import one_line
from transformer_jax.runtime.wording import counted

_SECONDS_BETWEEN_LINES = 10.0
_SECONDS_OF_SILENCE = 2.0
_SECONDS_FOR_A_RATE = 1.0
_SECONDS_FOR_TIME_LEFT = 10.0
_WITHOUT_TIME_LEFT = "{l_bar}{bar}| {n_fmt}/{total_fmt} [{elapsed}]"
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # but the line feed and the tab
COLUMNS = 80  # the width of a line on stderr
_muted = False


def mute() -> None:
  """Shows nothing from now on, because another process prints the same."""
  global _muted
  _muted = True
  logging.getLogger("transformer_jax").setLevel(logging.ERROR)


def say(text: str) -> None:
  """Writes text to stderr, above the progress bar if there is one.

  A terminal gets it `wrapped`. In a file no line is wrapped, so that `grep` finds it. Control characters,
  which a stranger's run folder may have put into the text, become spaces.
  """
  if _muted:
    return
  text = _CONTROL.sub(" ", text)
  tqdm.write(wrapped(text) if sys.stderr.isatty() else text, file=sys.stderr)
  sys.stderr.flush()


def wrapped(text: str) -> str:
  """The text with its lines wrapped to 80 columns, except indented ones: those are paths and commands, to be copied."""
  return "\n".join(line if line.startswith(" ") else _fill(line) for line in text.split("\n"))


def _fill(line: str) -> str:
  return textwrap.fill(line, COLUMNS, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def print_above(text: str) -> None:
  """Writes a line of the output to stdout at once, above the progress bar if there is one on the same terminal."""
  tqdm.write(text, file=sys.stdout)
  sys.stdout.flush()


@contextmanager
def doing(what: str) -> Iterator[None]:
  """Prints what the body does once it takes more than two seconds."""
  timer = threading.Timer(_SECONDS_OF_SILENCE, say, [f"{what} ..."])
  timer.daemon = True
  timer.start()
  try:
    yield
  finally:
    timer.cancel()


def shortened(text: str, columns: int = COLUMNS) -> str:
  """A text as one line of at most `columns` columns; some characters take two columns."""
  text = one_line(text)
  return text if disp_len(text) <= columns else f"{disp_trim(text, columns - 3)}..."


class Progress:
  """The progress of the work, its rate and the time left; it is a context manager.

  Args:
    unit: the unit that is counted, in the singular.
    total: the number of units in the end, if it is known.
    initial: the number of units done before, as in a resumed run.
    visible: false shows no progress; `note` still prints.
  """

  def __init__(self, unit: str, *, total: int | None = None, initial: int = 0, visible: bool = True):
    self._unit, self._total, self._initial, self._visible = unit, total, initial, visible
    self._count = initial
    self._shown: int | None = None  # the count of the last plain line
    self._last_line = time.monotonic()
    # The rate leaves out the first update, in which programs are compiled.
    self._first: tuple[int, float] | None = None
    self._bar: tqdm | None = None

  def __enter__(self) -> "Progress":
    self._last_line = time.monotonic()
    if self._visible and not _muted and sys.stderr.isatty():
      options = {"unit": f" {self._unit}s", "bar_format": None if self._total is None else _WITHOUT_TIME_LEFT}
      self._bar = tqdm(total=self._total, initial=self._initial, dynamic_ncols=True, **options)
    return self

  def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
    if self._bar is not None:
      self._bar.close()
    elif error is None and self._total is None and self._shown not in (None, self._count):
      say(self.describe())  # otherwise it would look as if something were missing

  def update(self, count: int) -> None:
    """Counts `count` more units as done."""
    self._count += count
    if count:
      self._first = self._first or (self._count, time.monotonic())
    if self._bar is not None:
      if self._time_left() is not None:
        self._bar.bar_format = None  # tqdm's default, with the time left
      self._bar.update(count)
    elif self._visible and time.monotonic() - self._last_line >= _SECONDS_BETWEEN_LINES:
      self._last_line, self._shown = time.monotonic(), self._count
      say(self.describe())

  def note(self, text: str, *, time_left: bool = True) -> None:
    """Prints a line that stays; without a bar it has the time left, too, if `time_left` is true."""
    left = self._time_left() if time_left and self._visible and self._bar is None else None
    self._last_line = time.monotonic()
    say(text if left is None else f"{text}, {left} left")

  def describe(self) -> str:
    """The progress in one line: the count, the rate and the time left."""
    nouns = f"{self._unit}s"
    done = counted(self._count, nouns) if self._total is None else f"{self._count:,} of {counted(self._total, nouns)}"
    rate, left = self._rate(), self._time_left()
    return done + (f", {rate:.3g} a second" if rate else "") + (f", {left} left" if left else "")

  def _rate(self) -> float | None:
    """The units per second; None until it is measured over a second.

    The outputs of a batch come together. Within a shorter time their rate would be that at which they are counted.
    """
    if self._first is None or self._count == self._first[0]:
      return None
    count, start = self._first
    seconds = time.monotonic() - start
    return (self._count - count) / seconds if seconds >= _SECONDS_FOR_A_RATE else None

  def _time_left(self) -> str | None:
    """The time left; None until the rate is measured over ten seconds."""
    rate = self._rate()
    if self._total is None or self._first is None or rate is None:
      return None
    if time.monotonic() - self._first[1] < _SECONDS_FOR_TIME_LEFT:
      return None
    return tqdm.format_interval(max(self._total - self._count, 0) / rate)
