"""The counts that BLEU is computed from: those of a corpus are the sums of its sentences' (Papineni et al. 2002)."""

import functools
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from transformer_jax.evaluation.scores import metrics_by_name

_ORDERS = 4


def statistics(
  hypotheses: Sequence[str], reference: str, *, tokenize: str = "13a", lowercase: bool = False
) -> np.ndarray:
  """The counts of several translations of one sentence.

  Returns:
    `[hypotheses, 10]` int64: the matching n-grams of orders 1 to 4, all n-grams of these orders, the words of the
    hypothesis and those of the reference.

  Raises:
    InputError: sacreBLEU does not have the tokenisation.
  """
  expected, *translated = words([reference, *hypotheses], tokenize, lowercase)
  known = [ngrams(expected, order) for order in range(1, _ORDERS + 1)]
  rows = []
  for hypothesis in translated:
    found = [ngrams(hypothesis, order) for order in range(1, _ORDERS + 1)]
    matches = [(one & other).total() for one, other in zip(found, known, strict=True)]
    rows.append([*matches, *(each.total() for each in found), len(hypothesis), len(expected)])
  return np.array(rows, np.int64).reshape(-1, 2 * _ORDERS + 2)


def bleu(statistics: np.ndarray) -> float:
  """Corpus BLEU, 0 to 100, of the sum of its sentences' counts `[10]`."""
  from sacrebleu.metrics.bleu import BLEU

  counts = [int(count) for count in statistics]
  return BLEU.compute_bleu(counts[:_ORDERS], counts[_ORDERS:-2], *counts[-2:], smooth_method="exp").score


def words(texts: Iterable[str], tokenize: str, lowercase: bool) -> list[list[str]]:
  """The words of each text, as sacreBLEU's BLEU reads it.

  Raises:
    InputError: sacreBLEU does not have the tokenisation.
  """
  tokenizer = _tokenizer(tokenize)
  return [tokenizer((text.lower() if lowercase else text).rstrip()).split() for text in texts]


@functools.cache  # some load a model, and sacreBLEU's own caches keep each that was made
def _tokenizer(tokenize: str) -> Callable[[str], str]:
  return metrics_by_name(tokenize, lowercase=False)["bleu"].tokenizer


def ngrams(words: Sequence[str], order: int) -> Counter[tuple[str, ...]]:
  """How often each n-gram of this order occurs; `words` may be characters, too."""
  return Counter(tuple(words[i : i + order]) for i in range(len(words) - order + 1))
