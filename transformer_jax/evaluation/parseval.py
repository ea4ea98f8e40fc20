"""Labelled precision, recall and F1 of parse trees as EVALB computes them with COLLINS.prm (§6.3).

Sekine and Collins' program is what §6.3 and the works that it compares with report. Its rules:

- A constituent of a parse is right if the reference has one with its label and its words. Each counts once.
- Words with a tag of punctuation are left out first, and constituents without other words.
- `TOP` is no constituent. `PRT` and `ADVP` are one label.
- The counts are summed over all sentences. F1 is the harmonic mean of precision and recall.

EVALB leaves a sentence out if the words of the parse are not those of the reference. Here all words count: the caller
gives each parse the reference's words.
"""

import dataclasses
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from transformer_jax.runtime.errors import InputError
from transformer_jax.runtime.values import JsonObject

# DELETE_LABEL of COLLINS.prm; its `-NONE-` is no word and is left out where trees are read.
PUNCTUATION = frozenset({",", ":", "``", "''", "."})
_NO_CONSTITUENT = PUNCTUATION | {"TOP"}
_SAME = {"PRT": "ADVP"}


class Tree(Protocol):
  """What is scored; `data/trees.py` has such trees."""

  @property
  def tags(self) -> Sequence[str]:
    """The tag of each word."""
    ...

  @property
  def spans(self) -> Iterable[tuple[str, int, int]]:
    """The constituents: label, first word, word after the last."""
    ...


@dataclass(frozen=True)
class Parseval:
  """The scores of parses.

  Attributes:
    f1, precision, recall: those of labelled constituents, 0 to 100.
    complete_match: the share of the parses whose constituents are all right and all there, 0 to 100.
    tag_accuracy: the share of the words with the right tag, 0 to 100, without punctuation.
    sentences: the number of sentences.
  """

  f1: float
  precision: float
  recall: float
  complete_match: float
  tag_accuracy: float
  sentences: int

  def to_dict(self) -> JsonObject:
    """The scores as JSON values."""
    return dataclasses.asdict(self)

  def __str__(self) -> str:
    return (
      f"F1 {self.f1:.2f} (precision {self.precision:.2f}, recall {self.recall:.2f}, labelled, as EVALB)\n"
      f"complete match {self.complete_match:.2f}, tags {self.tag_accuracy:.2f}"
    )


def parseval(parses: Sequence[Tree], references: Sequence[Tree]) -> Parseval:
  """Scores parses, with one reference for each.

  Raises:
    InputError: there are no sentences, the counts differ, or a parse has another number of words than its reference.
  """
  if len(parses) != len(references) or not references:
    raise InputError(f"there are {len(parses):,} parses but {len(references):,} references: give one for each")
  matched = found = expected = complete = words = tags = 0
  for number, (parse, reference) in enumerate(zip(parses, references, strict=True), 1):
    if len(parse.tags) != len(reference.tags):
      raise InputError(f"parse {number} has {len(parse.tags)} words, but its reference has {len(reference.tags)}")
    kept = [tag not in PUNCTUATION for tag in reference.tags]
    ours, theirs = constituents(parse, kept), constituents(reference, kept)
    right = (ours & theirs).total()
    matched, found, expected = matched + right, found + ours.total(), expected + theirs.total()
    complete += ours == theirs
    words += sum(kept)
    tags += sum(a == b for a, b, counts in zip(parse.tags, reference.tags, kept, strict=True) if counts)
  return Parseval(
    f1=_percent(2 * matched, found + expected),
    precision=_percent(matched, found),
    recall=_percent(matched, expected),
    complete_match=_percent(complete, len(references)),
    tag_accuracy=_percent(tags, words),
    sentences=len(references),
  )


def constituents(tree: Tree, kept: Sequence[bool]) -> Counter[tuple[str, int, int]]:
  """The constituents that count, with places among the words that are kept."""
  places = [0]
  for counts in kept:
    places.append(places[-1] + counts)
  spans = ((_SAME.get(label, label), places[start], places[end]) for label, start, end in tree.spans)
  return Counter(span for span in spans if span[1] < span[2] and span[0] not in _NO_CONSTITUENT)


def _percent(part: int, of: int) -> float:
  return 100 * part / of if of else 0.0
