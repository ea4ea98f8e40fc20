"""The steps of a run's checkpoints: how one is named, and which there are."""

from typing import Literal, NamedTuple

LAST, BEST = "last", "best"
Step = int | Literal["last", "best"]


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
