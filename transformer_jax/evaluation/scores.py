"""Scores of translations by sacreBLEU (Post 2018), with the signatures that make them comparable."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from transformer_jax.runtime.errors import InputError
from transformer_jax.runtime.texts import require_several
from transformer_jax.runtime.values import JsonObject
from transformer_jax.runtime.wording import counted

if TYPE_CHECKING:
  from sacrebleu.metrics.bleu import BLEU

TITLES = {"bleu": "BLEU", "chrf": "chrF2", "ter": "TER"}  # of the metrics
MOST_WORDS_FOR_TER = 1000  # in a line


@dataclass(frozen=True)
class Scores:
  """The scores of a text's translations.

  Attributes:
    bleu: BLEU, 0 to 100 (Papineni et al. 2002).
    bleu_signature: tells how BLEU was computed; two scores compare only if their signatures are equal.
    chrf: chrF2, 0 to 100 (Popović 2015).
    chrf_signature: tells how chrF2 was computed.
    exact_match: the share of the translations that equal their reference, 0 to 1.
    sentences: the number of sentences.
  """

  bleu: float
  bleu_signature: str
  chrf: float
  chrf_signature: str
  exact_match: float
  sentences: int

  def to_dict(self) -> JsonObject:
    """The scores as JSON values."""
    return dataclasses.asdict(self)

  def __str__(self) -> str:
    return self.describe()

  def describe(self, *, exact_match: bool = True) -> str:
    """The scores in three lines, with the exact match if it is asked for and not 0.

    It means little where several translations are right.
    """
    exact = f"exact match {self.exact_match:.1%} of " if exact_match and self.exact_match else ""
    return (
      f"BLEU {self.bleu:.2f} ({self.bleu_signature})\n"
      f"chrF2 {self.chrf:.2f} ({self.chrf_signature})\n"
      f"{exact}{counted(self.sentences, 'sentences')}"
    )


def score(
  translations: Sequence[str],
  references: Sequence[str],
  *,
  tokenize: str = "13a",
  lowercase: bool = False,
  warn_if_tokenized: bool = False,
) -> Scores:
  """Computes corpus BLEU and chrF of translations, with one reference for each.

  Args:
    translations: one string for each sentence.
    references: one string for each sentence.
    tokenize: sacreBLEU's name of the tokenisation for BLEU: `13a`, `none` for
      text that is already tokenised, `char`, `zh`, ...
    lowercase: whether BLEU and chrF ignore case; exact match never does.
    warn_if_tokenized: whether sacreBLEU warns, on its logger, about translations
      that look already tokenised.

  Raises:
    InputError: there are no sentences, the counts differ, or sacreBLEU does not
      have the tokenisation.
  """
  check_counts(translations, references)
  metrics = metrics_by_name(tokenize, lowercase, warn_if_tokenized=warn_if_tokenized)
  bleu, chrf = metrics["bleu"], metrics["chrf"]
  return Scores(
    bleu=bleu.corpus_score(translations, [references]).score,
    bleu_signature=str(bleu.get_signature()),
    chrf=chrf.corpus_score(translations, [references]).score,
    chrf_signature=str(chrf.get_signature()),
    exact_match=exact_match(translations, references),
    sentences=len(references),
  )


def metrics_by_name(tokenize: str, lowercase: bool, *, warn_if_tokenized: bool = False) -> dict[str, Any]:
  """sacreBLEU's metrics `bleu`, `chrf` and `ter`; the arguments are those of `score`.

  TER (Snover et al. 2006) ignores the arguments and has the options of sacreBLEU's
  own program: words are separated by white space, and case is ignored.

  Raises:
    InputError: sacreBLEU does not have the tokenisation.
  """
  from sacrebleu.metrics.chrf import CHRF
  from sacrebleu.metrics.ter import TER

  return {
    "bleu": _bleu(tokenize, lowercase, quiet=not warn_if_tokenized),
    "chrf": CHRF(lowercase=lowercase),
    "ter": TER(),
  }


def too_long_for_ter(*texts: Sequence[str]) -> bool:
  """Whether a line has so many words that TER would take very long: its search grows faster than the line."""
  return any(len(line.split()) > MOST_WORDS_FOR_TER for text in texts for line in text)


def exact_match(translations: Sequence[str], references: Sequence[str]) -> float:
  """The share of translations that equal their reference, 0 to 1."""
  return sum(a == b for a, b in zip(translations, references, strict=True)) / len(references)


def exact_match_by_group(translations: Sequence[str], references: Sequence[str], groups: Sequence[str]) -> str:
  """A sentence with the exact match of each group's pairs; `groups` has the group of each pair."""
  right: dict[str, list[bool]] = {}
  for translation, reference, group in zip(translations, references, groups, strict=True):
    right.setdefault(group, []).append(translation == reference)
  return "exact match of " + ", ".join(f"{group} {sum(of) / len(of):.1%}" for group, of in right.items())


def check_tokenization(tokenize: str) -> None:
  """Checks a tokenisation before there is anything to score.

  Raises:
    InputError: `score` cannot use it.
  """
  _bleu(tokenize, lowercase=False, quiet=True)


def check_counts(translations: Sequence[str], references: Sequence[str]) -> None:
  """Checks that there is one reference for each translation.

  Raises:
    InputError: there are no sentences, or the counts differ.
  """
  require_several(translations, "translations")
  require_several(references, "references")
  if len(translations) != len(references):
    raise InputError(
      f"there are {len(translations):,} translations but {len(references):,} references: "
      "give one reference for each translation"
    )
  if not references:
    raise InputError("there are no sentences to score: give at least one")


def _bleu(tokenize: str, lowercase: bool, *, quiet: bool) -> "BLEU":
  from sacrebleu.metrics.bleu import BLEU

  if tokenize not in BLEU.TOKENIZERS:
    raise InputError(f"{tokenize!r} is not a tokenisation; sacreBLEU has {', '.join(sorted(BLEU.TOKENIZERS))}")
  try:
    return BLEU(tokenize=tokenize, lowercase=lowercase, force=quiet)
  except (ImportError, RuntimeError, OSError) as error:  # some need another package, or download a file
    reason = " ".join(str(error).split())
    raise InputError(f"sacreBLEU's tokenisation {tokenize!r} cannot be used here: {reason}") from error
