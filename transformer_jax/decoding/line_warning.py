"""Warnings about the lines of a text that is translated."""

from collections.abc import Callable, Sequence

from transformer_jax.data.tagged import divided
from transformer_jax.data.tokenizer import Tokenizer

_MOST_TAGS, _LONGEST_TAG = 8, 40  # tags of a warning, and characters of each


class LineWarning(str):
  """A warning about a line, as a sentence.

  Attributes:
    line: the number of the line, from 1.
    what: the sentence without the number in front.
  """

  line: int
  what: str

  def __new__(cls, line: int, what: str) -> "LineWarning":
    warning = super().__new__(cls, f"line {line} {what}")
    warning.line, warning.what = line, what
    return warning

  def __reduce__(self) -> tuple[type, tuple[int, str]]:  # Python would make it again from the one sentence
    return type(self), (self.line, self.what)


class LanguageWarning(LineWarning):
  """A warning about a line that does not tell the language of its translation, though the model needs it."""


def check_language(
  text: str, tokenizer: Tokenizer, tags: Sequence[str], number: int, warn: Callable[[LineWarning], object]
) -> None:
  """Warns of a line that begins with none of the tags, or of the vocabulary's codes, if there are several."""
  if tags and divided(text)[0].strip() not in tags:
    some = ", ".join(tag[:_LONGEST_TAG] for tag in tags[:_MOST_TAGS]) + (", ..." if len(tags) > _MOST_TAGS else "")
    warn(LanguageWarning(number, f"begins with none of {some}: its translation may be in any language"))
  elif not tags and len(codes := tokenizer.codes) > 1 and not tokenizer.head(text):
    some = codes[0][:_LONGEST_TAG]
    what = f"begins with no code of a language, such as {some}: its translation may be in any language"
    warn(LanguageWarning(number, what))
