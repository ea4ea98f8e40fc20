"""Checks of the config, the machine and the texts before training."""

import dataclasses

import jax
import jax.numpy as jnp

from transformer_jax import registry
from transformer_jax.analysis import requirements
from transformer_jax.config import Config, Corpus, DataConfig, serialization
from transformer_jax.data import manifest, prepared, text_shards
from transformer_jax.data.corpus import open_corpus, without_temperature
from transformer_jax.data.documents import open_text
from transformer_jax.data.packing_report import PackingReport
from transformer_jax.data.row_cache import PackedRows
from transformer_jax.data.tagged import TaggedPairs, directions_of, tag
from transformer_jax.data.text import TextPairs
from transformer_jax.data.tokenizer import Tokenizer, row_type
from transformer_jax.evaluation.scores import check_tokenization
from transformer_jax.model.config import ModelConfig
from transformer_jax.runtime import devices, hosts, trace_cache
from transformer_jax.runtime.errors import InputError
from transformer_jax.runtime.progress import say
from transformer_jax.runtime.sizes import gigabytes
from transformer_jax.runtime.versions import versions
from transformer_jax.runtime.wording import counted
from transformer_jax.training.task import Task

_MUCH_FILLED = 1.25  # a fifth of the computed rows are empty; iwslt14's 21 rows on 8 devices have less

_OF_RESULTS = (
  "jax_default_matmul_precision",
  "jax_enable_x64",
  "jax_threefry_partitionable",
)


def require_trainable(config: Config, task: Task) -> None:
  """Raises InputError if the devices of this host cannot train this config."""
  devices.require_devices()
  if config.model.needs_cudnn and not devices.has_cudnn():
    raise InputError(
      "config.model.fused_attention needs an NVIDIA GPU of compute capability 8 or more, and the devices here are "
      f"{devices.describe()['kind']}: begin a run without it, which computes the same; a run that was begun with it "
      "goes on as a new one, by config.train.init_from"
    )
  _require_memory(config, task)
  if config.model.translates:
    _require_tokenization(config)


def require_texts_exist(config: Config) -> None:
  """Raises InputError if a text does not exist or cannot be read, before a vocabulary is learned."""
  data = config.data
  texts = [data.train, *filter(None, (data.validation, data.test))]
  if data.corpus is Corpus.PREPARED:
    manifest.read(prepared.folder_of(texts.pop(0)))
  # The language models here read text alone; a task of another package may read any corpus.
  ours = trace_cache.is_own_module(registry.family_of(config.model).task.partition(":")[0])
  of_text = not config.model.translates and (ours or data.corpus is Corpus.TEXT)
  for which in texts:
    corpus = (open_text if of_text else open_corpus)(data, which)
    if isinstance(corpus, TextPairs | TaggedPairs):
      corpus.require_no_pipe()
  if data.shard_pairs:
    text_shards.plain_text(data)


def warn_of_skipped(report: PackingReport) -> None:
  """Says that more pairs of the training text are skipped than are read."""
  skipped, read = sum(report.left_out.values()), sum(list(report.found.values())[:1])
  if skipped > read:
    too_long = sum(count for what, count in report.left_out.items() if "longer than" in what)
    advice = (
      "long lines need a higher config.data.max_length and row_length, a larger vocabulary, or a cut"
      if 2 * too_long > skipped
      else "check that line n of one file translates line n of the other"
    )
    say(f"most of the training text is skipped, {skipped:,} of {skipped + read:,} pairs:\n  {advice}")


def warn(config: Config) -> None:
  """Says what a user may not expect of a config."""
  train, every = config.train, config.evaluate.every
  _warn_of_empty_rows(config)
  if config.data.validation and config.data.validation == config.data.train:
    say("config.data.validation is the training text:\n  its scores and --step best say nothing about other text")
  if not config.data.validation:
    say("config.data.validation is empty: no checkpoint will be known as the best")
  if config.data.validation and train.save_every and every % train.save_every and not train.patience:
    say(
      f"config.evaluate.every = {every} is no multiple of config.train.save_every = {train.save_every}:\n"
      "  --step best takes the best of those validations that have a checkpoint"
    )
  if config.data.validation and not train.save_every and 0 < every < train.steps and not train.patience:
    say("config.train.save_every is 0: --step best takes the last checkpoint, the only one")
  if train.warmup_steps >= train.steps:
    say(
      f"config.train.warmup_steps = {train.warmup_steps} is not below config.train.steps = {train.steps}:\n"
      "  the learning rate rises to the end, and may stay too low to learn"
    )
  if not train.init_from:
    _warn_of_tags(config.data)
  longest, translated = config.data.longest, config.decode.max_source_length
  learned = isinstance(config.model, ModelConfig) and config.model.learned_positions
  if learned and translated > longest and not train.init_from:
    say(
      f"config.decode.max_source_length = {translated} is more than training reads, {longest} tokens:\n"
      "  lower it, as longer sentences would have positions that were never learned"
    )


def _warn_of_empty_rows(config: Config) -> None:
  """Says that a batch is filled up with many empty rows, which cost as much as others."""
  rows, count = config.train.batch_tokens // config.data.row_length, devices.device_count()
  computed = requirements.computed_rows(config, count)
  if computed > _MUCH_FILLED * rows:
    parts = count * config.train.accumulation
    say(
      f"each batch of {counted(rows, 'rows')} gets {counted(computed - rows, 'empty ones')}, as slow as the others:\n"
      f"  a multiple of {parts} rows (devices * config.train.accumulation) needs none"
    )


def _warn_of_tags(data: DataConfig) -> None:
  """Says that validation or test has a target language that training does not have."""
  learned = {target for _, target in directions_of(data)} if data.tags else set()
  for key in ("validation", "test") if data.tags else ():
    which = getattr(data, key)
    others = {target for _, target in directions_of(dataclasses.replace(data, train=which))} if which else set()
    for language in sorted(others - learned):
      say(
        f"config.data.{key} has translations to {language}, but config.data.train has none:\n"
        f"  {tag(language)} is no tag of this model, and its scores say little"
      )


def _require_tokenization(config: Config) -> None:
  """Raises InputError if sacreBLEU cannot use the tokenisation of validation and test."""
  try:
    check_tokenization(config.evaluate.tokenize)
  except InputError as error:
    raise InputError(f"config.evaluate.tokenize: {error}") from error


def _require_memory(config: Config, task: Task) -> None:
  """Raises InputError if a batch exceeds the memory; otherwise it would take minutes until memory runs out."""
  rows = requirements.rows_at_a_time(config, devices.device_count())
  tokens = config.train.accumulation * task.parts * row_type(config.model.vocab_sizes)().itemsize
  embedded = config.model.d_model * jnp.dtype(config.model.dtype.value).itemsize
  size = rows * config.data.row_length * (tokens + embedded) * (devices.local_device_count() if devices.on_cpu() else 1)
  memory = devices.memory()
  if memory is not None and size > memory:
    raise InputError(
      f"config.train.batch_tokens is {config.train.batch_tokens}: its tokens, with the embeddings of one of "
      f"config.train.accumulation = {config.train.accumulation} parts, take {gigabytes(size)} and more, but there "
      f"are {gigabytes(memory)}: lower it; `transformer-jax plan` tells what a config needs"
    )


def jax_settings() -> dict[str, str]:
  """JAX's settings that determine the result of an update."""
  return {name: str(getattr(jax.config, name)) for name in _OF_RESULTS}


def require_equal_hosts(config: Config) -> None:
  """Raises InputError if the hosts differ in what determines a result, or if `config.debug` has several hosts."""
  settings = {f"config.{key}": value for key, value in serialization.flat(config).items()}
  settings |= jax_settings()
  settings |= package_versions() | versions("sacrebleu")  # by whose scores a run may stop early
  hosts.require_equal(settings, "call the same command in the same environment on all hosts")
  if config.debug and hosts.count() > 1:
    raise InputError("config.debug looks at one device alone: start one process with --hosts=1")


def digests_of_texts(config: Config, task: Task, tokenizer: Tokenizer, packed: PackedRows) -> dict[str, str]:
  """The digests of the texts, which the hosts compare; of the training text it is that of its rows, `packed`."""

  def of_rows(which: str) -> str:
    return task.packed_rows(dataclasses.replace(config, data=data), which, tokenizer).fingerprint

  data, found = without_temperature(config.data), {"train": packed.fingerprint}
  if data.validation:
    found["validation"] = of_rows(data.validation)
  if data.test:  # a text that is translated has no rows, for which its sentences may be too long
    found["test"] = open_corpus(data, data.test).fingerprint() if config.model.translates else of_rows(data.test)
  return {f"the text of config.data.{key}": digest for key, digest in found.items()}


def package_versions() -> dict[str, str]:
  """The versions of the packages that determine the result of an update."""
  return versions("jax", "jaxlib", "flax", "optax", "orbax-checkpoint", "grain", "sentencepiece", "numpy")
