"""How the checks run the code: random parameters, compiled functions, the logits of a row."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from transformer_jax.analysis import requirements
from transformer_jax.model import masking
from transformer_jax.model.config import ModelConfig
from transformer_jax.model.dropout import Dropout
from transformer_jax.model.params import Params
from transformer_jax.model.special_tokens import PAD
from transformer_jax.model.transformer import Transformer
from transformer_jax.paper.tiny import SOURCE, TARGET, changed, row
from transformer_jax.runtime.values import PyTree
from transformer_jax.tasks import translation


def normal(seed: int, *shape: int) -> np.ndarray:
  return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def random_like(shapes: Params) -> Params:
  """Random parameters of these shapes. At the start biases are 0 and scales 1, which would hide mistakes."""
  generator = np.random.default_rng(0)
  return jax.tree.map(lambda leaf: 0.3 * generator.standard_normal(leaf.shape).astype(np.float32), shapes)


def random_params(config: ModelConfig) -> PyTree:
  """Random parameters of the whole model."""
  return random_like(requirements.parameter_shapes(config))


def parameters(module: nn.Module, *inputs: PyTree, **options: PyTree) -> PyTree:
  """Random parameters of a module."""
  return random_like(jax.eval_shape(lambda: module.init(jax.random.key(0), *inputs, **options))["params"])


def float64(tree: PyTree) -> PyTree:
  return jax.tree.map(lambda x: np.asarray(x, np.float64), tree)


def compiled(module: nn.Module, **options: PyTree) -> Callable[..., PyTree]:
  """The function (parameters, arrays ...) -> what the module makes of them; quicker than operation by operation."""

  @jax.jit
  def of_arrays(params: Params, *inputs: jax.Array) -> PyTree:
    return module.apply({"params": params}, *inputs, **options)

  return lambda *arrays: jax.device_get(of_arrays(*arrays))


@contextmanager
def watched_dropouts() -> Iterator[list[tuple[tuple[str, ...], jax.Array, jax.Array]]]:
  """A list, which in the body gets the path of each dropout that is on, its input and its output."""
  seen: list[tuple[tuple[str, ...], jax.Array, jax.Array]] = []

  def recorder(call: PyTree, args: PyTree, kwargs: PyTree, context: nn.module.InterceptorContext) -> PyTree:
    result = call(*args, **kwargs)
    if isinstance(context.module, Dropout) and context.module.rate and not kwargs["deterministic"]:
      seen.append((context.module.path, args[0], result))
    return result

  with nn.intercept_methods(recorder):
    yield seen


def row_logits(config: ModelConfig, params: Params) -> Callable[[np.ndarray], np.ndarray]:
  """The function that makes of a row the logits from which training takes its loss, `[ROW_LENGTH, vocab]`."""
  model = Transformer(config)

  def logits(params: Params, row: jax.Array) -> PyTree:
    return model.apply({"params": params}, translation.decoder_output(model, params, row, None), method="logits")

  of_row = jax.jit(logits)
  return lambda row: np.asarray(of_row(params, row))


def changed_outputs(config: ModelConfig, side: int) -> Iterator[tuple[int, np.ndarray]]:
  """Yields each position of the input (side 0) or output (side 1), and which outputs its token changes: `[target]`."""
  logits_of = row_logits(config, random_params(config))
  pair = [SOURCE, TARGET]
  before = logits_of(row((SOURCE, TARGET)))[: len(TARGET)]
  for position in range(len(pair[side])):
    source, target = (changed(tokens, position) if i == side else tokens for i, tokens in enumerate(pair))
    yield position, differ(before, logits_of(row((source, target)))[: len(TARGET)])


def changed_memory(config: ModelConfig, padding: int) -> Iterator[tuple[int, np.ndarray]]:
  """Yields each position of a padded source, and for which positions of SOURCE its token changes the memory."""
  params, length = random_params(config), len(SOURCE) + padding
  encode, valid = compiled(Transformer(config), method="encode"), jnp.arange(length) < len(SOURCE)
  inputs = jnp.arange(length), masking.padding_mask(valid, valid)
  source = [*SOURCE, *[PAD] * padding]
  before = encode(params, jnp.array(source), *inputs)[: len(SOURCE)]
  for position in range(length):
    yield position, differ(before, encode(params, jnp.array(changed(source, position)), *inputs)[: len(SOURCE)])


def differ(one: np.ndarray, other: np.ndarray) -> np.ndarray:
  """Which rows of two arrays differ by more than rounding: `[rows]` booleans."""
  return np.max(np.abs(one - other), axis=1) > 1e-5
