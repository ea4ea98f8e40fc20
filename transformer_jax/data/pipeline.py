"""The path of a corpus to rows: a vocabulary, tokens, and packed rows on disk."""

import dataclasses
import itertools
import sys
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from transformer_jax.config import Corpus, DataConfig
from transformer_jax.data import fingerprint, packing, prepared, text_shards, tokenizers
from transformer_jax.data.corpus import open_corpus, without_temperature
from transformer_jax.data.packing import PARTS
from transformer_jax.data.packing_report import PackingReport
from transformer_jax.data.row_cache import PackedRows, cached_rows
from transformer_jax.data.sentencepiece_tokenizer import SentencePieceTokenizer
from transformer_jax.data.subword_regularization import PieceSampler
from transformer_jax.data.tagged import TaggedPairs, tags_of
from transformer_jax.data.text import TextPairs
from transformer_jax.data.tokenizer import Tokenizer
from transformer_jax.data.tokenizer_pair import TokenizerPair
from transformer_jax.data.trees import symbols
from transformer_jax.runtime.errors import InputError, RunError

_FORMAT = 1  # the version of the cached rows; it changes when their meaning does


def learn_tokenizer(data: DataConfig, *vocab_sizes: int, corpus: Iterable[tuple[str, str]] | None = None) -> Tokenizer:
  """The vocabulary of the training text, or the one that `data.tokenizer` names.

  Args:
    data: the config of the data.
    *vocab_sizes: the size of one vocabulary for source and target; or those of the source's and of the target's.
    corpus: the text to learn from, which may be read several times; None is the training text.

  Raises:
    InputError: the text or a file cannot be read, or does not give a vocabulary of this size.
  """
  if data.tokenizer:
    return tokenizers.chosen(data.tokenizer, *vocab_sizes)
  if data.corpus is Corpus.PREPARED:
    return prepared.tokenizer_of(data.train, *vocab_sizes)
  corpus, kind = open_corpus(data, data.train) if corpus is None else corpus, data.pieces.value
  tags = tags_of(data)
  brackets = symbols(target for _, target in corpus) if data.has_trees else ()
  if len(vocab_sizes) == 1:
    defined = [*tags, *brackets]
    texts = (sentence for pair in corpus for sentence in pair)
    return SentencePieceTokenizer.learn(texts, *vocab_sizes, kind=kind, symbols=defined)
  of_source, of_target = vocab_sizes
  key = "config.model.source_vocab_size"
  source = SentencePieceTokenizer.learn((source for source, _ in corpus), of_source, kind=kind, symbols=tags, key=key)
  # Brackets and tags have all spaces of the targets. Any other text needs the space by itself.
  defined = [" ", *brackets] if brackets else ()
  target = SentencePieceTokenizer.learn((target for _, target in corpus), of_target, kind=kind, symbols=defined)
  return TokenizerPair(source, target)


def packed_rows(data: DataConfig, which: str, tokenizer: Tokenizer) -> PackedRows:
  """The packed rows of the corpus `which`; the first call makes them, later calls read them from the cache.

  Raises:
    InputError: no pair is left, or the cache cannot be written; or a prepared folder cannot be used.
  """
  if data.corpus is Corpus.PREPARED and which == data.train:
    return prepared.packed_rows(data, which, tokenizer)
  corpus = open_corpus(data, which)

  def content() -> str:
    return fingerprint.of_values(_FORMAT, corpus.fingerprint(), tokenizer.fingerprint(), data.row_length, data.longest)

  def pack(report: PackingReport) -> Iterator[np.ndarray]:
    yield from packing.pack_pairs(corpus, tokenizer, data, report)
    if not report.rows:
      raise InputError(
        f"no sentence pair of {corpus.name} is left: "
        f"{', '.join(report.missing()) or 'it has none, or its weights select none'}; "
        "check that both sides have text, or raise config.data.max_length and config.data.row_length"
      )

  return cached_rows(data, content, pack, (PARTS, data.row_length), tokenizer.row_type)


def packing_ahead(data: DataConfig, tokenizer: Tokenizer, seed: int) -> Callable[[int], Iterator[np.ndarray]]:
  """A function that packs a part of the training text, from 0, during the run: a shard, or an epoch's random pieces.

  Raises:
    InputError: as `text_shards.packing_of_shards` and `packing_of_epochs`.
    RunError: while packing, the files are no longer those of the start of the run.
  """
  corpus, make = open_corpus(data, data.train), text_shards.packing_of_shards if data.shard_pairs else packing_of_epochs
  if not isinstance(corpus, TextPairs | TaggedPairs):
    return make(data, tokenizer, seed)
  changed = _changes(corpus)
  pack = make(data, tokenizer, seed)
  error = RunError(
    f"the files of config.data.train = {data.train} changed during the run: give it the text that it began with, and "
    "the same command resumes it"
  )

  def pack_unchanged(part: int) -> Iterator[np.ndarray]:
    try:
      yield from pack(part)
    except InputError as found:
      if changed():
        raise error from found
      raise
    if changed():  # after the rows, of which none is used before the part is whole
      raise error

  return pack_unchanged


def _changes(corpus: TextPairs | TaggedPairs) -> Callable[[], bool]:
  """A function that tells whether the text is another one than now; it reads the files if they were written anew."""
  stamps, content = corpus.stamps(), corpus.fingerprint()

  def changed() -> bool:
    nonlocal stamps
    try:
      now = corpus.stamps()
      if now != stamps and corpus.fingerprint() != content:
        return True
    except InputError as error:
      if isinstance(error.__cause__, FileNotFoundError):
        return True
      raise  # a file cannot be read now, which does not say that it is another one
    stamps = now
    return False

  return changed


def packing_of_epochs(data: DataConfig, tokenizer: Tokenizer, seed: int) -> Callable[[int], Iterator[np.ndarray]]:
  """A function that packs the rows of an epoch, from 0, with random pieces (see `subword_regularization`).

  Raises:
    InputError: the vocabulary is of another kind than the config needs.
  """
  source = PieceSampler(tokenizer.source, data, seed)
  both = tokenizer.source is tokenizer.target
  samplers = source, source if both else PieceSampler(tokenizer.target, data, seed)
  dtype = tokenizer.row_type

  def pack(epoch: int) -> Iterator[np.ndarray]:
    def sample(text: str, pair: int, side: int) -> list[int]:
      return samplers[side].sample(text, epoch, pair, side)

    pairs = packing.sample_pairs(open_corpus(data, data.train), tokenizer, data.longest, sample)
    count = 0
    for rows in packing.pack(pairs, data.row_length, dtype):
      count += len(rows)
      yield rows
    if not count:
      raise RunError(f"no sentence pair is left in epoch {epoch + 1}: was the text changed during the run?")

  return pack


def read_pairs(data: DataConfig, which: str, most: int | None = None) -> list[tuple[str, str]]:
  """The first `most` sentence pairs of a corpus as text, at temperature 1."""
  stop = None if most is None else min(most, sys.maxsize)  # which islice takes at most
  return list(itertools.islice(open_corpus(without_temperature(data), which), stop))


def read_text_pairs(data: DataConfig, prefix: str, most: int | None = None) -> list[tuple[str, str]]:
  """The first `most` sentence pairs of a text that the user names, with the languages and tags of `data`."""
  return read_pairs(dataclasses.replace(data, corpus=Corpus.TEXT), prefix, most)
