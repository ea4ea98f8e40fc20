"""Minimum Bayes risk decoding: the translation that is most like all others that the model gives.

The most probable output of a model is often an odd one. With a utility u, such as chrF, this chooses

  argmax_Y sum_Z w(Z) u(Y, Z)

over a list of translations, where the translations Z of the same list stand for the references (Eikema & Aziz 2022;
Freitag et al. 2022). If they are drawn from the model, each counts once, and the sum estimates the expected utility. If
they are the best that a search finds, w(Z) is proportional to P(Z | X) (Kumar & Byrne 2004), of the token sequence
with the best score of those that spell Z.
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import Literal

import numpy as np

from transformer_jax.decoding.translation import Translation
from transformer_jax.evaluation.pairwise import sentence_scores


def ranked(
  translations: Sequence[Translation],
  utility: Literal["chrf", "bleu"],
  *,
  drawn: bool,
  tokenize: str = "13a",
  lowercase: bool = False,
) -> list[Translation]:
  """Ranks the translations of a sentence by their expected utility.

  Args:
    translations: one at least; if they are drawn, equal ones count as often as they come.
    utility: what the likeness of two translations is measured by, sentence by sentence.
    drawn: whether they are drawn from the model, or found by a search.
    tokenize, lowercase: how the utility reads a text, as in `evaluation/scores.py`.

  Returns:
    Those with different texts, best first, with the expected utility as `score`; of equal ones the first one comes
    first.
  """
  most = max(translation.log_probability for translation in translations)
  first: dict[str, Translation] = {}
  weights: defaultdict[str, float] = defaultdict(float)
  for each in translations:
    first.setdefault(each.text, each)
    weights[each.text] += 1.0 if drawn else math.exp(each.log_probability - most)
  weight = np.array([weights[text] for text in first])
  expected = sentence_scores(utility, list(first), tokenize=tokenize, lowercase=lowercase) @ weight / weight.sum()
  scored = [each._replace(score=float(score)) for each, score in zip(first.values(), expected, strict=True)]
  # Rounding alone must not choose between equal ones: it differs from machine to machine.
  return sorted(scored, key=lambda translation: -round(translation.score, 9))
