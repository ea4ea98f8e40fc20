"""The steps of a run's checkpoints: how one is named, and which there are."""

import numbers
from typing import Literal, NamedTuple

from transformer_jax.runtime.errors import require_option

LAST, BEST = "last", "best"
Step = int | Literal["last", "best"]


def require_step(step: object) -> None:
  """Raises InputError unless it is the number of a step, `last` or `best`."""
  number = isinstance(step, numbers.Integral) and not isinstance(step, bool) and int(step) >= 0  # NumPy's, too
  require_option("step", repr(step), number or step in (LAST, BEST), f"a number, {LAST} or {BEST}")


class Finished(NamedTuple):
  """The finished checkpoints of a run.

  Attributes:
    steps: oldest first.
    last: the newest of them, or None where there is none.
    best: the one of the lowest validation loss or the highest score, or None where none was measured.
  """

  steps: tuple[int, ...]
  last: int | None
  best: int | None
