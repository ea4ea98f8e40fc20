"""What a model gives for a text: a translation or a probability, which must be finite."""

from typing import NamedTuple

from transformer_jax.runtime.errors import RunError


class Translation(NamedTuple):
  """One translation of a sentence.

  Attributes:
    text: the translation, without line breaks.
    score: `log_probability` divided by the length penalty; translations are ranked by it, except those of a line in
      parts.
    log_probability: log P(translation | sentence).
    tokens: the number of tokens, with the EOS.
  """

  text: str
  score: float
  log_probability: float
  tokens: int


class Probability(NamedTuple):
  """The probability that a model gives a given text, or a given translation of its source.

  Attributes:
    log_probability: log P(text), or log P(target | source), with the end.
    tokens: the tokens of the text or the target, with its end; exp(-log_probability / tokens) is the perplexity.
  """

  log_probability: float
  tokens: int


def require_finite(finite: bool) -> None:
  """Raises RunError unless a model's numbers are finite."""
  if not finite:
    raise RunError("the model gives NaN, not probabilities: its training went wrong; use an earlier checkpoint")


def different(translations: list[Translation]) -> list[Translation]:
  """The translations without those whose text came before."""
  first: dict[str, Translation] = {}
  for translation in translations:
    first.setdefault(translation.text, translation)
  return list(first.values())
