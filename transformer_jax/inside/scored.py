"""Translations of a text and their scores: with intervals, by source length, and the best and the worst sentences."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from transformer_jax.data.tagged import divided
from transformer_jax.decoding.attention import Attention
from transformer_jax.evaluation.bootstrap import Resampled, resampled
from transformer_jax.evaluation.scores import metrics_by_name, score
from transformer_jax.inside.cross_attention import Matrix, matrix_of
from transformer_jax.runtime.errors import InputError
from transformer_jax.runtime.values import JsonObject

_GROUPS = 6
_SENTENCES = 5  # best and worst ones


class Text(NamedTuple):
  """Sentences to translate, with their references.

  Attributes:
    name: what the page calls the text.
    pairs: sources and references.
  """

  name: str
  pairs: list[tuple[str, str]]

  @property
  def sources(self) -> list[str]:
    return [source for source, _ in self.pairs]

  @property
  def references(self) -> list[str]:
    return [reference for _, reference in self.pairs]


@dataclass(frozen=True)
class Group:
  """The sentences whose source has a length in a range, and their BLEU.

  Attributes:
    least, most: the lengths of the sources, both included.
    sentences: the number of sentences.
    bleu: corpus BLEU of these sentences.
  """

  least: int
  most: int
  sentences: int
  bleu: float


@dataclass(frozen=True)
class Sentence:
  """A sentence, its translation, and the scores of this sentence alone.

  Attributes:
    number: the number of the sentence in the text, from 1.
    attention: where the model looked; None if the model has no attention, or the sentence is too long for one pass.
  """

  number: int
  source: str
  translation: str
  reference: str
  chrf: float
  bleu: float
  attention: Matrix | None = None


@dataclass(frozen=True)
class Scored:
  """The scores of one run's translations.

  Attributes:
    text: the name of the text.
    step: the step of the checkpoint that translated it.
    count: the number of sentences.
    scores: `bleu`, `chrf` and `ter` with their intervals.
    unit: the unit of the source lengths.
    groups: BLEU by source length, short sources first.
    group_signature: the signature of these BLEU scores.
    best, worst: the sentences of the highest chrF, and those of the lowest, the extreme one first.
    sentence_signatures: the signatures of the scores of a sentence.
  """

  text: str
  step: int | None
  count: int
  scores: dict[str, Resampled]
  unit: str
  groups: list[Group]
  group_signature: str
  best: list[Sentence]
  worst: list[Sentence]
  sentence_signatures: dict[str, str]

  def data(self) -> JsonObject:
    """The numbers as JSON values."""
    return {
      "text": self.text,
      "step": self.step,
      "sentences": self.count,
      "scores": {name: found._asdict() for name, found in self.scores.items()},
      "unit": self.unit,
      "groups": [asdict(group) for group in self.groups],
    }


class Translations(NamedTuple):
  """What one run made of a text.

  Attributes:
    text: the sources and references.
    lines: the translations.
    step: the step of the checkpoint that made them.
    tokenize, lowercase: sacreBLEU's options, as the run has them.
    attend: (source, translation) -> the attention of the model; raises InputError if there is none.
  """

  text: Text
  lines: list[str]
  step: int | None
  tokenize: str
  lowercase: bool
  attend: Callable[[str, str], Attention]

  @property
  def options(self) -> dict[str, Any]:
    return {"tokenize": self.tokenize, "lowercase": self.lowercase}


def scored(translations: Sequence[Translations]) -> list[Scored]:
  """The scores of the translations of each run; those of one text are compared with the first run's of this text.

  Raises:
    InputError: a text is empty.
  """
  found: dict[int, dict[str, Resampled]] = {}
  same = {}
  for number, each in enumerate(translations):
    same.setdefault((tuple(each.text.pairs), each.tokenize, each.lowercase), []).append(number)
  for numbers in same.values():
    first = translations[numbers[0]]
    systems = [translations[number].lines for number in numbers]
    scores = resampled(systems, first.text.references, **first.options)
    for place, number in enumerate(numbers):
      found[number] = {name: of[place] for name, of in scores.items()}
  return [_scored(each, found[number]) for number, each in enumerate(translations)]


def _scored(translations: Translations, scores: dict[str, Resampled]) -> Scored:
  text, lines, options = translations.text, translations.lines, translations.options
  unit, lengths = lengths_of(text.sources)
  groups, signature = by_length(lengths, lines, text.references, **options)
  best, worst, signatures = extremes(text, lines, **options)
  best, worst = ([_attended(one, translations) for one in side] for side in (best, worst))
  return Scored(text.name, translations.step, len(lines), scores, unit, groups, signature, best, worst, signatures)


def _attended(sentence: Sentence, translations: Translations) -> Sentence:
  """The sentence with the attention of its translation, if there is any."""
  try:
    found = matrix_of(translations.attend(sentence.source, sentence.translation))
  except InputError:
    return sentence
  return replace(sentence, attention=found)


def lengths_of(sources: Sequence[str]) -> tuple[str, list[int]]:
  """The unit of the sources' lengths, and the lengths: in words, or in characters if most sources are one word."""
  bare = [divided(source)[1] for source in sources]  # without the tag of a language
  words = [len(source.split()) for source in bare]
  if np.median(words) > 1:
    return "words", words
  return "characters", [len(source) for source in bare]


def by_length(
  lengths: Sequence[int], translations: Sequence[str], references: Sequence[str], *, tokenize: str, lowercase: bool
) -> tuple[list[Group], str]:
  """Corpus BLEU of groups of about as many sentences each, and its signature; equal lengths are in one group."""
  quantiles = np.quantile(lengths, np.arange(1, _GROUPS + 1) / _GROUPS, method="inverted_cdf")
  groups, signature = [], ""
  for above, most in itertools.pairwise([-1, *np.unique(quantiles).tolist()]):
    chosen = [n for n, length in enumerate(lengths) if above < length <= most]
    here, there = ([side[n] for n in chosen] for side in (translations, references))
    found = score(here, there, tokenize=tokenize, lowercase=lowercase)
    signature = found.bleu_signature
    groups.append(Group(min(lengths[n] for n in chosen), int(most), len(chosen), found.bleu))
  return groups, signature


def extremes(
  text: Text, translations: Sequence[str], *, tokenize: str, lowercase: bool
) -> tuple[list[Sentence], list[Sentence], dict[str, str]]:
  """The sentences of the highest and of the lowest chrF, no sentence twice, and the signatures of their scores.

  Sentence BLEU would give most short sentences 0 or 100, so it only stands beside.
  """
  from sacrebleu.metrics.bleu import BLEU

  chrf = metrics_by_name(tokenize, lowercase)["chrf"]
  bleu = BLEU(tokenize=tokenize, lowercase=lowercase, effective_order=True)
  sentences = []
  for number, ((source, reference), translation) in enumerate(zip(text.pairs, translations, strict=True), 1):
    values = [metric.sentence_score(translation, [reference]).score for metric in (chrf, bleu)]
    sentences.append(Sentence(number, source, translation, reference, chrf=values[0], bleu=values[1]))
  ordered = sorted(sentences, key=lambda sentence: -sentence.chrf)
  signatures = {"chrF2": str(chrf.get_signature()), "BLEU": str(bleu.get_signature())}
  shown = min(_SENTENCES, len(ordered) // 2)
  return ordered[:shown], ordered[: -shown - 1 : -1] if shown else ordered, signatures
