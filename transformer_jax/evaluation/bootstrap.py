"""Confidence intervals and comparisons of scores by bootstrap resampling (Koehn 2004), which sacreBLEU computes."""

import os
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from transformer_jax.evaluation import scores
from transformer_jax.runtime.errors import InputError

# The number of Koehn 2004, and sacreBLEU's default.
RESAMPLES = 1000


class Resampled(NamedTuple):
  """A score of one system, with its interval and its comparison with the first system.

  Attributes:
    score: the score on the whole test set.
    margin: half the width of the 95% interval of the draws.
    p_value: the p-value of the difference from the first system's score; None for the first system itself.
    signature: tells how the score was computed.
  """

  score: float
  margin: float
  p_value: float | None
  signature: str


def require_seed() -> None:
  """Checks the seed of the draws, which sacreBLEU takes from the environment.

  Raises:
    InputError: it is no whole number from 1 to 10^19 - 1.
  """
  seed = os.environ.get("SACREBLEU_SEED", "12345")  # sacreBLEU's default
  # With 0 or none sacreBLEU draws other sentences for each system but the first.
  if not re.fullmatch(r"0*[1-9]\d{0,18}", seed, re.ASCII):
    raise InputError(
      f"SACREBLEU_SEED in the environment is {seed[:30]!r}, but must be a whole number from 1 to 10^19 - 1"
    )


def resampled(
  systems: Sequence[Sequence[str]],
  references: Sequence[str],
  *,
  tokenize: str = "13a",
  lowercase: bool = False,
  resamples: int = RESAMPLES,
) -> dict[str, list[Resampled]]:
  """Scores of systems that translated the same sentences, on `resamples` draws of as many sentences with replacement.

  The draws are the same for all systems and in every call. The environment's `SACREBLEU_SEED` changes them, and the
  signature shows it. D is the difference of a score from the first system's on the whole test set, and d the difference
  on a draw. The p-value is the share of draws in which |d| - mean |d| exceeds |D|, with 1 added to both counts.

  Args:
    systems: the translations of each system.
    references: the references.
    tokenize, lowercase: as in `scores.score`.
    resamples: the number of draws.

  Returns:
    `bleu`, `chrf` and `ter`, each with one entry for each system; without `ter` if a line is very long.

  Raises:
    InputError: there are no sentences, or the counts differ, or `require_seed` refuses the seed.
  """
  from sacrebleu.significance import PairedTest

  require_seed()
  for translations in systems:
    scores.check_counts(translations, references)
  metrics = scores.metrics_by_name(tokenize, lowercase)
  if scores.too_long_for_ter(*systems, references):
    del metrics["ter"]
  named: Any = [(str(number), list(translations)) for number, translations in enumerate(systems)]
  found: Any = PairedTest(named, metrics, [list(references)], test_type="bs", n_samples=resamples)()
  signatures, results = found
  titles = zip(metrics, signatures, strict=True)  # sacreBLEU has its own titles, in the same order
  return {name: _of(results[title], str(signatures[title])) for name, title in titles}


def _of(results: Sequence[Any], signature: str) -> list[Resampled]:
  first, *_ = results

  def p_value(found: Any) -> float | None:
    # sacreBLEU counts only draws that differ by more than the texts do. That gives 1 / 1001 for two systems with the
    # same counts in each line, which also have the same mean and interval.
    same = (found.score, found.mean, found.ci) == (first.score, first.mean, first.ci)
    return None if found is first else 1.0 if same else float(found.p_value)

  return [Resampled(found.score, float(found.ci), p_value(found), signature) for found in results]
