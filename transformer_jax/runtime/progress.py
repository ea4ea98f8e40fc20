"""Progress on stderr: a bar on a terminal, a plain line now and then elsewhere."""

import logging
import sys
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
_SECONDS_FOR_A_RATE = 10.0
_WITHOUT_TIME_LEFT = "{l_bar}{bar}| {n_fmt}/{total_fmt} [{elapsed}]"
COLUMNS = 80  # of a line that is said
_muted = False


def mute() -> None:
  """Shows nothing from now on: another process says the same."""
  global _muted
  _muted = True
  logging.getLogger("transformer_jax").setLevel(logging.ERROR)


def say(text: str) -> None:
  """Writes lines to stderr, above the bar if there is one."""
  if _muted:
    return
  tqdm.write(text, file=sys.stderr)
  sys.stderr.flush()


@contextmanager
def doing(what: str) -> Iterator[None]:
  """Says what is done in the body, as soon as that takes more than two seconds."""
  timer = threading.Timer(_SECONDS_OF_SILENCE, say, [f"{what} ..."])
  timer.daemon = True
  timer.start()
  try:
    yield
  finally:
    timer.cancel()


def shortened(text: str, columns: int = COLUMNS) -> str:
  """A text as one line of at most so many columns, of which some characters take two."""
  text = one_line(text)
  return text if disp_len(text) <= columns else f"{disp_trim(text, columns - 3)}..."


class Progress:
  """How far the work is, how fast it goes and how long it will take.

  To be used as a context manager.

  Args:
    unit: what is counted, in the singular.
    total: how many there will be, if that is known.
    initial: how many were done before, as in a run that is resumed.
    visible: false shows nothing; `note` still speaks.
  """

  def __init__(self, unit: str, *, total: int | None = None, initial: int = 0, visible: bool = True):
    self._unit, self._total, self._initial, self._visible = unit, total, initial, visible
    self._count = initial
    self._last_line = time.monotonic()
    # The rate is that of what comes after the first update, in which programs are compiled.
    self._first: tuple[int, float] | None = None
    self._bar: tqdm | None = None

  def __enter__(self) -> "Progress":
    self._last_line = time.monotonic()
    if self._visible and not _muted and sys.stderr.isatty():
      options = {"unit": f" {self._unit}s", "bar_format": None if self._total is None else _WITHOUT_TIME_LEFT}
      self._bar = tqdm(total=self._total, initial=self._initial, dynamic_ncols=True, **options)
    return self

  def __exit__(self, *_: object) -> None:
    if self._bar is not None:
      self._bar.close()

  def update(self, count: int) -> None:
    """`count` more are done."""
    self._count += count
    self._first = self._first or (self._count, time.monotonic())
    if self._bar is not None:
      if self._time_left() is not None:
        self._bar.bar_format = None  # tqdm's own, with the time left
      self._bar.update(count)
    elif self._visible and time.monotonic() - self._last_line >= _SECONDS_BETWEEN_LINES:
      self._last_line = time.monotonic()
      say(self.describe())

  def note(self, text: str, *, time_left: bool = True) -> None:
    """Writes a line that is to stay; without a bar it says the time left too, if that is wanted."""
    left = self._time_left() if time_left and self._visible and self._bar is None else None
    self._last_line = time.monotonic()
    say(text if left is None else f"{text}, {left} left")

  def describe(self) -> str:
    """One line: how many, how fast, how long still."""
    nouns = f"{self._unit}s"
    done = counted(self._count, nouns) if self._total is None else f"{self._count:,} of {counted(self._total, nouns)}"
    rate, left = self._rate(), self._time_left()
    return done + (f", {rate:.3g} a second" if rate else "") + (f", {left} left" if left else "")

  def _rate(self) -> float | None:
    """How many a second; None until there is something to measure."""
    if self._first is None or self._count == self._first[0]:
      return None
    count, start = self._first
    return (self._count - count) / max(time.monotonic() - start, 1e-9)

  def _time_left(self) -> str | None:
    """How long it will take still; None until the rate is that of some seconds."""
    rate = self._rate()
    if self._total is None or self._first is None or rate is None:
      return None
    if time.monotonic() - self._first[1] < _SECONDS_FOR_A_RATE:
      return None
    return tqdm.format_interval(max(self._total - self._count, 0) / rate)
