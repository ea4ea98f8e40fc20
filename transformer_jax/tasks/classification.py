"""The task of telling classes of sentences apart (Devlin et al. 2019, §4.1), from lines `LABEL<TAB>SENTENCE`.

A row is [CLS] sentence [SEP] in the arrays of `pairs`: tokens, sides (1, or 0 for padding), and the class' number.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from etils import epath

from transformer_jax import registry
from transformer_jax.config import Config
from transformer_jax.data import fingerprint, pipeline
from transformer_jax.data.documents import require_text
from transformer_jax.data.next_sentence import LABEL, PARTS, SIDES, TOKENS
from transformer_jax.data.packing import AT_ONCE, gathered
from transformer_jax.data.row_cache import PackedRows, cached_rows
from transformer_jax.data.special_tokens import CLS, SEP
from transformer_jax.data.text import digest, lines_of
from transformer_jax.data.tokenizer import Tokenizer
from transformer_jax.model import masking
from transformer_jax.runtime.errors import InputError
from transformer_jax.tasks.language_validation import Validation
from transformer_jax.training.loss import Sums, token_sums

__all__ = ["PARTS", "UNIT", "batch_sums", "counts", "init_params", "learn_tokenizer", "packed_rows", "validation"]

Params = Any

UNIT = "sentences"

validation = Validation

_FORMAT = "classes 1"  # of the cached rows; changes when their meaning does


@dataclass
class SentencesReport:
  """What became of the sentences; `cut` are those of which a row holds only the beginning."""

  rows: int = 0
  tokens: int = 0
  cut: int = 0

  @property
  def size(self) -> str:
    return f"{self.rows:,} sentences"

  def padding(self, row_length: int) -> float:
    """The share of positions that hold no token."""
    return 1 - self.tokens / max(1, self.rows * row_length)

  def describe(self, row_length: int, longest: int) -> str:
    return f"{self.size}, in rows of {row_length}, {self.padding(row_length):.1%} padding{self.left_out(longest)}"

  def left_out(self, longest: int) -> str:
    """What had no room, as the end of a sentence."""
    return f"; of {self.cut:,}, longer than that, only the beginning" if self.cut else ""


def labelled(path: str, classes: list[str]) -> Iterator[tuple[int, str]]:
  """The class' number and the sentence of each line of a file.

  Raises:
    InputError: a line has no tab or a label that is not in `classes`.
  """
  numbers = {name: number for number, name in enumerate(classes)}
  for number, line in enumerate(lines_of(epath.Path(path).expanduser()), 1):
    label, tab, sentence = line.partition("\t")
    if not tab:
      raise InputError(f"{path}, line {number}: no tab; each line must be LABEL<TAB>SENTENCE")
    if label not in numbers:
      raise InputError(
        f"{path}, line {number}: the label {label!r} is not one of config.model.labels = {','.join(classes)}"
      )
    yield numbers[label], sentence


def learn_tokenizer(config: Config) -> Tokenizer:
  """The vocabulary of the training sentences, or the one that `config.data.tokenizer` names."""
  if config.data.tokenizer:
    return pipeline.chosen_tokenizer(config.data.tokenizer, config.model.vocab_size)
  sentences = (sentence for _, sentence in labelled(_file(config, config.data.train), _classes(config)))
  return Tokenizer.learn(sentences, config.model.vocab_size)


def packed_rows(config: Config, which: str, tokenizer: Tokenizer) -> PackedRows:
  """The sentences of the file `which`, one a row, made at the first call and read from the cache after it.

  Raises:
    InputError: the file has no sentences or a malformed line, or the cache cannot be written.
  """
  data, classes, path = config.data, _classes(config), _file(config, which)
  content = fingerprint.of_values(
    _FORMAT, digest(epath.Path(path).expanduser()), classes, tokenizer.fingerprint(), data.row_length
  )
  report, dtype = SentencesReport(), pipeline.row_type(tokenizer.vocab_size)

  def pack() -> Iterator[np.ndarray]:
    for examples in gathered(labelled(path, classes), AT_ONCE, lambda example: 1024 + len(example[1])):
      yield rows_of(examples)
    if not report.rows:
      raise InputError(f"{path} is empty: expected lines LABEL<TAB>SENTENCE")

  def rows_of(examples: list[tuple[int, str]]) -> np.ndarray:
    rows, cut = sentence_rows(tokenizer, [sentence for _, sentence in examples], data.row_length)
    report.rows += len(rows)
    report.tokens += int(np.sum(rows[:, SIDES] > 0))
    report.cut += sum(cut)
    rows[:, LABEL] = np.array([label for label, _ in examples])[:, None]
    return rows.astype(dtype)

  return cached_rows(data, content, pack, report, (PARTS, data.row_length), dtype)


def sentence_rows(tokenizer: Tokenizer, sentences: list[str], row_length: int) -> tuple[np.ndarray, list[bool]]:
  """Rows `[sentences, 3, row_length]` without labels, and whether each holds only the beginning of its sentence."""
  rows = np.zeros((len(sentences), PARTS, row_length), np.int64)
  encoded = tokenizer.encode_batch(sentences)
  for row, tokens in zip(rows, encoded, strict=True):
    whole = [CLS, *tokens[: row_length - 2], SEP]
    row[TOKENS, : len(whole)] = whole
    row[SIDES, : len(whole)] = 1
  return rows, [len(tokens) > row_length - 2 for tokens in encoded]


def init_params(config: Config, key: jax.Array) -> Params:
  """Random parameters of the config's model."""
  model: Any = registry.module(config.model)
  tokens = jnp.zeros(2, jnp.int32)
  return model.init(key, tokens, tokens, jnp.ones((2, 2), bool))["params"]


def logits(model: Any, params: Params, row: jax.Array, key: jax.Array | None) -> jax.Array:
  """A row's logits `[classes]`; without a key there is no dropout."""
  row = row.astype(jnp.int32)
  valid = row[SIDES] > 0
  return model.apply(
    {"params": params},
    row[TOKENS],
    jnp.zeros_like(row[SIDES]),
    masking.padding_mask(valid, valid),
    deterministic=key is None,
    rngs=None if key is None else {"dropout": key},
  )


def batch_sums(config: Config, params: Params, rows: jax.Array, keys: jax.Array | None) -> Sums:
  """Loss and counts of rows `[rows, 3, row_length]`, one term a sentence."""
  model: Any = registry.module(config.model)
  in_axes = (0, None if keys is None else 0)
  found = jax.vmap(lambda row, key: logits(model, params, row, key), in_axes)(rows, keys)
  real = jnp.any(rows[:, SIDES] > 0, axis=1)
  return token_sums(found, rows[:, LABEL, 0].astype(jnp.int32), real, config.train.label_smoothing)


def counts(config: Config, rows: jax.Array) -> dict[str, jax.Array]:
  """There is no loss but that of the class."""
  return {}


def _classes(config: Config) -> list[str]:
  model: Any = config.model
  return model.classes


def _file(config: Config, which: str) -> str:
  require_text(config.data)
  if not which.strip():
    raise InputError("the sentences to read have an empty name: set config.data.train to a file")
  return which
