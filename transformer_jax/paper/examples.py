"""What the checks run the code on: a tiny model, random parameters, sentences."""

import dataclasses
from collections.abc import Callable

import flax.linen as nn
import jax
import numpy as np

from transformer_jax.analysis import plan
from transformer_jax.data import packing
from transformer_jax.data.tokenizer import EOS
from transformer_jax.model.config import ModelConfig
from transformer_jax.model.params import Params
from transformer_jax.model.transformer import Transformer
from transformer_jax.runtime.values import PyTree
from transformer_jax.tasks import translation

# All axes differ, so that none can stand for another.
TINY = ModelConfig(vocab_size=31, num_layers=2, d_model=22, d_ff=29, num_heads=3, d_k=5, d_v=7, dropout=0.0)
SHALLOW = dataclasses.replace(TINY, num_layers=1)
ROW_LENGTH = 19

SOURCE = [7, 11, 5, 23, 29, 13, EOS]
TARGET = [17, 9, 9, 28, 6, 21, 12, 8, EOS]


def normal(seed: int, *shape: int) -> np.ndarray:
  return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def random_like(shapes: Params) -> Params:
  """Parameters of these shapes in which nothing is 0 or 1, as it is at the start and would hide mistakes."""
  generator = np.random.default_rng(0)
  return jax.tree.map(lambda leaf: 0.3 * generator.standard_normal(leaf.shape).astype(np.float32), shapes)


def parameters(module: nn.Module, *inputs: PyTree, **options: PyTree) -> Params:
  """Random parameters of a module."""
  return random_like(jax.eval_shape(lambda: module.init(jax.random.key(0), *inputs, **options))["params"])


def shapes(config: ModelConfig) -> Params:
  """The whole model's parameters, as shapes."""
  return plan.parameter_shapes(config)


def float64(tree: PyTree) -> PyTree:
  return jax.tree.map(lambda x: np.asarray(x, np.float64), tree)


def compiled(module: nn.Module, **options: PyTree) -> Callable[..., PyTree]:
  """The function (parameters, arrays ...) -> what the module makes of them; quicker than operation by operation."""

  @jax.jit
  def of_arrays(params: Params, *inputs: jax.Array) -> PyTree:
    return module.apply({"params": params}, *inputs, **options)

  return lambda *arrays: jax.device_get(of_arrays(*arrays))


def row(*pairs: tuple[list[int], list[int]]) -> np.ndarray:
  """Sentence pairs packed into one row, as in training: `[4, ROW_LENGTH]`."""
  ((packed,),) = packing.pack(pairs, ROW_LENGTH)
  return packed


def row_logits(config: ModelConfig, params: Params) -> Callable[[np.ndarray], np.ndarray]:
  """The function that makes of a row the logits from which training takes its loss, `[ROW_LENGTH, vocab]`."""
  model = Transformer(config)

  def logits(params: Params, row: jax.Array) -> PyTree:
    return model.apply({"params": params}, translation.decoder_output(model, params, row, None), method="logits")

  of_row = jax.jit(logits)
  return lambda row: np.asarray(of_row(params, row))


def changed(tokens: list[int], position: int) -> list[int]:
  """The same sentence with another token at one position."""
  return [*tokens[:position], tokens[position] + 1, *tokens[position + 1 :]]


def differ(one: np.ndarray, other: np.ndarray) -> np.ndarray:
  """Which rows of two arrays differ by more than rounding: `[rows]` booleans."""
  return np.max(np.abs(one - other), axis=1) > 1e-5
