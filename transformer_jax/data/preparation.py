"""The work of `transformer-jax prepare` on one part of a text: clean, tokenise, pack, and write a file of rows.

The file of a part is a function of the part and the settings alone. So any engine can spread the parts over processes
and machines, and may do a part twice (`data/beam_pipeline.py`).
"""

import dataclasses
import functools
import itertools
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from etils import epath

from transformer_jax.data import manifest, packing, tokenizers
from transformer_jax.data.clean_files import KEYS, REPEATED, CleaningReport, empty_report, passing
from transformer_jax.data.cleaning import Rules, rules_by_reason
from transformer_jax.data.duplicates import DIGEST, digest, later_ones
from transformer_jax.data.manifest import Shard
from transformer_jax.data.packing_report import PackingReport
from transformer_jax.data.pair_counts import PairCounts
from transformer_jax.data.shards import write_shard
from transformer_jax.data.text import readable
from transformer_jax.data.text_parts import TextPart, read_part
from transformer_jax.data.tokenizer import Tokenizer
from transformer_jax.runtime import untrusted
from transformer_jax.runtime.errors import InputError, RunError
from transformer_jax.runtime.files import is_left_behind, remove_left_behind, write_atomically
from transformer_jax.runtime.values import JsonObject

# The groups in which the digests of duplicates are compared: of a billion pairs each has 32 MB.
_GROUPS = 1024
_RECORD = np.dtype([*DIGEST, ("corpus", "<u4"), ("part", "<u4"), ("pair", "<u8")])


@dataclasses.dataclass(frozen=True)
class Settings:
  """All that the rows depend on besides the text.

  Attributes:
    folder: the folder of the result, which has the vocabulary already.
    values: the settings of the manifest, see `manifest.settings_of`.
    rules: the rules of cleaning.
    duplicates: which of `pairs`, `sources` and `targets` may occur only once; None is none.
  """

  folder: str
  values: JsonObject
  rules: Rules
  duplicates: str | None


class PartResult(NamedTuple):
  """The result of one part.

  Attributes:
    place: the numbers of the corpus and of the part.
    shard: the file of its rows; None if no pair is left.
    read: the number of its pairs.
    removed: the number of pairs that each rule of cleaning left out.
    counts: the counts of its pairs.
  """

  place: tuple[int, int]
  shard: Shard | None
  read: int
  removed: dict[str, int]
  counts: PairCounts


class PassingPairs:
  """The pairs of a corpus that pass all rules, to learn a vocabulary from.

  Raises:
    InputError: there is no such script or language as a rule names, or its library is not installed; while reading,
      the rules leave out every pair.
  """

  def __init__(self, corpus: Iterable[tuple[str, str]], rules: Rules):
    self._corpus, self._rules = corpus, rules_by_reason(rules)

  def __iter__(self) -> Iterator[tuple[str, str]]:
    report = CleaningReport()
    for _, pair in passing(self._corpus, self._rules, report):
      yield pair
    if report.left_out and not report.kept:
      reasons = "; ".join(f"{count:,} left out: {reason}" for reason, count in report.left_out.items())
      raise InputError(
        f"no sentence pair is left to learn a vocabulary from: {reasons}; check that both files have text, or relax "
        "the rules"
      )


def require_free(folder: epath.Path) -> None:
  """Raises InputError if a folder is prepared already, has something else in it, or cannot be read."""
  with readable(folder):
    names = [path.name for path in folder.iterdir()] if folder.exists() else []  # a bucket has no empty folders
  for name in names:
    if name == manifest.MANIFEST:
      raise InputError(f"{folder} is prepared already: train with it, delete it, or choose another --output")
    if not (name in tokenizers.FILES or manifest.SHARD.fullmatch(name) or is_left_behind(name)):
      raise InputError(f"{folder / name} is none of the files of a prepared text: choose another --output")


def begin(folder: epath.Path, made: Tokenizer) -> None:
  """Makes the folder, with the vocabulary alone; what a killed process left there is deleted.

  Raises:
    InputError: the folder is not free (`require_free`), or cannot be written.
  """
  require_free(folder)
  try:
    folder.mkdir(parents=True, exist_ok=True)
    left = []
    if folder.exists():
      remove_left_behind(folder)
      left = [*folder.iterdir()]
    if not any(manifest.SHARD.fullmatch(path.name) for path in left):
      for path in left:  # without rows only equal content tells that a killed process left them
        if path.read_bytes() != made.files().get(path.name):
          raise InputError(
            f"{path} is another vocabulary than that of this text: delete it, or choose another --output"
          )
    for path in left:
      path.unlink()
  except OSError as error:
    raise InputError(f"{folder} cannot be written: {error.strerror or error}; choose another --output") from error
  for name, content in made.files().items():
    write_atomically(folder / name, content)


def digests_of(settings: Settings, part: TextPart) -> Iterator[tuple[int, bytes]]:
  """The digests of the pairs of a part that pass the rules, in groups: the number of a group, and its records."""
  key = KEYS[settings.duplicates or "pairs"]
  groups: dict[int, bytearray] = {}
  place = np.array([(part.corpus, part.number)], "<u4").tobytes()
  for number, pair in passing(read_part(part), rules_by_reason(settings.rules), CleaningReport()):
    found = digest(key(*pair))
    record = found + place + number.to_bytes(8, "little")
    groups.setdefault(int.from_bytes(found[:2], "little") % _GROUPS, bytearray()).extend(record)
  for group, records in groups.items():
    yield group, bytes(records)


def repeated_of(group: int, records: Iterable[bytes]) -> Iterator[tuple[tuple[int, int], list[int]]]:
  """The pairs of a group that are equal to earlier ones: the key of a part, and their numbers in it."""
  later = later_ones(np.frombuffer(b"".join(records), _RECORD))
  numbers = sorted(later[["corpus", "part", "pair"]].tolist())
  for key, of_part in itertools.groupby(numbers, lambda number: number[:2]):
    yield key, [pair for _, _, pair in of_part]


def make_shard(settings: Settings, part: TextPart, repeated: Iterable[int] = ()) -> PartResult:
  """Writes the rows of a part.

  Args:
    settings: the settings.
    part: the part.
    repeated: the numbers of its pairs that are left out because they occurred before.

  Raises:
    InputError: the text cannot be read.
    RunError: the file cannot be written.
  """
  rules = rules_by_reason(settings.rules)
  cleaning, counts = empty_report(rules, settings.duplicates), PairCounts()
  reason = REPEATED.get(settings.duplicates or "", "")
  pairs = _different(passing(read_part(part), rules, cleaning), frozenset(repeated), reason, cleaning)
  found = _tokenizer(settings.folder, settings.values["tokenizer"])
  encoded = packing.encode_pairs(pairs, found, settings.values["max_length"], counts)
  rows = packing.pack(encoded, settings.values["row_length"], found.row_type)
  shard = write_shard(epath.Path(settings.folder), f"{part.corpus:05}-{part.number:05}.array_record", rows)
  return PartResult((part.corpus, part.number), shard, cleaning.read, dict(cleaning.left_out), counts)


def _different(
  pairs: Iterable[tuple[int, tuple[str, str]]], repeated: frozenset[int], reason: str, report: CleaningReport
) -> Iterator[tuple[str, str]]:
  """The pairs without repeated ones, which are counted for this reason."""
  for number, pair in pairs:
    if number in repeated:
      report.left_out[reason] += 1
    else:
      yield pair


@functools.lru_cache(maxsize=1)
def _tokenizer(folder: str, expected: str) -> Tokenizer:
  """The vocabulary of the folder; RunError if another process has put another one there."""
  found = tokenizers.load(epath.Path(folder), lambda name, most: untrusted.read_bytes(epath.Path(folder) / name, most))
  if found.fingerprint() != expected:
    raise RunError(f"another process prepares another text in {folder}: choose another --output")
  return found


def finish(settings: Settings, made: Iterable[PartResult]) -> None:
  """Writes the manifest of all parts.

  Raises:
    InputError: no pair is left.
    RunError: the manifest cannot be written.
  """
  cleaning, counts = CleaningReport(), PairCounts()
  made = sorted(made, key=lambda part: part.place)
  for part in made:
    cleaning.read += part.read
    cleaning.left_out.update(part.removed)
    counts.add(part.counts)
  shards = [part.shard for part in made if part.shard]
  if not shards:
    reasons = counts.write_to(PackingReport(), settings.values["max_length"]).missing()
    reasons += [f"{count:,} left out: {reason}" for reason, count in cleaning.left_out.items() if count]
    raise InputError(
      f"no sentence pair is left: {'; '.join(reasons)}; check that both files have text, relax the rules, or raise "
      "config.data.max_length and config.data.row_length"
    )
  rules = {key: getattr(value, "value", value) for key, value in dataclasses.asdict(settings.rules).items()}
  described = {"rules": rules, "duplicates": settings.duplicates, "read": cleaning.read, "left_out": cleaning.left_out}
  manifest.write(epath.Path(settings.folder), settings.values, described, counts, shards)


def cleaning_report(folder: epath.Path) -> CleaningReport:
  """What cleaning left out of the text of a folder."""
  values = untrusted.read_json(folder / manifest.MANIFEST)["cleaning"]
  return CleaningReport(values["read"], Counter(values["left_out"]))
