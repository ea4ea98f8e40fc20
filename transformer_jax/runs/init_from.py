"""What a new run takes from the one in `config.train.init_from`: the model's sizes, vocabulary and parameters."""

import dataclasses
import os
from collections.abc import Container, Iterable

import jax
import jax.numpy as jnp

from transformer_jax.config import Config, Corpus, serialization
from transformer_jax.data import tokenizers
from transformer_jax.data.subwords import SubwordTokenizer
from transformer_jax.data.tokenizer import Tokenizer
from transformer_jax.model.config import AnyModelConfig
from transformer_jax.model.params import Params, by_name, map_by_name
from transformer_jax.runs import resume
from transformer_jax.runs.run import Run
from transformer_jax.runs.run import open as open_run
from transformer_jax.runtime.errors import InputError
from transformer_jax.runtime.progress import say
from transformer_jax.runtime.values import JsonObject
from transformer_jax.training.pretrained_embeddings import is_table
from transformer_jax.training.task import task_of

# They say how a model is trained, and nothing of what its parameters mean: the new run's own count.
_OF_TRAINING = {"dropout", "attention_dropout", "dtype", "remat", "fused_attention"}


def open_other(config: Config, *, accept_edits: bool = False) -> Run | None:
  """The run in `config.train.init_from`; None if that is empty.

  Raises:
    InputError: it is no run folder, or a damaged one.
  """
  return open_run(config.train.init_from, accept_edits=accept_edits) if config.train.init_from else None


def config_to_train_with(
  config: Config, given: Container[str], workdir: str | os.PathLike, *, accept_edits: bool = False
) -> Config:
  """`config` with the sizes of the run in `config.train.init_from`, except those that are given; every host calls it.

  Where a run has begun in `workdir` already the sizes are its own: the other run may be gone.

  Args:
    config: what the config file and the command line say.
    given: the keys of the command line, such as `model.d_ff`.
    workdir: the folder to train in.
    accept_edits: as in `runs.open`.

  Raises:
    InputError: one of the folders is damaged or no run, or the sizes do not fit those that were given.
  """

  def find() -> Run | None:
    if not config.train.init_from:
      return None
    return resume.begun(workdir, accept_edits=accept_edits) or open_other(config, accept_edits=accept_edits)

  other = resume.config_from_main(find)
  # A host that was given another config keeps its own: training compares them.
  return config_from(other, config, given) if other and config.train.init_from else config


def config_from(other: Run | Config, config: Config, given: Container[str] = ()) -> Config:
  """`config` with another's `config.model`, but for the keys in `given`, dropout and types; says what changes.

  The other is a run or its config. The models may be of two families, as BERT and its classifier: then it is what both
  have.

  Raises:
    InputError: the sizes do not fit those that were given.
  """
  model, theirs = config.model, (other.config if isinstance(other, Run) else other).model
  taken = {
    field.name: getattr(theirs, field.name)
    for field in dataclasses.fields(model)
    if f"model.{field.name}" not in given and field.name not in _OF_TRAINING and hasattr(theirs, field.name)
  }
  new = dataclasses.replace(config, model=dataclasses.replace(model, **taken))
  before = serialization.flat(config)
  differing = [f"config.{key}={value}" for key, value in serialization.flat(new).items() if value != before[key]]
  if differing:
    say(f"as the run in {config.train.init_from}: {' '.join(differing)}")
  new.require_positions()
  return new


def tokenizer_to_begin_with(config: Config, other: Run | None) -> Tokenizer:
  """The vocabulary of a new run: the other run's, that of `config.data.tokenizer`, or one that is learned.

  Args:
    config: the new run's.
    other: the run in `config.train.init_from`, if there is one.

  Raises:
    InputError: a vocabulary has another size than the model's or text in place of its special tokens, or two are given
      that differ.
  """
  sizes, chosen = config.model.vocab_sizes, config.data.tokenizer
  if other is None:
    if not chosen and config.data.corpus is not Corpus.PREPARED:  # which has one
      say(" and ".join(f"learning a vocabulary of {size:,} tokens" for size in sizes))
    learned = task_of(config.model).learn_tokenizer(config)
    _require_special(learned, config.model, "config.model.begin and config.model.end", "leave both out")
    return learned
  tokenizer, whose = other.tokenizer, f"the run in {config.train.init_from}"
  tokenizers.require_sizes(tokenizer, sizes, whose)
  _require_special(tokenizer, config.model, f"config.train.init_from: {whose}", "begin with another run")
  if chosen and tokenizers.chosen(chosen, *sizes).fingerprint() != tokenizer.fingerprint():
    raise InputError(
      f"config.data.tokenizer: {chosen} is not the vocabulary of the run in {config.train.init_from}: leave it empty"
    )
  return tokenizer


def _require_special(tokenizer: Tokenizer, model: AnyModelConfig, where: str, advice: str) -> None:
  """Raises InputError if the vocabulary has text where the model has the tokens that begin and end a text."""
  for does, number in (("begins", model.start_token), ("ends", model.end_token)):
    what = "" if number in tokenizer.special else "is text"
    if does == "ends" and number in tokenizer.suppressed:
      what = "is never written"
    if what:
      piece = tokenizer.pieces([number])[0]
      raise InputError(
        f"{where}: the model {does} a text with the token {number}, but in the vocabulary that is {piece!r}, which "
        f"{what}: {advice}"
      )


def origin(other: Run, step: int) -> JsonObject:
  """What the provenance of a new run says of the one that it begins with, and of the library that trained that one."""
  imported = {"imported": other.imported} if other.imported else {}
  return {"run": str(other.path), "step": step, **imported}


def params_from(other: Run, config: Config, params: Params) -> tuple[Params, int]:
  """`params` of a new run, and in their places those of another run with their name and shape.

  A table of positions of which the other run can have learned only the first rows begins with these, again and again:
  they are better than random ones (Beltagy et al. 2020, §5).

  Says what is new or repeated, and which options of both models differ: some of them, as where LayerNorm stands, change
  what the same parameters mean.

  Args:
    other: the run whose last checkpoint is taken.
    config: the new run's.
    params: random ones.

  Returns:
    The parameters, and the step of the other run's checkpoint.

  Raises:
    InputError: there are none such.
  """
  found, workdir = other.model(), config.train.init_from
  # All rows of a run that was itself begun with another's parameters, and of a model that another library trained:
  # only such a model has such a vocabulary.
  all_learned = other.config.train.init_from or isinstance(other.tokenizer, SubwordTokenizer)
  learned = None if all_learned else other.config.data.longest
  chosen, new, repeated = _merged(params, found.params, learned, config.data.row_length)
  _require_tables_that_freeze(config, new)
  if len(new) == len(jax.tree.leaves(params)):
    raise InputError(f"config.train.init_from: the run in {workdir} has no parameters of this model's names and shapes")
  random = f"; not there, so random: {', '.join(new)}" if new else ""
  say(f"beginning with the parameters of step {found.step} of {workdir}{random}")
  if repeated:
    say(f"rows that were not learned repeat the learned ones: {', '.join(repeated)}")
  if differing := _differing(config, other.config):
    say(f"this model is not quite that of {workdir}: {'; '.join(differing)}")
  return chosen, found.step


def _require_tables_that_freeze(config: Config, random: Iterable[str]) -> None:
  """Raises InputError if a table of embeddings would stay at the random numbers that it begins with."""
  for name in filter(is_table, random) if config.train.freeze_embeddings else ():
    raise InputError(
      f"config.train.freeze_embeddings would leave {name} random, as the run in {config.train.init_from} has no such "
      "table: leave it out, or keep the tables of that run's config.model"
    )


def _merged(
  params: Params, others: Params, learned: int | None, row_length: int
) -> tuple[Params, list[str], list[str]]:
  """`params` with those of another model in their places, the names of those that stay, and what is repeated.

  Args:
    params: random ones.
    others: trained ones.
    learned: rows that tables of positions have learned; None is all.
    row_length: rows that are needed of them.
  """
  trained = by_name(others)
  new: list[str] = []
  repeated: list[str] = []

  def choose(name: str, random: jax.Array) -> jax.Array:
    other = trained.get(name)
    if other is not None and name.endswith("positions/table") and other.shape[1:] == random.shape[1:]:
      rows = min(len(other), learned or len(other))
      if rows < row_length:
        repeated.append(f"{name} from row {rows} on")
      return other[jnp.arange(len(random)) % rows]
    if other is not None and other.shape == random.shape:
      return other
    new.append(name)
    return random

  return map_by_name(choose, params), new, repeated


def _differing(config: Config, other: Config) -> list[str]:
  here, there = serialization.flat(config), serialization.flat(other)
  return [
    f"config.{key} is {value}, was {there[key]}"
    for key, value in here.items()
    if key.startswith("model.") and key in there and value != there[key]
  ]
