"""Many languages in one model: corpora of several directions, with a tag of the target language before each source.

    config.data.train = "news:en-de; talks:en+fr+cs*2"

reads news.en with news.de, and six directions of talks.en, talks.fr and talks.cs, each pair twice. A source becomes
`<2de> A dog .` if its target is German (Johnson et al. 2017).
"""

import functools
import itertools
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from transformer_jax.config import DataConfig
from transformer_jax.data import fingerprint
from transformer_jax.data.text import TextPairs, digest, repeated
from transformer_jax.runtime.errors import InputError
from transformer_jax.runtime.process import allow_open_files

_LANGUAGES = re.compile(r"(.*):(\w+-\w+|[\w-]+(?:\+[\w-]+)+)((?:\*[^*]*)?)")
_MOST_DIRECTIONS = 10_000  # as 100 languages have
_TAG = re.compile(r"<2[^<>\s]+> ")


def tag(language: str) -> str:
  """The tag of a target language, such as `<2de>`."""
  return f"<2{language}>"


def named_directions(which: str) -> str:
  """The languages that a text names first, such as `:en-de`; empty if it names none."""
  found = (_LANGUAGES.fullmatch(part.strip()) for part in which.split(";"))
  return next((f":{match[2]}" for match in found if match), "")


def directions_of(data: DataConfig) -> list[tuple[str, str]]:
  """The directions of the training text, each once, as pairs of a source and a target language; no file is looked at.

  Raises:
    InputError: a direction has one language twice.
  """
  default = data.source_language, data.target_language
  return [*dict.fromkeys(direction for _, direction in _directions(data.train, default))] if data.tags else [default]


def tags_of(data: DataConfig) -> list[str]:
  """The tags of the training text's target languages, each once; none without `data.tags`.

  Raises:
    InputError: as `directions_of`.
  """
  return [*dict.fromkeys(tag(target) for _, target in directions_of(data))] if data.tags else []


def divided(text: str) -> tuple[str, str]:
  """A source's tag with the space behind it, empty if it has none, and the rest of the source."""
  found = _TAG.match(text)
  return (found[0], text[found.end() :]) if found else ("", text)


def is_empty(text: str, tags: Sequence[str]) -> bool:
  """Whether a source has no text, or nothing but one of the model's tags, if it has any."""
  return not text.strip() or text.strip() in tags


class TaggedPairs:
  """The pairs of corpora of several directions: the first pair of each corpus, then the second of each, and so on.

  Temperature sampling (Arivazhagan et al. 2019): direction i, with n_i pairs, is read with probability p_i:

    p_i is proportional to n_i^(1/T)

  So that none is left out, each pair is read (n_largest / n_i)^(1 - 1/T) times as often as its weight says.

  Args:
    which: corpora separated by `;`, each as `TextPairs` reads it, with `:SOURCE-TARGET` for one direction or `:A+B+C`
      for every direction between these languages before its `*WEIGHT`; without either its direction is that of the
      next two arguments.
    source_language, target_language: the languages of corpora that name none.
    temperature: T, at least 1.

  Raises:
    InputError: as `TextPairs` does, or a direction has one language twice.
  """

  def __init__(self, which: str, source_language: str, target_language: str, temperature: float = 1.0):
    self.name, self._temperature = which, temperature
    named = _directions(which, (source_language, target_language))
    self._corpora = [(TextPairs(corpus, *direction), direction) for corpus, direction in named]

  def __iter__(self) -> Iterator[tuple[str, str]]:
    corpora = [
      _tagged(repeated(corpus, weight), tag(target))
      for (corpus, (_, target)), weight in zip(self._corpora, self.weights(), strict=True)
    ]
    allow_open_files(2 * len(corpora))  # both sides of each direction are open at the same time
    for pairs in itertools.zip_longest(*corpora):
      yield from (pair for pair in pairs if pair is not None)

  def weights(self) -> list[float]:
    """How often each pair of each corpus is read; it reads all files unless the temperature is 1."""
    if self._temperature == 1:
      return [1.0] * len(self._corpora)
    counts: Counter[tuple[str, str]] = Counter()
    for corpus, direction in self._corpora:
      counts[direction] += sum(1 for _ in corpus)
    largest = max(counts.values())
    return [(largest / max(1, counts[direction])) ** (1 - 1 / self._temperature) for _, direction in self._corpora]

  def require_no_pipe(self) -> None:
    """Raises InputError if a file is a pipe, as `TextPairs.require_no_pipe` does."""
    for corpus, _ in self._corpora:
      corpus.require_no_pipe()

  def stamps(self) -> list[tuple[int, float]]:
    """The size and the time of the last change of each file."""
    return [stamp for corpus, _ in self._corpora for stamp in corpus.stamps()]

  def fingerprint(self) -> str:
    """A digest of the files' bytes, the directions, the weights and the temperature."""
    once = functools.cache(digest)  # a file has the text of several directions
    return fingerprint.of_values(
      "tagged", [(corpus.fingerprint(once), *direction) for corpus, direction in self._corpora], self._temperature
    )


def _tagged(pairs: Iterator[tuple[str, str]], tag: str) -> Iterator[tuple[str, str]]:
  for source, target in pairs:
    yield (f"{tag} {source}" if source.strip() else source), target  # an empty one is left out later, and counted


def _directions(which: str, default: tuple[str, str]) -> list[tuple[str, tuple[str, str]]]:
  """Each corpus in each of its directions."""
  found: list[tuple[str, tuple[str, str]]] = []
  for part in which.split(";"):
    corpus, directions = _parse(part.strip(), which, default)
    found.extend((corpus, direction) for direction in directions)
    _require_few(len(found), which)
  return found


def _require_few(directions: int, which: str) -> None:
  """Raises InputError for so many directions that a list of them would fill the memory, as a stranger's config may."""
  if directions > _MOST_DIRECTIONS:
    raise InputError(f"{which[:40]}... has more than {_MOST_DIRECTIONS:,} directions: name fewer languages")


def _parse(part: str, which: str, default: tuple[str, str]) -> tuple[str, list[tuple[str, str]]]:
  """A corpus as `TextPairs` names it, and its directions."""
  found = _LANGUAGES.fullmatch(part)
  if not found:
    return part, [default]
  corpus, languages, weight = found.groups()
  names = languages.split("+")
  _require_few(len(names) * (len(names) - 1), which)
  source, _, target = languages.partition("-")
  is_one = len(names) == 1
  directions = [(source, target)] if is_one else list(itertools.permutations(names, 2))
  if any(source == target for source, target in directions):
    raise InputError(f"{part!r} in {which!r} has one language twice: write PREFIX:en-de or PREFIX:en+de+fr")
  if not is_one and "," in corpus:
    raise InputError(f"{part!r} in {which!r} has two files, which are one direction: write SOURCE,TARGET:en-de")
  return corpus + weight, directions
