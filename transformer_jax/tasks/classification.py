"""The task of classifying sentences (Devlin et al. 2019, §4.1), from lines `LABEL<TAB>SENTENCE`.

A row is [CLS] sentence [SEP] in the three arrays of `data.next_sentence`: tokens, token types (1, or 0 for padding),
and the number of the class.
"""

import functools
from collections.abc import Iterator

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from transformer_jax import registry
from transformer_jax.config import Config
from transformer_jax.data import fingerprint, tokenizers
from transformer_jax.data.documents import require_text_files
from transformer_jax.data.encoding import in_batches
from transformer_jax.data.next_sentence import LABEL, PARTS, TOKEN_TYPES, TOKENS
from transformer_jax.data.packing_report import PackingReport
from transformer_jax.data.row_cache import PackedRows, cached_rows
from transformer_jax.data.sentencepiece_tokenizer import SentencePieceTokenizer
from transformer_jax.data.text import digest, existing, lines_of, require_no_pipe
from transformer_jax.data.tokenizer import Tokenizer
from transformer_jax.language.config import BERTClassifierConfig
from transformer_jax.model import masking
from transformer_jax.model.params import Params
from transformer_jax.model.special_tokens import CLS, SEP
from transformer_jax.runtime.errors import InputError
from transformer_jax.tasks.causal import init_params
from transformer_jax.tasks.evaluator import LossValidation
from transformer_jax.tasks.token_prediction import apply, over_rows
from transformer_jax.training.loss import token_sums
from transformer_jax.training.sums import Sums
from transformer_jax.training.task import Task

_FORMAT = "classes 1"  # the version of the cached rows; it changes when their meaning does


def labelled(path: str, classes: list[str]) -> Iterator[tuple[int, str]]:
  """The class' number and the sentence of each line of a file.

  Raises:
    InputError: a line has no tab or a label that is not in `classes`.
  """
  numbers = {name: number for number, name in enumerate(classes)}
  for number, line in enumerate(lines_of(path), 1):
    label, tab, sentence = line.partition("\t")
    if not tab:
      raise InputError(f"{path}, line {number}: no tab; each line must be LABEL<TAB>SENTENCE")
    if label not in numbers:
      raise InputError(
        f"{path}, line {number}: the label {label!r} is not one of config.model.labels = {','.join(classes)}: "
        "name all labels of all files there"
      )
    yield numbers[label], sentence


def learn_tokenizer(config: Config) -> Tokenizer:
  """The vocabulary of the training sentences, or the one that `config.data.tokenizer` names."""
  if config.data.tokenizer:
    return tokenizers.chosen(config.data.tokenizer, config.model.vocab_size)
  sentences = (sentence for _, sentence in labelled(_file(config, config.data.train), classes_of(config)))
  return SentencePieceTokenizer.learn(sentences, config.model.vocab_size, kind=config.data.pieces.value)


def packed_rows(config: Config, which: str, tokenizer: Tokenizer) -> PackedRows:
  """The sentences of the file `which`, one per row; the first call packs them, later calls read them from the cache.

  Raises:
    InputError: the file has no sentences or a malformed line, or the cache cannot be written.
  """
  data, classes, path = config.data, classes_of(config), _file(config, which)
  dtype = tokenizer.row_type
  shortened = "sentences longer than their row, of which it holds only the beginning"

  def content() -> str:
    return fingerprint.of_values(_FORMAT, digest(path), classes, tokenizer.fingerprint(), data.row_length)

  def pack(report: PackingReport) -> Iterator[np.ndarray]:
    for examples in in_batches(labelled(path, classes), lambda example: len(example[1])):
      rows, cut = sentence_rows(tokenizer, [sentence for _, sentence in examples], data.row_length)
      report.rows += len(rows)
      report.tokens += int(np.sum(rows[:, TOKEN_TYPES] > 0))
      report.left_out[shortened] = report.left_out.get(shortened, 0) + sum(cut)
      rows[:, LABEL] = np.array([label for label, _ in examples])[:, None]
      yield rows.astype(dtype)
    if not report.rows:
      raise InputError(f"{path} is empty: expected lines LABEL<TAB>SENTENCE")
    report.found["sentences"] = report.rows

  return cached_rows(data, content, pack, (PARTS, data.row_length), dtype)


def sentence_rows(tokenizer: Tokenizer, sentences: list[str], row_length: int) -> tuple[np.ndarray, list[bool]]:
  """Rows `[sentences, 3, row_length]` without labels, and whether each holds only the beginning of its sentence."""
  rows = np.zeros((len(sentences), PARTS, row_length), np.int64)
  encoded = tokenizer.encode_batch(sentences)
  for row, tokens in zip(rows, encoded, strict=True):
    whole = [CLS, *tokens[: row_length - 2], SEP]
    row[TOKENS, : len(whole)] = whole
    row[TOKEN_TYPES, : len(whole)] = 1
  return rows, [len(tokens) > row_length - 2 for tokens in encoded]


def logits(model: nn.Module, params: Params, row: jax.Array, key: jax.Array | None) -> jax.Array:
  """The logits `[classes]` of a row; without a key there is no dropout."""
  row = row.astype(jnp.int32)
  valid = row[TOKEN_TYPES] > 0
  return apply(model, params, key, row[TOKENS], jnp.zeros_like(row[TOKEN_TYPES]), masking.padding_mask(valid, valid))


def batch_sums(config: Config, params: Params, rows: jax.Array, keys: jax.Array | None) -> Sums:
  """The loss and counts of rows `[rows, 3, row_length]`, with one term per sentence."""
  found = over_rows(functools.partial(logits, registry.module(config.model), params), rows, keys)
  real = jnp.any(rows[:, TOKEN_TYPES] > 0, axis=1)
  return token_sums(found, rows[:, LABEL, 0].astype(jnp.int32), real, config.train.label_smoothing)


def classes_of(config: Config) -> list[str]:
  """The labels of a model that classifies; raises InputError if its family has none."""
  if not isinstance(config.model, BERTClassifierConfig):  # of another package, which names this task
    raise InputError(f"a model that classifies needs a {BERTClassifierConfig.__name__}, or a class derived from it")
  return config.model.classes


def _file(config: Config, which: str) -> str:
  require_text_files(config.data)
  if not which.strip():
    raise InputError("the sentences to read have an empty name: set config.data.train to a file")
  if ";" in which:
    raise InputError(f"the sentences to read are {which!r}, but a classifier reads one file: write them to one")
  require_no_pipe([existing(which.strip())])
  return which.strip()


TASK = Task(
  unit="sentences",
  parts=PARTS,
  init_params=init_params,
  batch_sums=batch_sums,
  learn_tokenizer=learn_tokenizer,
  packed_rows=packed_rows,
  validation=LossValidation,
  predictions=0,
)
