"""Which cases of a test run by default, and which only with `-m long`."""

from collections.abc import Iterable

import pytest


def long(cases: Iterable) -> list:
  """The cases, marked `long`; a case of several arguments is a tuple."""
  return [pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.long) for case in cases]
