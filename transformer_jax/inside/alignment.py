"""Word alignments from cross-attention (Garg et al. 2019), and their error rate (Och and Ney 2003)."""

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from transformer_jax.data.tagged import divided
from transformer_jax.data.tokenizer import Tokenizer
from transformer_jax.decoding.attention import CROSS, Attention
from transformer_jax.runtime.errors import InputError
from transformer_jax.runtime.wording import counted

Link = tuple[int, int]  # the numbers of a source word and of a target word, from 0

# The number of the word that each token belongs to, None for none.
Words = Sequence[int | None]

_LINK = re.compile(r"(\d{1,9})([-p?])(\d{1,9})")
_RESAMPLES = 1000


class Gold(NamedTuple):
  """The alignment of a sentence pair by hand.

  Attributes:
    sure: the links that must be there.
    possible: the links that may be there, the sure ones among them.
  """

  sure: frozenset[Link]
  possible: frozenset[Link]


class ErrorRate(NamedTuple):
  """How far alignments are from those by hand.

  Attributes:
    error_rate: 1 - (|A and S| + |A and P|) / (|A| + |S|), from 0 to 1.
    low, high: the 95% interval of the error rate, by bootstrap over sentences.
    precision: |A and P| / |A|; 0 without a link in A.
    recall: |A and S| / |S|.
  """

  error_rate: float
  low: float
  high: float
  precision: float
  recall: float


def links(attention: Attention, layer: int, source: Words, target: Words, first: int = 0) -> list[Link]:
  """The links of a sentence pair in the order of the target.

  Each target token is linked to the source token with the largest mean weight over the heads of the layer, the end of
  the sentence left out. Two words are linked if tokens of them are.

  Args:
    attention: the model's attention over the pair.
    layer: the layer, from 0.
    source, target: the words of the tokens, without the end of the sentence, as of `Tokenizer.words`.
    first: the source's first word, to which links count as 0; what is before it, such as a tag, is left out.
  """
  weights = attention.weights[CROSS][layer].mean(axis=0)[:-1, :-1]  # [target, source] without EOS
  real = np.array([word is not None and word >= first for word in source], bool)
  found: set[Link] = set()
  for row, word in zip(np.where(real, weights, -1), target, strict=True):
    if word is not None and real.any():
      best = source[int(np.argmax(row))]
      assert best is not None
      found.add((best - first, word))
  return sorted(found, key=lambda link: (link[1], link[0]))


def language_of(tokenizer: Tokenizer, tags: bool, source: str) -> str:
  """The tag or code of the target language in front of a source; empty if there is none."""
  return divided(source)[0] if tags else tokenizer.head(source)


def source_words(tokenizer: Tokenizer, tags: bool, source: str) -> tuple[list[int | None], int]:
  """The words of a source's tokens, of which a tag or code is none, and the first one, for `links`."""
  words, language = tokenizer.words(source), language_of(tokenizer, tags, source)
  if not language:
    return words, 0
  apart = source[len(language.rstrip()) :][:1].isspace()
  return [None, *words[1:]], int(apart)


def pharaoh(found: Sequence[Link]) -> str:
  """The links in Pharaoh's format: `0-0 2-1`."""
  return " ".join(f"{source}-{target}" for source, target in found)


def parse_gold(line: str, place: str) -> Gold:
  """The links of a line such as `0-0 2-1 3p2`: `-` for a sure link, `p` or `?` for a possible one.

  Raises:
    InputError: the line has something else; `place` says which line it is.
  """
  sure, possible = set(), set()
  for text in line.split():
    match = _LINK.fullmatch(text)
    if match is None:
      raise InputError(f"{place} has {text!r}, but a link is 0-1 if it is sure, 0p1 or 0?1 if it is possible")
    link = int(match[1]), int(match[3])
    possible.add(link)
    if match[2] == "-":
      sure.add(link)
  return Gold(frozenset(sure), frozenset(possible))


def require_words(gold: Gold, source: str, target: str, place: str) -> None:
  """Raises InputError if a link by hand is to a word that its sentence does not have; `place` says which line it is."""
  ours, theirs = (len([word for word in text.split(" ") if word]) for text in (source, target))
  for one, other in sorted(gold.possible):
    if one >= ours or other >= theirs:
      raise InputError(
        f"{place} has a link of {one} and {other}, but the source has {counted(ours, 'words')} and the target "
        f"{counted(theirs, 'words')}: words are counted from 0"
      )


def error_rate(found: Sequence[Sequence[Link]], gold: Sequence[Gold]) -> ErrorRate:
  """The alignment error rate of a corpus.

  Raises:
    InputError: the alignments by hand have no sure link.
  """
  counts = np.array(
    [
      (len(own & by_hand.sure), len(own & by_hand.possible), len(own), len(by_hand.sure))
      for own, by_hand in zip(map(frozenset, found), gold, strict=True)
    ]
  )
  if not counts[:, 3].any():
    raise InputError("the alignments by hand have no sure link, so there is nothing to compare with")
  sample = np.random.default_rng(0).integers(len(counts), size=(_RESAMPLES, len(counts)))
  low, high = np.quantile([_rate(counts[index].sum(axis=0)) for index in sample], [0.025, 0.975])
  in_sure, in_possible, own, sure = counts.sum(axis=0)
  return ErrorRate(_rate(counts.sum(axis=0)), float(low), float(high), in_possible / max(own, 1), in_sure / sure)


def _rate(counts: np.ndarray) -> float:
  in_sure, in_possible, own, sure = counts
  every = own + sure
  return float(1 - (in_sure + in_possible) / every) if every else 0.0  # a draw in which no link is there, or missing
