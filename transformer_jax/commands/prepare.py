"""Cleans, tokenises and packs the training text of a config, once, and writes its rows to a folder of ArrayRecord
files. Training with config.data.corpus=prepared and config.data.train=FOLDER reads from there only the rows that a host
needs, so the text may be larger than a machine. The work is an Apache Beam pipeline (pip install -e '.[beam]') on the
cores of this machine or, with --runner, on a cluster (docs/clusters.md). Without flags of cleaning only pairs with an
empty side are left out.
"""

import argparse
import dataclasses
import shlex
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from transformer_jax.commands.experiment import add_config_arguments, read_config
from transformer_jax.commands.rules import add_rule_arguments, require_no_weights, rules_of
from transformer_jax.config import Config, Corpus
from transformer_jax.runtime.errors import InputError, RunError, require_option
from transformer_jax.runtime.files import path_of

if TYPE_CHECKING:  # --help must not wait for these imports
  from etils import epath

  from transformer_jax.data.text import TextPairs


def add_arguments(parser: argparse.ArgumentParser) -> None:
  add = parser.add_argument
  add_config_arguments(parser, "the first example")
  add("--output", metavar="FOLDER", help="the new folder (required); with --runner it may be in a bucket")
  add("--part", type=int, default=250_000, metavar="N", help="the lines of a part, which is a file (default: 250000)")
  add("--workers", type=int, metavar="N", help="the processes on this machine (default: one a core)")
  add("--runner", metavar="NAME", help="a runner of Beam for a cluster, such as DataflowRunner")
  add(
    "--beam-options",
    default="",
    metavar="TEXT",
    help="the runner's own flags, as in --beam-options='--project=P --region=R'",
  )
  add_rule_arguments(parser)


def run(args: argparse.Namespace) -> None:
  _require_flags(args)
  config = read_config(args)
  options = _options(args.beam_options)
  _require_preparable(config, args.output)

  from transformer_jax.data import beam_pipeline, manifest, pipeline, preparation
  from transformer_jax.data.text import TextPairs
  from transformer_jax.runs.locks import exclusive_lock_of_one_process
  from transformer_jax.runtime.process import cores
  from transformer_jax.runtime.progress import doing, say

  data = config.data
  languages = data.source_language, data.target_language
  text, rules = TextPairs(data.train, *languages), rules_of(args, languages)
  text.require_no_pipe()
  require_no_weights(args, text, "config.data.train")
  beam_pipeline.require_beam()
  folder = path_of(args.output)
  with exclusive_lock_of_one_process(folder, "--output"), _unchanged(text, folder):
    preparation.require_free(folder)  # before the text is read
    with doing("learning the vocabulary"):
      passing = preparation.PassingPairs(text, rules)
      tokenizer = pipeline.learn_tokenizer(data, *config.model.vocab_sizes, corpus=passing)
    values = manifest.settings_of(data, tokenizer.fingerprint())
    settings = preparation.Settings(str(folder), values, rules, args.duplicates)
    preparation.begin(folder, tokenizer)
    with doing(f"preparing {data.train}"), _progress(folder):
      beam_pipeline.run(settings, text.files, args.part, args.workers or cores(), args.runner or "", options)
  report = manifest.read(folder).report()
  say(preparation.cleaning_report(folder).describe())
  say(report.describe(data.row_length))
  if "://" in str(folder):
    say("docs/clusters.md says how hosts read a folder in a bucket")
  else:
    say(f"train with it:\n  --config.data.corpus=prepared --config.data.train={shlex.quote(str(folder))}")


def _require_flags(args: argparse.Namespace) -> None:
  """Raises InputError unless the flags fit together."""
  if not args.output:
    raise InputError("--output is missing: it names the new folder, which training will read")
  require_option("--part", args.part, args.part > 0, "positive")
  require_option("--workers", args.workers, args.workers is None or args.workers > 0, "positive")
  require_option("--workers", args.workers, not (args.runner and args.workers), "left out with --runner")
  options = args.beam_options
  require_option("--beam-options", options, bool(args.runner or not options), "left out without --runner")


def _require_preparable(config: Config, output: str) -> None:
  """Raises InputError unless training can read the rows of such a config."""
  data = config.data
  if not config.model.translates or data.corpus is not Corpus.TEXT:
    raise InputError(
      "prepare reads sentence pairs from files: set config.data.corpus to text, with a model that translates"
    )
  if config.train.init_from:
    raise InputError(
      "config.train.init_from is not used by prepare: leave it out, and set config.data.tokenizer to that run's "
      "vocabulary, and the sizes of the model to its"
    )
  for name in ("tags", "bpe_dropout", "unigram_alpha", "shard_pairs"):
    if getattr(data, name):
      raise InputError(f"config.data.{name} is not used by prepare, which packs each pair once: leave it out")
  dataclasses.replace(data, corpus=Corpus.PREPARED, train=output)  # raises for what else needs the text


def _options(text: str) -> list[str]:
  """The flags in --beam-options."""
  try:
    return shlex.split(text)
  except ValueError as error:
    raise InputError(f"--beam-options is {text!r}, but must be flags: {error}") from error


@contextmanager
def _unchanged(text: "TextPairs", folder: "epath.Path") -> Iterator[None]:
  """Raises RunError, without a manifest in the folder, if a file of the text changes while the body reads it again.

  A part is a range of bytes, which would cut other lines out of a file that has changed.
  """
  from transformer_jax.data import manifest

  before = text.stamps()
  yield
  try:
    changed = text.stamps() != before
  except InputError:  # a file is no longer there
    changed = True
  if changed:
    (folder / manifest.MANIFEST).unlink()
    raise RunError(f"the files of config.data.train = {text.name} changed while they were read: give the command again")


@contextmanager
def _progress(folder: "epath.Path") -> Iterator[None]:
  """Shows how many files are whole while the body runs, unless the folder is in a bucket."""
  from transformer_jax.data import manifest
  from transformer_jax.runtime.progress import Progress

  over, visible = threading.Event(), "://" not in str(folder)

  def watch() -> None:
    done = 0
    with Progress("shard", visible=visible) as progress:
      while visible and not over.wait(1):
        now = sum(manifest.SHARD.fullmatch(path.name) is not None for path in folder.iterdir())
        progress.update(now - done)
        done = now

  thread = threading.Thread(target=watch, daemon=True)
  thread.start()
  try:
    yield
  finally:
    over.set()
    thread.join()
