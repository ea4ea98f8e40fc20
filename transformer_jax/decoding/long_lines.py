"""A line with more tokens than the model translates in one piece: refused, or translated in parts."""

import enum
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from transformer_jax.data.tokenizer import EOS, Tokenizer
from transformer_jax.decoding import splitting
from transformer_jax.decoding.beam_search import SearchOptions, penalty
from transformer_jax.runtime.errors import InputError


class Long(enum.Enum):
  """What becomes of a line that is too long."""

  SPLIT = "split"
  REFUSE = "refuse"


class Translation(NamedTuple):
  """One translation of a sentence.

  Attributes:
    text: without line breaks.
    score: `log_probability` over the length penalty; what translations are ranked by.
    log_probability: log P(translation | sentence).
    tokens: of the translation, with its EOS.
  """

  text: str
  score: float
  log_probability: float
  tokens: int


def parts(
  texts: Sequence[str],
  tokenizer: Tokenizer,
  longest: int,
  long: Long,
  first: int,
  warn: Callable[[str], object],
) -> tuple[list[list[list[int]]], InputError | None]:
  """For each line the tokens of its parts, with their EOS: none if it is empty, and mostly one.

  Args:
    texts: lines.
    tokenizer: of the model.
    longest: most tokens of a part.
    long: what becomes of a line with more.
    first: the number of the first line.
    warn: is told about lines that are translated in parts.

  Returns:
    The parts of all lines, or of those before the one that is refused, and why it is.
  """
  # Of the others it is known that they are too long: no piece spells more characters.
  short = [text if len(text) < longest * tokenizer.longest_piece else "" for text in texts]
  found: list[list[list[int]]] = []
  for number, (text, known, tokens) in enumerate(zip(texts, short, tokenizer.encode_batch(short), strict=True), first):
    if not text.strip():
      found.append([])
    elif known and len(tokens) < longest:
      found.append([[*tokens, EOS]])
    elif long is Long.REFUSE:
      return found, InputError(
        f"line {number} has more than config.decode.max_source_length = {longest} tokens: "
        "shorten it, or have it translated in parts (split, not refuse)"
      )
    else:
      split = splitting.split(text, longest - 1, lambda part: len(tokenizer.encode(part)))
      found.append([[*tokens, EOS] for tokens in tokenizer.encode_batch(split)])
      warn(
        f"line {number} has more than config.decode.max_source_length = {longest} tokens: "
        f"it is translated in {len(split)} parts"
      )
  return found, None


def joined(parts: list[list[Translation]], options: SearchOptions) -> list[Translation]:
  """One line's translations, best first, from those of its parts."""
  if not parts:
    return [Translation("", 0.0, 0.0, 0)]
  if len(parts) == 1:
    return parts[0]
  whole = []
  for translations in zip(*parts, strict=False):
    log_probability = math.fsum(translation.log_probability for translation in translations)
    tokens = sum(translation.tokens for translation in translations)
    score = log_probability / penalty(options.penalty, options.length_penalty, float(tokens))
    whole.append(
      Translation(" ".join(translation.text for translation in translations), score, log_probability, tokens)
    )
  return sorted(whole, key=lambda translation: -translation.score)


def different(translations: list[Translation]) -> list[Translation]:
  """The first of those with equal texts."""
  first: dict[str, Translation] = {}
  for translation in translations:
    first.setdefault(translation.text, translation)
  return list(first.values())
