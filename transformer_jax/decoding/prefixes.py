"""A forced beginning: the text with which the translation of a line begins, as tokens."""

import itertools
from collections.abc import Callable, Iterator, Sequence

from transformer_jax.data.tokenizer import Tokenizer
from transformer_jax.decoding.line_breaks import without_line_breaks
from transformer_jax.decoding.line_warning import LineWarning
from transformer_jax.runtime.errors import InputError
from transformer_jax.runtime.texts import require_text


def encode(
  given: Iterator[str],
  parts: Sequence[list[list[int]]],
  tokenizer: Tokenizer,
  extra: int,
  first: int,
  warn: Callable[[LineWarning], object],
) -> tuple[list[list[int]], InputError | None]:
  """The tokens of the next prefixes.

  Args:
    given: the prefix of each line, and of lines after these; a blank one has no tokens.
    parts: the tokens of the parts of each line, as `long_lines.parts` returns them.
    tokenizer: the tokenizer of targets.
    extra: an output may have this many more tokens than its input.
    first: the number of the first line.
    warn: is called with a warning for each line that is empty but has a prefix, or whose prefix ends with a space.

  Returns:
    The tokens of the prefix of each line. If one is missing or cannot be used, only those of the lines before it, and
    the error.
  """
  taken, missing = _take(given, len(parts), first)
  known = [prefix if prefix.strip() else "" for prefix in taken]
  rows = zip(known, parts, tokenizer.encode_batch(known), strict=False)  # the lines without a prefix come last
  found: list[list[int]] = []
  for number, (prefix, line, tokens) in enumerate(rows, first):
    if prefix and not line:
      warn(LineWarning(number, "is empty, and so is its translation: its prefix is not used"))
    elif prefix and (reason := _refused(prefix, line, tokens, tokenizer, extra)):
      return found, InputError(f"line {number} {reason}")
    elif prefix and prefix[-1].isspace():
      warn(LineWarning(number, "has a prefix that ends with a space, which belongs to the next word: leave it out"))
    found.append(tokens)
  return found, missing


def _take(prefixes: Iterator[str], count: int, first: int) -> tuple[list[str], InputError | None]:
  """The next `count` prefixes, the first of them for line `first`; fewer with the error that ended them."""
  taken: list[str] = []
  try:
    for prefix in itertools.islice(prefixes, count):
      require_text(prefix, f"the prefix of line {first + len(taken)}")
      taken.append(prefix)
  except InputError as error:
    return taken, error
  if len(taken) == count:
    return taken, None
  number = first + len(taken)
  return taken, InputError(f"line {number} has no prefix: give one for each line; a blank one forces nothing")


def _refused(prefix: str, parts: list[list[int]], tokens: list[int], tokenizer: Tokenizer, extra: int) -> str | None:
  """Why a prefix cannot be used; None if it can."""
  if len(parts) > 1:
    return "has a prefix, but is so long that it would be translated in parts: split the line or leave its prefix empty"
  written = without_line_breaks(tokenizer.decode(tokens))
  if written != prefix:
    return f"has the prefix {prefix!r}, but a translation can only have {written!r} there: write it like this"
  most = len(parts[0]) + extra
  if len(tokens) >= most:
    return (
      f"has a prefix of {len(tokens)} tokens, but its translation has at most {most} with its end "
      "(config.decode.extra_length more than the line): shorten the prefix"
    )
  return None
