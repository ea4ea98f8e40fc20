"""A prepared folder without Apache Beam: its steps one after another, in this process."""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from etils import epath

from transformer_jax.config import Corpus, DataConfig
from transformer_jax.data import manifest, pipeline, preparation
from transformer_jax.data.cleaning import Rules
from transformer_jax.data.text import TextFiles, TextPairs
from transformer_jax.data.text_parts import parts_of


def text(prefix: str, **keys) -> DataConfig:
  return DataConfig(corpus=Corpus.TEXT, train=prefix, validation="", row_length=keys.pop("row_length", 16), **keys)


def prepare(
  data: DataConfig,
  folder: Path,
  lines: int = 50,
  rules: Rules | None = None,
  duplicates: str | None = None,
  vocab_size: int = 290,
) -> DataConfig:
  """Prepares the text of a config; returns the config that trains with it."""
  rules = rules or Rules()
  corpus = TextPairs(data.train, data.source_language, data.target_language)
  passing = preparation.PassingPairs(corpus, rules)
  tokenizer = pipeline.learn_tokenizer(data, vocab_size, corpus=passing)
  preparation.begin(epath.Path(folder), tokenizer)
  values = manifest.settings_of(data, tokenizer.fingerprint())
  run(preparation.Settings(str(folder), values, rules, duplicates), corpus.files, lines)
  return prepared(data, folder)


def run(settings: preparation.Settings, files: Sequence[TextFiles], lines: int, *engine: object) -> None:
  """The steps of `beam_pipeline.run`, which has the same arguments; those of the engine change nothing."""
  parts = [part for number, of_corpus in enumerate(files) for part in parts_of(number, of_corpus, lines)]
  groups, repeated = defaultdict(list), defaultdict(list)
  for one in parts if settings.duplicates else ():
    for group, records in preparation.digests_of(settings, one):
      groups[group].append(records)
  for group, records in groups.items():
    for place, numbers in preparation.repeated_of(group, records):
      repeated[place] += numbers
  made = [preparation.make_shard(settings, one, repeated[one.corpus, one.number]) for one in parts]
  preparation.finish(settings, reversed(made))  # an engine may give them in any order


def prepared(data: DataConfig, folder: Path) -> DataConfig:
  """The config that trains with a folder."""
  keys = {key: getattr(data, key) for key in ("source_language", "target_language", "row_length", "max_length")}
  return DataConfig(corpus=Corpus.PREPARED, train=str(folder), validation=data.validation, **keys)
