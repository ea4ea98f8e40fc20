"""Lists of the best translations of each line, in the format of Moses.

A line is `NUMBER ||| TRANSLATION ||| NAME= VALUE NAME= VALUE ... ||| SCORE`. The number is that of the sentence, from
0. Moses and Marian write such lists, and the programs that rerank them read them.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from transformer_jax.decoding.translation import Translation
from transformer_jax.runtime.errors import InputError

_BAR = " ||| "


class Candidate(NamedTuple):
  """A translation in such a list.

  Attributes:
    text: the translation.
    features: its features, by name.
    score: the score by which the list is ranked.
  """

  text: str
  features: dict[str, float]
  score: float


def lines_of(number: int, translations: Sequence[Translation]) -> Iterator[str]:
  """The lines of the translations of a sentence: the features are log P and the number of tokens, EOS included."""
  for each in translations:
    features = f"logp= {each.log_probability:.6f} length= {each.tokens}"
    yield f"{number}{_BAR}{each.text}{_BAR}{features}{_BAR}{each.score:.6f}\n"


def read(lines: Iterable[str], name: str) -> list[list[Candidate]]:
  """The candidates of each sentence, in the order of the file.

  Args:
    lines: the lines of the file.
    name: its name in messages.

  Raises:
    InputError: a line has another form, a sentence has none, or the features are not the same everywhere.
  """
  found: list[list[Candidate]] = []
  names: list[str] | None = None
  for place, line in enumerate(lines, 1):
    number, candidate = _parsed(line, f"{name}, line {place}")
    names = list(candidate.features) if names is None else names
    if list(candidate.features) != names:
      raise InputError(f"{name}, line {place} has the features {list(candidate.features)}, but line 1 has {names}")
    if number not in (len(found), len(found) - 1) or number < 0:
      raise InputError(
        f"{name}, line {place} is of sentence {number}, but must be of sentence {len(found)} or of the one before: "
        "sentences count from 0, and each needs a line"
      )
    if number == len(found):
      found.append([])
    found[number].append(candidate)
  return found


def _parsed(line: str, place: str) -> tuple[int, Candidate]:
  number, _, rest = line.partition(_BAR)
  # A translation may have bars; what is before and behind it has none.
  fields = rest.rsplit(_BAR, 2)
  try:
    if len(fields) != 3:
      raise ValueError("three fields are missing")
    text, features, score = fields
    candidate = Candidate(text, _features(features), float(score))
    if not all(map(math.isfinite, (*candidate.features.values(), candidate.score))):
      raise ValueError("a value is not finite")
    return int(number), candidate
  except ValueError as error:
    raise InputError(
      f"{place} is not NUMBER ||| TRANSLATION ||| NAME= VALUE ... ||| SCORE with different names and finite values"
    ) from error


def _features(text: str) -> dict[str, float]:
  """The values by name: `a= 1 2 b= 3` has `a`, `a2` and `b`."""
  values: dict[str, float] = {}
  name, count = "", 0
  for word in text.split():
    if word.endswith("="):
      name, count = word, 0
      continue
    if not name:
      raise ValueError("a value without a name")
    count += 1
    numbered = name.removesuffix("=") + (str(count) if count > 1 else "")
    if numbered in values:
      raise ValueError("a name twice")
    values[numbered] = float(word)
  return values
