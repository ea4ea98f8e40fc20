"""Early stopping: a run ends if validation has not improved for some time."""

import math
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass
class EarlyStopping:
  """The best validation so far, and how many in a row have not been better since.

  Only the validations every `config.evaluate.every` steps count. So a run that was stopped and resumed has the same
  numbers as an uninterrupted one.

  Attributes:
    patience: the validations in a row without a new best that end the run; 0 never ends it.
    best: the lowest number so far, a loss or minus a score.
    best_step: the step at which it was measured.
    waited: the validations since then.
  """

  patience: int
  best: float = math.inf
  best_step: int = 0
  waited: int = 0

  def add(self, step: int, number: float) -> bool:
    """Adds a validation and returns whether it is the best so far; NaN never is."""
    if number < self.best:
      self.best, self.best_step, self.waited = number, step, 0
      return True
    self.waited += 1
    return False

  @property
  def is_over(self) -> bool:
    """Whether the patience is exhausted."""
    return 0 < self.patience <= self.waited

  def numbers(self) -> dict[str, float]:
    """The values that a checkpoint holds."""
    return {"best": self.best, "best_step": self.best_step, "waited": self.waited}

  def restore(self, numbers: Mapping[str, float]) -> None:
    """The inverse of `numbers`."""
    self.best, self.best_step, self.waited = numbers["best"], int(numbers["best_step"]), int(numbers["waited"])
