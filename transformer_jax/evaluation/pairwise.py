"""sacreBLEU's score of each of several texts against each other one, with the n-grams of every text counted once."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from transformer_jax.evaluation.bleu_statistics import ngrams, words

_CHARACTERS, _BETA = 6, 2  # of chrF2
_WORDS = 4  # of BLEU


def sentence_scores(name: str, texts: Sequence[str], *, tokenize: str, lowercase: bool) -> np.ndarray:
  """The scores of sacreBLEU's `sentence_score`, 0 to 100, of all pairs of texts.

  Args:
    name: `chrf` for chrF2, `bleu` for BLEU with exponential smoothing and the effective order.
    texts: the texts.
    tokenize: the tokenisation for BLEU.
    lowercase: whether case is ignored.

  Returns:
    `[texts, texts]` float64: row i, column j has the score of text i if text j is the reference.

  Raises:
    InputError: sacreBLEU does not have the tokenisation.
  """
  if name == "chrf":
    return _chrf(["".join((text.lower() if lowercase else text).split()) for text in texts])
  return _bleu(words(texts, tokenize, lowercase))


def _chrf(texts: Sequence[str]) -> np.ndarray:
  """chrF2 (Popović 2015) of texts without spaces: the F score of mean precision and mean recall over the orders."""
  precision = recall = orders = np.zeros((len(texts), len(texts)))
  for order in range(1, _CHARACTERS + 1):
    matches, totals = _matches(texts, order)
    hypothesis, reference = totals[:, None], totals[None]
    both = (hypothesis > 0) & (reference > 0)
    precision = precision + np.where(both, matches / np.maximum(hypothesis, 1), 0)
    recall = recall + np.where(both, matches / np.maximum(reference, 1), 0)
    orders = orders + both
  precision, recall = precision / np.maximum(orders, 1), recall / np.maximum(orders, 1)
  below = _BETA**2 * precision + recall
  return 100 * (1 + _BETA**2) * precision * recall / np.where(below > 0, below, 1)


def _bleu(texts: Sequence[Sequence[str]]) -> np.ndarray:
  """BLEU of texts as words."""
  from sacrebleu.metrics.bleu import BLEU

  found = [_matches(texts, order) for order in range(1, _WORDS + 1)]
  scores = np.zeros((len(texts), len(texts)))
  for i, hypothesis in enumerate(texts):
    for j, reference in enumerate(texts):
      correct = [int(matches[i, j]) for matches, _ in found]
      total = [int(totals[i]) for _, totals in found]
      scores[i, j] = BLEU.compute_bleu(
        correct, total, len(hypothesis), len(reference), smooth_method="exp", effective_order=True
      ).score
  return scores


def _matches(texts: Sequence[Sequence[str]], order: int) -> tuple[np.ndarray, np.ndarray]:
  """How many n-grams two texts have in common, each as often as in both `[texts, texts]`; and how many each has."""
  counters = [ngrams(text, order) for text in texts]
  held = Counter(ngram for counter in counters for ngram in counter)
  # Most n-grams are of one text alone, and match nothing but itself.
  number = {ngram: i for i, ngram in enumerate(ngram for ngram, holders in held.items() if holders > 1)}
  shared = [{number[ngram]: count for ngram, count in counter.items() if ngram in number} for counter in counters]
  counts = np.zeros((len(number), len(texts)), np.int32)
  for text, own in enumerate(shared):
    counts[list(own), text] = list(own.values())
  totals = np.array([counter.total() for counter in counters])
  matches = np.array(
    [np.minimum(np.array(list(own.values()), np.int32)[:, None], counts[list(own)]).sum(axis=0) for own in shared]
  )
  np.fill_diagonal(matches, totals)
  return matches, totals
