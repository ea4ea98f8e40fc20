"""What an experiment requires, before anything runs: parameters, memory and floating-point operations.

All of it follows from shapes; nothing runs on a device. `jax.eval_shape` gives the shapes of the parameters. Tracing
the step gives the arrays that its backward pass needs.
"""

import collections
import dataclasses
import functools
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import jax
import numpy as np

from transformer_jax import registry
from transformer_jax.analysis import operations
from transformer_jax.analysis.activations import kept_bytes
from transformer_jax.config import Config, DataConfig, Decay, DecodeConfig, TrainConfig
from transformer_jax.data.tokenizer import row_type
from transformer_jax.model.config import AnyModelConfig, ModelConfig, Remat
from transformer_jax.model.params import Params, by_name
from transformer_jax.runtime.devices import on_cpu
from transformer_jax.runtime.values import PyTree
from transformer_jax.training.chunked_loss import ON_ACCELERATORS, largest_chunk
from transformer_jax.training.initialization import abstract_params, random_key
from transformer_jax.training.optimizer import optimizer
from transformer_jax.training.sums import joint_loss
from transformer_jax.training.task import task_of

_FLOAT32 = 4  # bytes
_UNDOES_REMAT = "cse_barrier_expander"  # the pass of XLA:CPU that joins what is computed again with its first result
# Times the parameters: the gradients and what XLA holds beside them in Adam's update, and what the moving average adds;
# measured on a CPU.
_UPDATE, _AVERAGE = 3.15, 0.8
_TWO_PASSES = 17 / 16  # XLA keeps somewhat more than twice the arrays of one pass; measured on a CPU

_Result = TypeVar("_Result")


def _cached(function: Callable[..., _Result]) -> Callable[..., _Result]:
  """`functools.cache` by the model's module, too: a notebook may define it again, under the same name."""

  @functools.cache
  def of_module(module: type, *arguments: Any) -> _Result:
    return function(*arguments)

  @functools.wraps(function)
  def cached(model: AnyModelConfig, *arguments: Any) -> _Result:
    return of_module(type(registry.module(model)), model, *arguments)

  return cached


@dataclass(frozen=True)
class Memory:
  """Bytes on one device.

  Attributes:
    parameters: the float32 parameters, and their moving average if the run has one.
    optimizer: Adam's two moments.
    gradients: one sum of gradients, or two if a batch is computed in several micro-batches.
    activations: the results of the forward pass of one micro-batch that its backward pass needs.
    working: the largest temporary arrays, by the compiler's own figures. They are the logits of one chunk of tokens
      and arrays of this size on the way to their gradient: three more on a CPU, one more on an accelerator. With
      `model.remat` there is also what the backward pass computes again at a time: on a CPU their sum counts, on an
      accelerator the larger one. On a CPU it is at least what Adam's update needs, when the activations are free again.
  """

  parameters: int
  optimizer: int
  gradients: int
  activations: int
  working: int

  @property
  def total(self) -> int:
    return sum(dataclasses.astuple(self))


@dataclass(frozen=True)
class Flops:
  """Floating-point operations of an update; a multiplication and an addition are two.

  Attributes:
    step: the operations of all matmuls, padding included.
    six_n_d: the usual estimate 6 N D, with N parameters and D target tokens of a full batch, twice with R-Drop.
  """

  step: int
  six_n_d: int


def parameters(config: Config) -> dict[str, int]:
  """The number of parameters of each part of the model; the last entry is "total"."""
  parts: collections.Counter[str] = collections.Counter()
  for name, leaf in by_name(parameter_shapes(config.model)).items():
    parts[_part(name.split("/"))] += leaf.size
  in_order = sorted(parts, key=lambda part: (":" in part, part.startswith("decoder"), part))
  return {**{part: parts[part] for part in in_order}, "total": sum(parts.values())}


def _part(path: list[str]) -> str:
  """The part of the model that a parameter belongs to."""
  path = [name for name in path if name != "trunk"]  # BERT's models share it
  side, *inner = path[:-1] or path
  inner = [re.sub(r"_\d+$", "", name) for name in inner if not name.startswith("layers_")]
  if side not in ("encoder", "decoder") or not inner:
    return {
      "target_embedding": "embeddings",
      "embedding": "embeddings",
      "own_source_embedding": "source embeddings",
    }.get(side, side.replace("own_", "").replace("_", " "))
  module = inner[0]
  kind = "layer normalisation" if module == "norm" or module.endswith("sublayer") else module.replace("_", "-")
  return f"{side}: {kind}"


def memory(config: Config, devices: int = 1) -> Memory:
  """The memory that a training step needs on each of `devices`, which are those here or those of `traced_for`.

  It is an upper bound. On a CPU it is a few percent above what the compiler allocates for the paper's models, up to ten
  for recurrent ones and up to forty for BERT and GPT. On a GPU it is a few to twenty percent above
  ([tables](docs/results/speed/README.md#memory)).
  """
  config = _without_vain_remat(config)
  fixed, a_row = _kept_for_backward(config.model, config.data.row_length, on_cpu())
  rows = rows_at_a_time(config, devices) * config.train.passes
  # The most tokens of a chunk, so that fewer rows never need more memory.
  chunk = min(largest_chunk(), rows * config.data.row_length * task_of(config.model).predictions)
  logits, recomputed = chunk * config.model.vocab_size * _FLOAT32, _recomputed_for_a_row(config) * rows
  # An accelerator has freed the logits before it computes anything again.
  working = 4 * logits + recomputed if on_cpu() else max(2 * logits, recomputed)
  activations = fixed + round(a_row * rows * (_TWO_PASSES if config.train.passes == 2 else 1))
  least = state(config)
  return dataclasses.replace(least, activations=activations, working=max(working, least.working - activations))


def _without_vain_remat(config: Config) -> Config:
  """The config without `model.remat` on a CPU, where XLA keeps all the same, unless XLA_FLAGS disable its pass."""
  prevented = re.search(rf"--xla_disable_hlo_passes=\S*{_UNDOES_REMAT}", os.environ.get("XLA_FLAGS", ""))
  if not isinstance(config.model, ModelConfig) or not on_cpu() or prevented:
    return config
  return dataclasses.replace(config, model=dataclasses.replace(config.model, remat=Remat.NONE))


def _recomputed_for_a_row(config: Config) -> int:
  """The bytes that the backward pass computes again at a time for a row: one layer, or the weights of one attention."""
  model = config.model
  if not isinstance(model, ModelConfig) or model.remat is Remat.NONE:
    return 0

  def a_row(remat: Remat) -> int:
    of_one_layer = dataclasses.replace(model, num_layers=1, encoder_layers=None, decoder_layers=None, remat=remat)
    return _kept_for_backward(of_one_layer, config.data.row_length, on_cpu())[1]

  # One layer of the encoder and one of the decoder have three attentions, of which the decoder's layer has two.
  share = {Remat.LAYER: 2 / 3, Remat.ATTENTION: 1 / 3}[model.remat]
  return round(share * (a_row(Remat.NONE) - a_row(model.remat)))


def state(config: Config) -> Memory:
  """The memory that a step needs without any rows."""
  params = parameter_shapes(config.model)
  size = bytes_of(params)
  gradients = size * (1 if config.train.accumulation == 1 else 2)
  return Memory(
    parameters=size * (2 if config.train.ema_decay else 1),
    optimizer=bytes_of(jax.eval_shape(optimizer(config).init, params)),
    gradients=gradients,
    activations=0,
    working=round((_UPDATE + _AVERAGE * bool(config.train.ema_decay)) * size) - gradients if on_cpu() else 0,
  )


def rows_at_a_time(config: Config, devices: int) -> int:
  """Rows of one device in one micro-batch; empty rows are added if the division leaves a remainder."""
  return -(-(config.train.batch_tokens // config.data.row_length) // (devices * config.train.accumulation))


def computed_rows(config: Config, devices: int) -> int:
  """Rows of a batch on all devices, with the empty ones that are added."""
  return rows_at_a_time(config, devices) * devices * config.train.accumulation


@_cached
def _kept_for_backward(model: AnyModelConfig, row_length: int, cpu: bool) -> tuple[int, int]:
  """The bytes that the backward pass needs of the forward pass: a fixed number, and a number for each row.

  `cpu` must be `on_cpu()`; it is an argument so that the cache tells platforms apart.
  """
  config = _for_shapes(model, row_length)
  some = ON_ACCELERATORS  # this number of rows fills the chunks of the loss on any device, however long the rows are
  one, two = (_kept(config, rows, cpu) for rows in (some, 2 * some))
  return 2 * one - two, (two - one) // some - (0 if cpu else _weights_of_a_row(model, row_length))


def _weights_of_a_row(model: AnyModelConfig, row_length: int) -> int:
  """The bytes of a row's attention weights that cuDNN does not keep: float32 before, and in the model's type after."""
  if not isinstance(model, ModelConfig) or not model.needs_cudnn or model.remat is not Remat.NONE:
    return 0
  attentions = model.encoder_depth + 2 * model.decoder_depth
  width = _FLOAT32 + np.dtype(model.dtype.value).itemsize
  return attentions * model.num_heads * row_length**2 * width


def _kept(config: Config, rows: int, cpu: bool) -> int:
  """The bytes that the backward pass of the loss needs for this number of rows, without the parameters."""
  task = task_of(config.model)
  batch = jax.ShapeDtypeStruct((rows, task.parts, config.data.row_length), row_type(config.model.vocab_sizes))
  keys = jax.eval_shape(lambda: jax.random.split(random_key(config), rows))

  def backward_of(params: Params, rows: jax.Array, keys: jax.Array) -> PyTree:
    return jax.vjp(lambda params: task.batch_sums(config, params, rows, keys).loss, params)[1]

  return kept_bytes(jax.make_jaxpr(backward_of)(parameter_shapes(config.model), batch, keys).jaxpr, cpu=cpu)


def flops(config: Config, devices: int = 1) -> Flops:
  """The operations of all matmuls of an update, forward and backward, for all positions of all computed rows."""
  length, train = config.data.row_length, config.train
  rows, given = computed_rows(config, devices), train.batch_tokens // length
  step = rows * train.passes * _operations_of_a_row(config.model, length)
  if train.scheduled_sampling is not Decay.NONE:
    step += rows * _operations_of_chosen_inputs(config.model, length, train.scheduled_sampling)
  return Flops(step=step, six_n_d=6 * parameters(config)["total"] * given * train.passes * length)


@_cached
def _operations_of_a_row(model: AnyModelConfig, row_length: int) -> int:
  """The operations of the gradient of one row's loss."""
  config = _for_shapes(model, row_length)
  rows = ON_ACCELERATORS  # as in `_kept_for_backward`
  task = task_of(model)
  batch = jax.ShapeDtypeStruct((rows, task.parts, row_length), row_type(model.vocab_sizes))

  def loss(params: Params, rows: jax.Array) -> jax.Array:
    return joint_loss(task.batch_sums(config, params, rows, None), task.counts(config, rows))

  return operations.matmuls(jax.make_jaxpr(jax.grad(loss))(parameter_shapes(model), batch).jaxpr) // rows


@_cached
def _operations_of_chosen_inputs(model: AnyModelConfig, row_length: int, decay: Decay) -> int:
  """The operations that scheduled sampling needs to choose one row's inputs."""
  config = _for_shapes(model, row_length)
  config = dataclasses.replace(config, train=dataclasses.replace(config.train, scheduled_sampling=decay))
  task = task_of(model)
  batch = jax.ShapeDtypeStruct((1, task.parts, row_length), row_type(model.vocab_sizes))
  keys = jax.eval_shape(lambda: jax.random.split(random_key(config), 1))
  choose = functools.partial(task.chosen_rows, config)
  step = jax.ShapeDtypeStruct((), np.int32)
  return operations.matmuls(jax.make_jaxpr(choose)(parameter_shapes(model), batch, keys, step).jaxpr)


def parameter_shapes(model: AnyModelConfig) -> Params:
  """The tree of a model's parameters, with shapes and types in the place of arrays; do not change it."""
  return abstract_params(_for_shapes(model))


def _for_shapes(model: AnyModelConfig, row_length: int = 2) -> Config:
  """A config with the fields that determine shapes, and sentences short enough for any table of positions."""
  if model.needs_cudnn:  # which this machine may lack
    model = dataclasses.replace(model, fused_attention=False)  # pyright: ignore[reportCallIssue]
  return Config(
    data=DataConfig(row_length=row_length),
    model=model,
    train=TrainConfig(batch_tokens=row_length),
    decode=DecodeConfig(max_source_length=2, extra_length=1),
  )


def bytes_of(tree: PyTree) -> int:
  """The bytes of all arrays of a tree, or of their shapes and types."""
  return sum(leaf.size * np.dtype(leaf.dtype).itemsize for leaf in jax.tree.leaves(tree))
