"""What the comparisons with other libraries share."""

from typing import Any

import numpy as np
import pytest


def required(name: str) -> Any:
  """The module of that name; where it is missing, the tests of the importing file are skipped."""
  return pytest.importorskip(name, reason=f"{name} is missing; to compare with it: pip install -e '.[parity]'")


def assert_close(found: Any, expected: Any, what: str = "") -> None:
  """|found - expected| <= 1e-5 (|expected| + max |expected|), element by element.

  The maximum is that of the whole array: an element which is a difference of
  large numbers is no more exact than they are.
  """
  expected = np.asarray(expected)
  np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5 * np.max(np.abs(expected)), err_msg=what)
