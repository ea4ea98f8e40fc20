"""The training text of a run: packed before it begins, or during it."""

from transformer_jax.config import Config
from transformer_jax.data import text_shards
from transformer_jax.data.packed_ahead import PackPart
from transformer_jax.data.row_cache import PackedRows
from transformer_jax.data.tokenizer import Tokenizer
from transformer_jax.runtime.errors import InputError
from transformer_jax.training.task import Task


def training_text(config: Config, task: Task, tokenizer: Tokenizer) -> tuple[PackedRows, PackPart | None]:
  """The training text's rows, or none of them yet if it is packed in shards during the run; and what packs during it.

  The second is None if all rows are packed before the run.

  Raises:
    InputError: the text or the vocabulary cannot be used.
  """
  # First, so that it knows the files as they are before they are packed: a later change is an error.
  pack = _packing_ahead(config, task, tokenizer) if config.data.packs_ahead else None
  if config.data.shard_pairs:
    return text_shards.not_packed_yet(config.data, tokenizer), pack
  return task.packed_rows(config, config.data.train, tokenizer), pack


def _packing_ahead(config: Config, task: Task, tokenizer: Tokenizer) -> PackPart:
  """The function that packs a part of the training text during the run.

  Raises:
    InputError: the task has none, or the vocabulary cannot be used.
  """
  if task.packing_ahead is None:
    raise InputError(
      "this model's task packs its text before it begins: leave out config.data.bpe_dropout, unigram_alpha and "
      "shard_pairs"
    )
  return task.packing_ahead(config, tokenizer)
