"""The plan of an experiment, before anything runs: what it requires, how it fits a device, and its training text."""

import dataclasses

from transformer_jax.analysis import fit, requirements
from transformer_jax.config import Config, Corpus
from transformer_jax.data.corpus import open_corpus
from transformer_jax.data.tagged import TaggedPairs
from transformer_jax.data.text import TextPairs
from transformer_jax.model.config import AnyModelConfig, ModelConfig
from transformer_jax.runs import init_from
from transformer_jax.runtime.devices import platform
from transformer_jax.runtime.progress import doing
from transformer_jax.runtime.values import JsonObject
from transformer_jax.training.task import task_of


def build_report(config: Config, devices: int = 1, rate: float | None = None, budget: int | None = None) -> JsonObject:
  """The plan without the data, as JSON values.

  Args:
    config: the experiment.
    devices: the number of devices that share each batch.
    rate: the operations per second of one device, for the time.
    budget: the bytes of one device, for `fit`.
  """
  fitted = fit.fit(config, budget, devices) if budget else None  # first, as it may fail at once
  needed, operations_needed = requirements.memory(config, devices), requirements.flops(config, devices)
  return {
    "devices": devices,
    "platform": platform(),
    "row_length": config.data.row_length,
    "steps": config.train.steps,
    "parameters": requirements.parameters(config),
    "memory": {
      **dataclasses.asdict(needed),
      "rows_at_a_time": requirements.rows_at_a_time(config, devices),
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
    "fit": fitted and {"budget": budget, "total": requirements.memory(fitted, devices).total, "flags": _flags(fitted)},
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

  An epoch of random pieces has more rows than the text: the first epoch stands for all.

  `accept_edits` is as in `runs.open`, for the run in `config.train.init_from`.
  """
  if config.model.translates and config.data.corpus is Corpus.TEXT:
    corpus = open_corpus(config.data, config.data.train)
    if isinstance(corpus, TextPairs | TaggedPairs):
      corpus.require_no_pipe()
  tokenizer = init_from.tokenizer_to_begin_with(config, init_from.open_other(config, accept_edits=accept_edits))
  task = task_of(config.model)
  report = task.packed_rows(config, config.data.train, tokenizer).report
  in_epoch, rows = report.rows, config.train.batch_tokens // config.data.row_length
  if config.data.samples_pieces and task.packing_ahead:
    with doing("packing an epoch of random pieces"):
      in_epoch = sum(map(len, task.packing_ahead(config, tokenizer)(0)))
  return {
    **dataclasses.asdict(report),
    "padding": report.padding(config.data.row_length),
    "rows_per_epoch": in_epoch,
    "steps_per_epoch": in_epoch / rows,
    "epochs": config.train.steps * rows / in_epoch,
  }
