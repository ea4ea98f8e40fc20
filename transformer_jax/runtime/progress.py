"""Progress on stderr: a bar on a terminal, a plain line now and then elsewhere."""

import logging
import sys
import time

from tqdm import tqdm

_SECONDS_BETWEEN_LINES = 10.0
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
    self._start = self._last_line = time.monotonic()
    self._bar: tqdm | None = None

  def __enter__(self) -> "Progress":
    self._start = self._last_line = time.monotonic()
    if self._visible and not _muted and sys.stderr.isatty():
      self._bar = tqdm(total=self._total, initial=self._initial, unit=f" {self._unit}s", dynamic_ncols=True)
    return self

  def __exit__(self, *_: object) -> None:
    if self._bar is not None:
      self._bar.close()

  def update(self, count: int) -> None:
    """`count` more are done."""
    self._count += count
    if self._bar is not None:
      self._bar.update(count)
    elif self._visible and time.monotonic() - self._last_line >= _SECONDS_BETWEEN_LINES:
      self._last_line = time.monotonic()
      say(self.describe())

  def note(self, text: str) -> None:
    """Writes a line that is to stay; without a bar it says the time left too."""
    left = None if self._bar is not None or not self._visible else self._time_left()
    self._last_line = time.monotonic()
    say(text if left is None else f"{text}, {left} left")

  def describe(self) -> str:
    """One line: how many, how fast, how long still."""
    count = f"{self._count:,}" if self._total is None else f"{self._count:,} of {self._total:,}"
    line = f"{count} {self._unit}s, {self._rate():.3g} a second"
    left = self._time_left()
    return line if left is None else f"{line}, {left} left"

  def _rate(self) -> float:
    return (self._count - self._initial) / max(time.monotonic() - self._start, 1e-9)

  def _time_left(self) -> str | None:
    rate = self._rate()
    if self._total is None or rate == 0:
      return None
    return tqdm.format_interval(max(self._total - self._count, 0) / rate)
