"""What an experiment will need, before anything runs: parameters, memory and floating-point operations, from shapes.

Nothing here has values or runs on a device: `jax.eval_shape` gives the parameters, and tracing the step gives what
its backward pass keeps.
"""

import bisect
import collections
import dataclasses
import functools
import re
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax.extend.core import Literal

from transformer_jax.analysis import operations
from transformer_jax.config import Config, DataConfig, DecodeConfig, TrainConfig
from transformer_jax.data import pipeline
from transformer_jax.model.config import AnyModelConfig, ModelConfig
from transformer_jax.runs import init_from
from transformer_jax.runtime.errors import InputError
from transformer_jax.training.chunked_loss import CHUNK
from transformer_jax.training.optimizer import optimizer
from transformer_jax.training.step import init_params, random_key
from transformer_jax.training.sums import joint_loss
from transformer_jax.training.task import task_of

_FLOAT32 = 4  # bytes
_SHORTEST_ROW = 64  # that holds most sentences
_PAPER_BATCH = 25_000  # source tokens and as many target tokens (§5.1)


@dataclass(frozen=True)
class Memory:
  """Bytes on one device.

  Attributes:
    parameters: float32, with their moving average where one is kept.
    optimizer: Adam's two moments.
    gradients: one sum of them, and one more where a batch is computed in several micro-batches.
    activations: what the backward pass of one micro-batch keeps of the forward pass.
    working: the largest temporary arrays: the logits of one chunk of tokens and what is made of them on the way to
      their gradient, four arrays of that size by the compiler's own figures.
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
  """Floating-point operations, a multiplication and an addition being two.

  Attributes:
    step: of the matrix products of one update, padding included.
    six_n_d: the usual estimate for an update, 6 N D: N parameters, D target tokens of a full batch.
  """

  step: int
  six_n_d: int


def parameters(config: Config) -> dict[str, int]:
  """How many parameters each part of the model has; "total" is the last."""
  parts: collections.Counter[str] = collections.Counter()
  for path, leaf in jax.tree_util.tree_leaves_with_path(_params(config.model)):
    parts[_part([key.key for key in path])] += leaf.size
  in_order = sorted(parts, key=lambda part: (":" in part, part.startswith("decoder"), part))
  return {**{part: parts[part] for part in in_order}, "total": sum(parts.values())}


def _part(path: list[str]) -> str:
  """The part of the model that a parameter belongs to."""
  path = [name for name in path if name != "trunk"]  # which several models share
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
  """What a step of training needs on each of `devices`.

  It is an upper bound that the compiler undercuts by up to 30%, as it
  computes some values again instead of keeping them.
  """
  fixed, a_row = _kept_for_backward(config.model, config.data.row_length, config.train.label_smoothing)
  return dataclasses.replace(
    _state(config),
    activations=fixed + a_row * rows_at_a_time(config, devices),
    working=4 * CHUNK * config.model.vocab_size * _FLOAT32,
  )


def _state(config: Config) -> Memory:
  """What a step needs before it has any rows."""
  params = _params(config.model)
  size = _bytes(params)
  return Memory(
    parameters=size * (2 if config.train.ema_decay else 1),
    optimizer=_bytes(jax.eval_shape(optimizer(config).init, params)),
    gradients=size * (1 if config.train.accumulation == 1 else 2),
    activations=0,
    working=0,
  )


def rows_at_a_time(config: Config, devices: int) -> int:
  """Rows of one device in one micro-batch; what does not divide is filled up with empty rows."""
  return -(-(config.train.batch_tokens // config.data.row_length) // (devices * config.train.accumulation))


@functools.cache
def _kept_for_backward(model: AnyModelConfig, row_length: int, label_smoothing: float) -> tuple[int, int]:
  """Bytes of what the gradient of the loss keeps of its forward pass: in any case, and for each row."""
  config = _for_shapes(model, row_length, label_smoothing)
  some = CHUNK  # rows: they fill the chunks of the loss, however many of a row's tokens it is of
  one, two = (_kept(config, rows) for rows in (some, 2 * some))
  return 2 * one - two, (two - one) // some


def _kept(config: Config, rows: int) -> int:
  """Bytes of the residuals of the loss of so many rows, without the parameters themselves."""
  task = task_of(config.model)
  batch = jax.ShapeDtypeStruct((rows, task.parts, config.data.row_length), pipeline.row_type(config.model.vocab_size))
  keys = jax.eval_shape(lambda: jax.random.split(random_key(config), rows))

  def backward_of(params: Any, rows: jax.Array, keys: jax.Array) -> Any:
    return jax.vjp(lambda params: task.batch_sums(config, params, rows, keys).loss, params)[1]

  jaxpr = jax.make_jaxpr(backward_of)(_params(config.model), batch, keys).jaxpr
  # An array and the same in another shape are kept once.
  shaped = {equation.outvars[0]: equation.invars[0] for equation in jaxpr.eqns if equation.primitive.name == "reshape"}

  def as_made(var: Any) -> Any:
    return as_made(shaped[var]) if var in shaped else var

  kept = {as_made(var) for var in jaxpr.outvars if not isinstance(var, Literal)} - set(jaxpr.invars)
  return sum(var.aval.size * var.aval.dtype.itemsize for var in kept)


def flops(config: Config) -> Flops:
  """Of the matrix products, forward and backward, of every position of a batch, padding included."""
  rows = config.train.batch_tokens // config.data.row_length
  tokens = rows * config.data.row_length
  return Flops(
    step=rows * _operations_of_a_row(config.model, config.data.row_length),
    six_n_d=6 * parameters(config)["total"] * tokens,
  )


@functools.cache
def _operations_of_a_row(model: AnyModelConfig, row_length: int) -> int:
  """Of the gradient of one row's loss."""
  config = _for_shapes(model, row_length)
  rows = CHUNK  # as above
  task = task_of(model)
  batch = jax.ShapeDtypeStruct((rows, task.parts, row_length), pipeline.row_type(model.vocab_size))

  def loss(params: Any, rows: jax.Array) -> jax.Array:
    return joint_loss(task.batch_sums(config, params, rows, None), task.counts(config, rows))

  return operations.products(jax.make_jaxpr(jax.grad(loss))(_params(model), batch).jaxpr) // rows


def build_report(
  config: Config, devices: int = 1, rate: float | None = None, budget: int | None = None
) -> dict[str, Any]:
  """All of the plan but the data, as JSON values.

  Args:
    config: the experiment.
    devices: that share each batch.
    rate: operations a second of one device, for the time.
    budget: bytes of one device, for `fit`.
  """
  needed, of_products = memory(config, devices), flops(config)
  fitted = fit(config, budget, devices) if budget else None
  return {
    "devices": devices,
    "row_length": config.data.row_length,
    "steps": config.train.steps,
    "parameters": parameters(config),
    "memory": {
      **dataclasses.asdict(needed),
      "rows_at_a_time": rows_at_a_time(config, devices),
      "total": needed.total,
    },
    "flops": {
      "step": of_products.step,
      "recipe": of_products.step * config.train.steps,
      "six_n_d": of_products.six_n_d,
      "six_n_d_recipe": of_products.six_n_d * config.train.steps,
    },
    "table_2": _row_of_table_2(config.model),
    "time": rate
    and {
      "rate": rate,
      "step": of_products.step / (rate * devices),
      "recipe": of_products.step * config.train.steps / (rate * devices),
    },
    "fit": fitted and {"budget": budget, "total": memory(fitted, devices).total, "flags": _flags(fitted)},
  }


def _row_of_table_2(model: AnyModelConfig) -> str | None:
  if not isinstance(model, ModelConfig):
    return None
  sizes = (model.num_layers, model.d_model, model.d_ff, model.num_heads, model.head_dim_k, model.head_dim_v)
  return {(6, 512, 2048, 8, 64, 64): "base", (6, 1024, 4096, 16, 64, 64): "big"}.get(sizes)


def _flags(config: Config) -> dict[str, int]:
  return {
    "data.row_length": config.data.row_length,
    "train.batch_tokens": config.train.batch_tokens,
    "train.accumulation": config.train.accumulation,
  }


def data(config: Config) -> dict[str, Any]:
  """What packing the training text gives, with the vocabulary with which a run would begin."""
  tokenizer = init_from.tokenizer_to_begin_with(config, init_from.open_other(config))
  report = task_of(config.model).packed_rows(config, config.data.train, tokenizer).report
  rows = config.train.batch_tokens // config.data.row_length
  return {
    **dataclasses.asdict(report),
    "padding": report.padding(config.data.row_length),
    "steps_per_epoch": report.rows / rows,
    "epochs": config.train.steps * rows / report.rows,
  }


def fit(config: Config, budget: int, devices: int = 1) -> Config:
  """The config with the paper's batch, 25,000 tokens a side, in `budget` bytes on each device.

  Of the fewest micro-batches that fit. The row length is halved only where not
  even one row at a time fits, as longer sentences are then left out.

  Raises:
    InputError: nothing fits.
  """
  row_length = config.data.row_length
  shortest = min(row_length, max(_SHORTEST_ROW, config.data.max_length))
  while row_length >= shortest and _state(config).total <= budget:
    rows = max(1, round(_PAPER_BATCH / row_length / devices)) * devices
    choices = [_with_batch(config, row_length, rows, parts) for parts in range(1, rows // devices + 1)]

    def fits(choice: Config) -> bool:
      return memory(choice, devices).total <= budget

    # Two micro-batches need a second sum of gradients; from there on more of them need less memory.
    best = 0 if fits(choices[0]) else bisect.bisect_left(choices, True, lo=1, key=fits)
    if best < len(choices):
      return choices[best]
    row_length //= 2
  raise InputError(
    f"the model does not fit in {gigabytes(budget)}: parameters, gradients and optimizer alone take "
    f"{gigabytes(_state(config).total)}"
  )


def _with_batch(config: Config, row_length: int, rows: int, accumulation: int) -> Config:
  return dataclasses.replace(
    config,
    data=dataclasses.replace(config.data, row_length=row_length),
    train=dataclasses.replace(config.train, batch_tokens=rows * row_length, accumulation=accumulation),
  )


def in_bytes(text: str) -> int:
  """`16GB`, `16GiB`, `512MB` or a plain number as bytes.

  Raises:
    InputError: it is none of these.
  """
  match = re.fullmatch(r"([\d.]+(?:e\d+)?)\s*(?:([KMGT])(i?)B?)?", text.strip())
  try:
    number = float(match[1]) if match else 0.0
  except ValueError:
    number = 0.0
  size = number * (1024 if match[3] else 1000) ** (" KMGT".index(match[2] or " ")) if match else 0.0
  if not 1 <= size < 2**63:
    raise InputError(f"{text!r} is not a size of memory: write it as 16GB or 16GiB")
  return int(size)


def gigabytes(size: float) -> str:
  return f"{size / 1e9:,.2f} GB"


@functools.cache
def _params(model: AnyModelConfig) -> Any:
  return jax.eval_shape(lambda: init_params(_for_shapes(model), task_of(model)))


def _for_shapes(model: AnyModelConfig, row_length: int = 2, label_smoothing: float = 0.0) -> Config:
  """A config of what decides about shapes, and no longer sentences than a table of positions may hold."""
  if model.needs_cudnn:  # which is perhaps not at hand; without it some more is kept
    model = dataclasses.replace(model, fused_attention=False)  # pyright: ignore[reportCallIssue]
  return Config(
    data=DataConfig(row_length=row_length),
    model=model,
    train=TrainConfig(batch_tokens=row_length, label_smoothing=label_smoothing),
    decode=DecodeConfig(max_source_length=2, extra_length=1),
  )


def _bytes(tree: Any) -> int:
  return sum(leaf.size * np.dtype(leaf.dtype).itemsize for leaf in jax.tree.leaves(tree))
