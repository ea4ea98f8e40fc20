"""The plan of an experiment, before anything runs: parameters, memory and floating-point operations.

All of it follows from shapes; nothing runs on a device. `jax.eval_shape` gives the shapes of the parameters. Tracing
the step gives the arrays that its backward pass needs.
"""

import bisect
import collections
import dataclasses
import functools
import re
from dataclasses import dataclass

import jax
import numpy as np

from transformer_jax.analysis import operations
from transformer_jax.analysis.activations import kept_bytes
from transformer_jax.config import Config, Corpus, DataConfig, DecodeConfig, TrainConfig
from transformer_jax.data.corpus import open_corpus
from transformer_jax.data.text import TextPairs
from transformer_jax.data.tokenizer import row_type
from transformer_jax.model.config import AnyModelConfig, ModelConfig, Remat
from transformer_jax.model.params import Params
from transformer_jax.runs import init_from
from transformer_jax.runtime.devices import on_cpu, platform
from transformer_jax.runtime.errors import InputError
from transformer_jax.runtime.values import JsonObject, PyTree
from transformer_jax.training.chunked_loss import ON_ACCELERATORS, largest_chunk
from transformer_jax.training.initialization import abstract_params, random_key
from transformer_jax.training.optimizer import optimizer
from transformer_jax.training.sums import joint_loss
from transformer_jax.training.task import task_of

_FLOAT32 = 4  # bytes
_SHORTEST_ROW = 64  # holds most sentences
_PAPER_BATCH = 25_000  # source tokens and as many target tokens (§5.1)
_TWO_PASSES = 17 / 16  # XLA keeps somewhat more than twice the arrays of one pass; measured on a CPU
_OPERATIONS_PER_BYTE = 300  # of an accelerator, see `cost`


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
      accelerator the larger one.
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
  for path, leaf in jax.tree_util.tree_leaves_with_path(parameter_shapes(config.model)):
    parts[_part([key.key for key in path])] += leaf.size
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

  It is an upper bound. For the paper's models it is a few percent above what the compiler allocates on a CPU, and a few
  to twenty percent on a GPU ([table](docs/results/speed/README.md#memory)).
  """
  fixed, a_row = _kept_for_backward(config.model, config.data.row_length, config.train.label_smoothing, on_cpu())
  rows = rows_at_a_time(config, devices) * config.train.passes
  chunk = min(largest_chunk(), rows * config.data.row_length)  # at most; so fewer rows never need more memory
  logits, recomputed = chunk * config.model.vocab_size * _FLOAT32, _recomputed_for_a_row(config) * rows
  return dataclasses.replace(
    _state(config),
    activations=fixed + round(a_row * rows * (_TWO_PASSES if config.train.passes == 2 else 1)),
    # An accelerator has freed the logits before it computes anything again.
    working=4 * logits + recomputed if on_cpu() else max(2 * logits, recomputed),
  )


def _recomputed_for_a_row(config: Config) -> int:
  """The bytes that the backward pass computes again at a time for a row: one layer, or the weights of one attention."""
  model = config.model
  if not isinstance(model, ModelConfig) or model.remat is Remat.NONE:
    return 0

  def a_row(remat: Remat) -> int:
    of_one_layer = dataclasses.replace(model, num_layers=1, encoder_layers=None, decoder_layers=None, remat=remat)
    return _kept_for_backward(of_one_layer, config.data.row_length, config.train.label_smoothing, on_cpu())[1]

  # One layer of the encoder and one of the decoder have three attentions, of which the decoder's layer has two.
  share = {Remat.LAYER: 2 / 3, Remat.ATTENTION: 1 / 3}[model.remat]
  return round(share * (a_row(Remat.NONE) - a_row(model.remat)))


def _state(config: Config) -> Memory:
  """The memory that a step needs without any rows."""
  params = parameter_shapes(config.model)
  size = _bytes(params)
  return Memory(
    parameters=size * (2 if config.train.ema_decay else 1),
    optimizer=_bytes(jax.eval_shape(optimizer(config).init, params)),
    gradients=size * (1 if config.train.accumulation == 1 else 2),
    activations=0,
    working=0,
  )


def rows_at_a_time(config: Config, devices: int) -> int:
  """Rows of one device in one micro-batch; empty rows are added if the division leaves a remainder."""
  return -(-(config.train.batch_tokens // config.data.row_length) // (devices * config.train.accumulation))


@functools.cache
def _kept_for_backward(model: AnyModelConfig, row_length: int, label_smoothing: float, cpu: bool) -> tuple[int, int]:
  """The bytes that the backward pass needs of the forward pass: a fixed number, and a number for each row.

  `cpu` must be `on_cpu()`; it is an argument so that the cache tells platforms apart.
  """
  config = _for_shapes(model, row_length, label_smoothing)
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


def flops(config: Config) -> Flops:
  """The operations of all matmuls of an update, forward and backward, for all positions of a batch."""
  rows = config.train.batch_tokens // config.data.row_length * config.train.passes
  tokens = rows * config.data.row_length
  return Flops(
    step=rows * _operations_of_a_row(config.model, config.data.row_length),
    six_n_d=6 * parameters(config)["total"] * tokens,
  )


@functools.cache
def _operations_of_a_row(model: AnyModelConfig, row_length: int) -> int:
  """The operations of the gradient of one row's loss."""
  config = _for_shapes(model, row_length)
  rows = ON_ACCELERATORS  # as in `_kept_for_backward`
  task = task_of(model)
  batch = jax.ShapeDtypeStruct((rows, task.parts, row_length), row_type(model.vocab_sizes))

  def loss(params: Params, rows: jax.Array) -> jax.Array:
    return joint_loss(task.batch_sums(config, params, rows, None), task.counts(config, rows))

  return operations.matmuls(jax.make_jaxpr(jax.grad(loss))(parameter_shapes(model), batch).jaxpr) // rows


def build_report(config: Config, devices: int = 1, rate: float | None = None, budget: int | None = None) -> JsonObject:
  """The plan without the data, as JSON values.

  Args:
    config: the experiment.
    devices: the number of devices that share each batch.
    rate: the operations per second of one device, for the time.
    budget: the bytes of one device, for `fit`.
  """
  fitted = fit(config, budget, devices) if budget else None  # first, as it may fail at once
  needed, operations_needed = memory(config, devices), flops(config)
  return {
    "devices": devices,
    "platform": platform(),
    "row_length": config.data.row_length,
    "steps": config.train.steps,
    "parameters": parameters(config),
    "memory": {
      **dataclasses.asdict(needed),
      "rows_at_a_time": rows_at_a_time(config, devices),
      "total": needed.total,
    },
    "flops": {
      "step": operations_needed.step,
      "recipe": operations_needed.step * config.train.steps,
      "six_n_d": operations_needed.six_n_d,
      "six_n_d_recipe": operations_needed.six_n_d * config.train.steps,
    },
    "table_2": _row_of_table_2(config.model),
    "time": rate
    and {
      "rate": rate,
      "step": operations_needed.step / (rate * devices),
      "recipe": operations_needed.step * config.train.steps / (rate * devices),
    },
    "fit": fitted and {"budget": budget, "total": memory(fitted, devices).total, "flags": _flags(fitted)},
  }


def _row_of_table_2(model: AnyModelConfig) -> str | None:
  if not isinstance(model, ModelConfig) or model.encoder_depth != model.decoder_depth:
    return None
  sizes = (model.encoder_depth, model.d_model, model.d_ff, model.num_heads, model.head_dim_k, model.head_dim_v)
  return {(6, 512, 2048, 8, 64, 64): "base", (6, 1024, 4096, 16, 64, 64): "big"}.get(sizes)


def _flags(config: Config) -> dict[str, int | str]:
  flags: dict[str, int | str] = {
    "data.row_length": config.data.row_length,
    "train.batch_tokens": config.train.batch_tokens,
    "train.accumulation": config.train.accumulation,
  }
  return flags | ({"model.remat": config.model.remat.value} if isinstance(config.model, ModelConfig) else {})


def data(config: Config, *, accept_edits: bool = False) -> JsonObject:
  """The result of packing the training text, with the vocabulary that a run would begin with.

  `accept_edits` is as in `runs.open`, for the run in `config.train.init_from`.
  """
  if config.model.translates and config.data.corpus is Corpus.TEXT:
    corpus = open_corpus(config.data, config.data.train)
    if isinstance(corpus, TextPairs):
      corpus.require_no_pipe()
  tokenizer = init_from.tokenizer_to_begin_with(config, init_from.open_other(config, accept_edits=accept_edits))
  report = task_of(config.model).packed_rows(config, config.data.train, tokenizer).report
  rows = config.train.batch_tokens // config.data.row_length
  return {
    **dataclasses.asdict(report),
    "padding": report.padding(config.data.row_length),
    "steps_per_epoch": report.rows / rows,
    "epochs": config.train.steps * rows / report.rows,
  }


def fit(config: Config, budget: int, devices: int = 1) -> Config:
  """The config with the paper's batch of 25,000 tokens per side, in `budget` bytes on each device.

  For each kind of rematerialisation it has as few micro-batches as fit. Of these
  it takes the one with the lowest `cost`. The row length is halved only if not
  even one row at a time fits, because longer sentences are then left out.

  Raises:
    InputError: nothing fits.
  """
  row_length = config.data.row_length
  shortest = min(row_length, max(_SHORTEST_ROW, config.data.max_length))
  while row_length >= shortest and _state(config).total <= budget:
    fitted = [_with_fewest_parts(kind, budget, devices, row_length) for kind in _kinds_of_remat(config)]
    if choices := [choice for choice in fitted if choice]:
      return min(choices, key=functools.partial(cost, devices=devices))
    row_length = row_length // 4 * 2 if config.model.needs_cudnn else row_length // 2  # cuDNN needs an even length
  raise InputError(
    f"the model does not fit in {gigabytes(budget)}: parameters, gradients and optimizer alone take "
    f"{gigabytes(_state(config).total)}"
  )


def cost(config: Config, devices: int = 1) -> float:
  """The time of an update on one device in operations: those of all matmuls, and those missed for memory.

  Each micro-batch reads the parameters twice, writes their gradients, and reads
  and writes the sum of gradients. An accelerator computes about 300 operations
  in the time of a byte (an H100 has 990e12 in bfloat16 and 3.35e12 bytes a second).
  """
  parts, moved = config.train.accumulation, 5 * _bytes(parameter_shapes(config.model))
  return flops(config).step / devices + _OPERATIONS_PER_BYTE * parts * moved


def _kinds_of_remat(config: Config) -> list[Config]:
  """The config with each kind of rematerialisation, or the config alone if its model has none."""
  if not isinstance(config.model, ModelConfig):
    return [config]
  return [dataclasses.replace(config, model=dataclasses.replace(config.model, remat=remat)) for remat in Remat]


def _with_fewest_parts(config: Config, budget: int, devices: int, row_length: int) -> Config | None:
  """The paper's batch in as few micro-batches as fit in `budget` bytes; None if one row at a time does not fit."""
  rows = max(1, round(_PAPER_BATCH / row_length / devices)) * devices
  choices = [_with_batch(config, row_length, rows, parts) for parts in range(1, rows // devices + 1)]

  def fits(choice: Config) -> bool:
    return memory(choice, devices).total <= budget

  # Two micro-batches need a second sum of gradients. Beyond two, more micro-batches need less memory.
  best = 0 if fits(choices[0]) else bisect.bisect_left(choices, True, lo=1, key=fits)
  return choices[best] if best < len(choices) else None


def _with_batch(config: Config, row_length: int, rows: int, accumulation: int) -> Config:
  return dataclasses.replace(
    config,
    data=dataclasses.replace(config.data, row_length=row_length),
    train=dataclasses.replace(config.train, batch_tokens=rows * row_length, accumulation=accumulation),
  )


def in_bytes(text: str) -> int:
  """The bytes of `16GB`, `16GiB`, `512MB` or a plain number.

  Raises:
    InputError: the text is none of these, or less than a megabyte, as a number without its unit is.
  """
  match = re.fullmatch(r"([\d.]+(?:e\d+)?)\s*(?:([KMGT])(i?)B?)?", text.strip())
  try:
    number = float(match[1]) if match else 0.0
  except ValueError:
    number = 0.0
  size = number * (1024 if match[3] else 1000) ** (" KMGT".index(match[2] or " ")) if match else 0.0
  if not 10**6 <= size < 2**63:
    raise InputError(f"{text!r} is not a size of memory: write it as 16GB or 16GiB")
  return int(size)


def gigabytes(size: float) -> str:
  return f"{size / 1e9:,.2f} GB"


def parameter_shapes(model: AnyModelConfig) -> Params:
  """The tree of a model's parameters, with shapes and types in the place of arrays; do not change it."""
  return abstract_params(_for_shapes(model))


def _for_shapes(model: AnyModelConfig, row_length: int = 2, label_smoothing: float = 0.0) -> Config:
  """A config with the fields that determine shapes, and sentences short enough for any table of positions."""
  if model.needs_cudnn:  # which this machine may lack
    model = dataclasses.replace(model, fused_attention=False)  # pyright: ignore[reportCallIssue]
  return Config(
    data=DataConfig(row_length=row_length),
    model=model,
    train=TrainConfig(batch_tokens=row_length, label_smoothing=label_smoothing),
    decode=DecodeConfig(max_source_length=2, extra_length=1),
  )


def _bytes(tree: PyTree) -> int:
  return sum(leaf.size * np.dtype(leaf.dtype).itemsize for leaf in jax.tree.leaves(tree))
