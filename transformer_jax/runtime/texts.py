"""Checks of texts that a caller gives: a text is a `str` that can be written as UTF-8."""

import re
from collections.abc import Iterable

from transformer_jax.runtime.errors import InputError

_SURROGATE = re.compile("[\ud800-\udfff]")  # what Python makes of bytes that are not UTF-8


def is_text(text: str) -> bool:
  """Whether a `str` can be written as UTF-8."""
  return text.isascii() or not _SURROGATE.search(text)


def require_text(text: object, name: str) -> None:
  """Raises InputError unless `text` is a `str` that can be written as UTF-8; the message calls it `name`."""
  if not isinstance(text, str):
    raise InputError(f"{name} is of type {type(text).__name__}, but must be a str")
  if not text.isascii() and (found := _SURROGATE.search(text)):
    raise InputError(
      f"{name} has half of a surrogate pair, U+{ord(found[0]):04X}, as character {found.start() + 1}, and is no text: "
      "decode its bytes again, with errors='replace' if they are damaged"
    )


def require_utf8(flag: str, text: str | None) -> None:
  """Raises InputError if the text of a flag was given in bytes that are not UTF-8."""
  if text is not None and not is_text(text):
    raise InputError(f"{flag} is not UTF-8: write it in UTF-8")


def require_several(texts: Iterable[str], name: str) -> Iterable[str]:
  """The texts; raises InputError for a single one in their place, whose letters would be taken for texts."""
  if isinstance(texts, str):
    raise InputError(f"{name} is one str, but must be several: write [{name}]")
  return texts
