"""The text that a benchmark reads: its lines, and the flags for sentence pairs."""

import argparse
import os
from typing import Any

from transformer_jax.config import Corpus, DataConfig
from transformer_jax.data.text import lines_of


def lines(path: str | os.PathLike[str]) -> list[str]:
  """All lines of a file, plain or compressed."""
  return [*lines_of(path)]


def add_arguments(parser: argparse.ArgumentParser) -> None:
  """Adds `--data` and `--languages`."""
  add = parser.add_argument
  add("--data", required=True, metavar="PREFIX", help="training text: PREFIX.en and PREFIX.de, plain or .xz")
  add("--languages", nargs=2, default=["en", "de"], metavar="L", help="source and target (default en de)")


def config(args: argparse.Namespace, row_length: int, folder: str, **more: Any) -> DataConfig:
  """The config of this text in rows of `row_length`, with the cache in `folder`."""
  source, target = args.languages
  return DataConfig(
    corpus=Corpus.TEXT,
    source_language=source,
    target_language=target,
    train=args.data,
    row_length=row_length,
    cache_dir=folder,
    **more,
  )
