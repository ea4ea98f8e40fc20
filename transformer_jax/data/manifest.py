"""The manifest of a folder of packed rows, which `transformer-jax prepare` writes last: the folder is whole then.

It is a JSON file and may come from a stranger, so all that is read of it is checked.
"""

import dataclasses
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from etils import epath

from transformer_jax.config import DataConfig
from transformer_jax.data import fingerprint
from transformer_jax.data.packing_report import PackingReport
from transformer_jax.data.pair_counts import PairCounts
from transformer_jax.runtime import untrusted
from transformer_jax.runtime.errors import InputError
from transformer_jax.runtime.files import write_atomically
from transformer_jax.runtime.values import Json, JsonObject

MANIFEST = "manifest.json"
SHARD = re.compile(r"\d{5}-\d{5,}\.array_record")  # the names of the files of rows
# The keys of `config.data` that a folder is made with, and that training with it must have.
KEYS = "source_language", "target_language", "row_length", "max_length"

_FORMAT = 1  # the version of the folder; it changes when the meaning of its files does
_LEAST = 40  # bytes of a record in a file, those of its header


class Shard(NamedTuple):
  """One file of rows.

  Attributes:
    name: the file's name in the folder.
    rows: the number of its rows.
    size: the bytes of the file.
    digest: a digest of the rows.
  """

  name: str
  rows: int
  size: int
  digest: str


@dataclass(frozen=True)
class Manifest:
  """The content that training needs.

  Attributes:
    settings: the values of `KEYS`, and `tokenizer`, the digest of the vocabulary.
    counts: the counts of all pairs.
    shards: the files.
    fingerprint: a digest of all values of the manifest.
  """

  settings: JsonObject
  counts: PairCounts
  shards: Sequence[Shard]
  fingerprint: str

  def report(self) -> PackingReport:
    """The report of the packing."""
    rows = sum(shard.rows for shard in self.shards)
    return self.counts.write_to(PackingReport(rows), self.settings["max_length"])


def settings_of(data: DataConfig, tokenizer: str) -> JsonObject:
  """The settings of a folder; `tokenizer` is the digest of the vocabulary."""
  return {key: getattr(data, key) for key in KEYS} | {"max_length": data.longest, "tokenizer": tokenizer}


def write(
  folder: epath.Path,
  settings: JsonObject,
  cleaning: JsonObject,
  counts: PairCounts,
  shards: Sequence[Shard],
) -> None:
  """Writes the manifest; `cleaning` are the rules and what they left out, for people.

  Raises:
    RunError: the file cannot be written.
  """
  values = {
    "format": _FORMAT,
    "settings": settings,
    "cleaning": cleaning,
    "counts": dataclasses.asdict(counts),
    "shards": [shard._asdict() for shard in shards],
  }
  write_atomically(folder / MANIFEST, f"{json.dumps(values, indent=1)}\n".encode())


def read(folder: epath.Path) -> Manifest:
  """The checked content of a folder's manifest.

  Raises:
    InputError: there is none, or it is damaged.
  """
  path = folder / MANIFEST
  try:
    untrusted.own_file(folder, MANIFEST)
    values = untrusted.read_json(path)
  except (FileNotFoundError, NotADirectoryError) as error:
    why = f"has no {MANIFEST}: it was not prepared to its end" if folder.is_dir() else "is no folder"
    raise InputError(f"{folder} {why}; make it with `transformer-jax prepare`, or check the path") from error
  try:
    settings = {key: _plain(values["settings"][key]) for key in (*KEYS, "tokenizer")}
    counts = PairCounts(*(_whole(values["counts"][field.name]) for field in dataclasses.fields(PairCounts)))
    shards = tuple(map(_shard, values["shards"]))
    if values["format"] != _FORMAT or not shards or len({shard.name for shard in shards}) != len(shards):
      raise ValueError
  except (KeyError, TypeError, ValueError) as error:
    raise InputError(
      f"{path} is not what this version of `transformer-jax prepare` writes: copy it again, or prepare the text anew"
    ) from error
  return Manifest(settings, counts, shards, fingerprint.of_values(values))


def _shard(values: Json) -> Shard:
  shard = Shard(values["name"], _whole(values["rows"]), _whole(values["size"]), values["digest"])
  if not SHARD.fullmatch(shard.name) or not 0 < shard.rows * _LEAST <= shard.size:
    raise ValueError
  return shard


def _whole(value: Json) -> int:
  if type(value) is not int or value < 0:
    raise ValueError
  return value


def _plain(value: Json) -> str | int:
  if type(value) not in (str, int):
    raise ValueError
  return value
