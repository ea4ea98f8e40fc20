"""Tiny models of each kind whose axes all have different lengths, and a packed row."""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from transformer_jax import registry
from transformer_jax.config import Config
from transformer_jax.data.packing import SOURCE, SOURCE_SEGMENTS, TARGET, TARGET_SEGMENTS
from transformer_jax.model.config import AnyModelConfig
from transformer_jax.recurrent.config import BahdanauConfig, Cell, LuongConfig, Score, SequenceToSequenceConfig
from transformer_jax.tasks.translation import TASK
from transformer_jax.training.initialization import init_params

SIZES: dict[str, Any] = {"vocab_size": 31, "d_model": 5, "hidden_size": 7, "dropout": 0.0}
CONFIGS: dict[str, AnyModelConfig] = {
  "plain": SequenceToSequenceConfig(**SIZES, num_layers=1, reverse_source=False),
  "reversed": SequenceToSequenceConfig(**SIZES, num_layers=2),
  "gru": SequenceToSequenceConfig(**SIZES, num_layers=2, reverse_source=False, cell=Cell.GRU),
  "rnn-context": SequenceToSequenceConfig(**SIZES, num_layers=1, cell=Cell.RNN, feed_context=True),
  "lstm-context": SequenceToSequenceConfig(**SIZES, num_layers=2, reverse_source=False, feed_context=True),
  "bahdanau": BahdanauConfig(**SIZES, source_vocab_size=37, attention_size=11),
  "luong-dot": LuongConfig(**SIZES, num_layers=1, score=Score.DOT),
  "luong-general": LuongConfig(**SIZES, num_layers=2, score=Score.GENERAL, reverse_source=False),
  "luong-concat": LuongConfig(**SIZES, source_vocab_size=37, num_layers=1, score=Score.CONCAT),
  "luong-not-fed": LuongConfig(**SIZES, num_layers=1, input_feeding=False),
}
# Tokens of the sentence pairs of a row, source and target; one side is longer than the other, and there are short ones.
LENGTHS = ((5, 3), (1, 7), (4, 1))
ROW_LENGTH = 13


def example(name: str, **changes: Any) -> tuple[Any, Any]:
  """A model, and random parameters of the right shapes; to draw them as in training would take longer to compile."""
  config = dataclasses.replace(CONFIGS[name], **changes)
  return registry.module(config), _params(dataclasses.replace(config, dropout=0.0))


@functools.cache
def _params(config: AnyModelConfig) -> Any:
  generator = np.random.default_rng(0)
  shapes = jax.eval_shape(lambda: init_params(Config(model=config), TASK))
  return jax.tree.map(lambda x: jnp.asarray(0.4 * generator.standard_normal(x.shape), x.dtype), shapes)


def pairs(source_vocab_size: int = 31) -> list[tuple[np.ndarray, np.ndarray]]:
  generator = np.random.default_rng(0)
  return [
    (generator.integers(4, source_vocab_size, size=source), generator.integers(4, 31, size=target))
    for source, target in LENGTHS
  ]


def packed(pairs: list[tuple[np.ndarray, np.ndarray]], length: int = ROW_LENGTH, rest: int = 0) -> np.ndarray:
  """A row `[4, length]` with these pairs; `rest` stands in its padding."""
  row = np.full((4, length), rest)
  row[[SOURCE_SEGMENTS, TARGET_SEGMENTS]] = 0
  for side, segments in ((SOURCE, SOURCE_SEGMENTS), (TARGET, TARGET_SEGMENTS)):
    end = 0
    for number, pair in enumerate(pairs, 1):
      tokens = pair[side // 2]
      row[side, end : end + len(tokens)] = tokens
      row[segments, end : end + len(tokens)] = number
      end += len(tokens)
  return row


def leaves(tree: Any) -> dict[str, np.ndarray]:
  """Arrays by their place."""
  return {jax.tree_util.keystr(path): np.asarray(x) for path, x in jax.tree_util.tree_leaves_with_path(tree)}
