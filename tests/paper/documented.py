"""The claims of a page in `docs/`, read by the tests of its rows."""

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np

DOCS = Path(__file__).parents[2] / "docs"
# Not a section, not a part of a name, such as W_1 and 4d, and not an exponent.
_NUMBER = re.compile(r"(?<![\w.^§])(?:\d+(?:,\d{3})*(?:\.\d+)?|\.\d+)(?:e-?\d+)?(?!\w)")


def assert_documented(page: str, test: Callable[..., None], verdict: str, numbers: str, *formulas: str) -> None:
  """The row of a test has this verdict, and these numbers in its claim and correction, in this order.

  It also has these formulas, whose exponents and factors as in 4d are no numbers of their own.
  """
  rows = [line for line in (DOCS / page).read_text().splitlines() if f"::{test.__name__}`" in line]
  assert len(rows) == 1
  claim, found, correction, _ = (cell.strip() for cell in rows[0].split("|")[1:-1])
  documented = _NUMBER.findall(f"{claim} {correction}")
  assert (found, documented) == (verdict, numbers.split()), f"the page has {found}, {' '.join(documented)}"
  for formula in formulas:
    assert formula in f"{claim} {correction}", f"the page lacks {formula}"


def decimals(values: np.ndarray | list[float], digits: int) -> str:
  """The values as the pages have them, such as `.250 1.000`."""
  return " ".join(f"{value:.{digits}f}".removeprefix("0") for value in np.ravel(values))


def scientific(value: float, digits: int) -> str:
  """A number as the pages have it, such as `1.1e-7`."""
  return re.sub(r"e([+-])0", r"e\1", f"{value:.{digits}e}")
