"""Sizes of memory as text, read and written."""

import re

from transformer_jax.runtime.errors import InputError


def in_bytes(text: str) -> int:
  """The bytes of `16GB`, `16GiB`, `512MB` or a plain number.

  Raises:
    InputError: the text is none of these, or less than a megabyte, as a number without its unit is.
  """
  match = re.fullmatch(r"([\d.]+(?:e\d+)?)\s*(?:([KMGT])(i?)B?)?", text.strip())
  try:
    number = float(match[1]) if match else 0.0
  except ValueError:
    number = 0.0
  size = number * (1024 if match[3] else 1000) ** (" KMGT".index(match[2] or " ")) if match else 0.0
  if not 10**6 <= size < 2**63:
    raise InputError(f"{text!r} is not a size of memory: write it as 16GB or 16GiB")
  return int(size)


def gigabytes(size: float) -> str:
  """So many bytes in gigabytes, such as `1.25 GB`."""
  return f"{size / 1e9:,.2f} GB"
