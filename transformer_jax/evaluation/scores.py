"""Scores of translations by sacreBLEU (Post 2018), with the signatures that make them comparable."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from transformer_jax.errors import InputError


@dataclass(frozen=True)
class Scores:
  """What `score` found.

  Attributes:
    bleu: 0 to 100 (Papineni et al. 2002).
    bleu_signature: how it was computed; two BLEU scores compare only if these are equal.
    chrf: chrF2, 0 to 100 (Popović 2015).
    chrf_signature: how it was computed.
    exact_match: share of the translations that equal their reference, 0 to 1.
    sentences: how many there are.
  """

  bleu: float
  bleu_signature: str
  chrf: float
  chrf_signature: str
  exact_match: float
  sentences: int

  def to_dict(self) -> dict[str, Any]:
    """As JSON values."""
    return dataclasses.asdict(self)

  def __str__(self) -> str:
    return (
      f"BLEU {self.bleu:.2f} ({self.bleu_signature})\n"
      f"chrF {self.chrf:.2f} ({self.chrf_signature})\n"
      f"exact match {self.exact_match:.1%} of {self.sentences:,} sentences"
    )


def score(
  translations: Sequence[str],
  references: Sequence[str],
  *,
  tokenize: str = "13a",
  lowercase: bool = False,
  warn_if_tokenized: bool = False,
) -> Scores:
  """Corpus BLEU and chrF of translations against one reference each.

  Args:
    translations: one string a sentence.
    references: as many.
    tokenize: how BLEU finds words, by sacreBLEU's name: `13a`, `none` for
      text that is tokenised already, `char`, `zh`, ...
    lowercase: whether letters of both cases are equal to BLEU and chrF; exact
      match tells them apart in any case.
    warn_if_tokenized: let sacreBLEU warn, on its logger, of translations that
      look tokenised already.

  Raises:
    InputError: no sentences, unequal counts, or a tokenisation that sacreBLEU
      does not have.
  """
  if len(translations) != len(references):
    raise InputError(
      f"there are {len(translations):,} translations but {len(references):,} references: "
      "give one reference for each translation"
    )
  if not references:
    raise InputError("there are no sentences to score: give at least one")
  from sacrebleu.metrics.chrf import CHRF

  bleu = _bleu(tokenize, lowercase, quiet=not warn_if_tokenized)
  chrf = CHRF(lowercase=lowercase)
  return Scores(
    bleu=bleu.corpus_score(translations, [references]).score,
    bleu_signature=str(bleu.get_signature()),
    chrf=chrf.corpus_score(translations, [references]).score,
    chrf_signature=str(chrf.get_signature()),
    exact_match=sum(a == b for a, b in zip(translations, references, strict=True)) / len(references),
    sentences=len(references),
  )


def check_tokenization(tokenize: str) -> None:
  """Whether `score` will be able to use it, before there is anything to score.

  Raises:
    InputError: it will not.
  """
  _bleu(tokenize, lowercase=False, quiet=True)


def _bleu(tokenize: str, lowercase: bool, *, quiet: bool) -> Any:
  from sacrebleu.metrics.bleu import BLEU

  if tokenize not in BLEU.TOKENIZERS:
    raise InputError(f"{tokenize!r} is not a tokenisation; sacreBLEU has {', '.join(sorted(BLEU.TOKENIZERS))}")
  try:
    return BLEU(tokenize=tokenize, lowercase=lowercase, force=quiet)
  except (ImportError, RuntimeError) as error:  # Some need a package of their own, which the message names.
    reason = " ".join(str(error).split())
    raise InputError(f"sacreBLEU's tokenisation {tokenize!r} cannot be used here: {reason}") from error
