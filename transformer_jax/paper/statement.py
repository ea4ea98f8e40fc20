"""A statement of the paper, where the code has it, and the check that holds the code to it."""

from collections.abc import Callable
from dataclasses import dataclass

import jax
import numpy as np

from transformer_jax.runtime.values import PyTree

Check = Callable[[], None]


@dataclass(frozen=True)
class Deviation:
  """Where the code departs from a statement, or decides what the paper leaves open.

  Attributes:
    here: what the code does.
    why: the reason.
  """

  here: str
  why: str


@dataclass(frozen=True)
class Statement:
  """A statement of the paper, and how the code keeps it.

  Attributes:
    section: the section of the paper, such as `3.2.1`.
    says: the statement, in our words.
    code: a file of this package and a name in it: `model/attention.py: MultiHeadAttention`.
    test: a test of the same code in more cases: `tests/FILE.py::NAME`.
    check: raises AssertionError with one sentence where the code does otherwise.
    deviation: how the code differs from the statement, if it does.
  """

  section: str
  says: str
  code: str
  test: str
  check: Check
  deviation: Deviation | None = None

  def failure(self) -> str | None:
    """Runs the check: None where it passes, else the reason in one line."""
    try:
      # The checks compare with float64; accelerators compute float32 matmuls more coarsely by default.
      with jax.default_matmul_precision("highest"):
        self.check()
    except Exception as error:  # a check that cannot even run has failed, and the others go on
      reason = " ".join(str(error).split())
      return reason if isinstance(error, AssertionError) else f"{type(error).__name__}: {reason}"
    return None


class Statements(list[Statement]):
  """The statements of one theme; `@STATEMENTS.add(...)` stands above the check of each."""

  def add(
    self, section: str, says: str, *, code: str, test: str, deviation: Deviation | None = None
  ) -> Callable[[Check], Check]:
    """The arguments are the attributes of `Statement`."""

    def with_check(check: Check) -> Check:
      self.append(Statement(section, says, code, test, check, deviation))
      return check

    return with_check


def require(condition: object, sentence: str) -> None:
  """Raises AssertionError with the sentence, also under `python -O`, unless the condition holds."""
  if not condition:
    raise AssertionError(sentence)


def require_equal(found: object, expected: object, what: str) -> None:
  """Raises AssertionError, with `what` and both values, unless they are equal."""
  require(found == expected, f"{what}: {found}, not {expected}")


def require_close(found: PyTree, expected: PyTree, what: str, tolerance: float = 1e-4) -> None:
  """Raises AssertionError, with `what`, unless two arrays agree in shape and, up to `tolerance`, in each element."""
  found, expected = np.asarray(found, np.float64), np.asarray(expected, np.float64)
  require_equal(found.shape, expected.shape, f"the shape of {what}")
  worst = np.max(np.abs(found - expected), initial=0.0)
  require(worst <= tolerance, f"{what}: off by {worst:.3g}, more than {tolerance:g}")
