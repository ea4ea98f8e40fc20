"""The interface of a training task: `Task`, an argument of the training and validation steps.

Tasks that predict tokens are trained by teacher forcing: each token is predicted from the reference before it, and
never from the model's own tokens. `chosen_rows` can depart from this.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

import jax
import numpy as np

from transformer_jax import registry
from transformer_jax.config import Config
from transformer_jax.data.row_cache import PackedRows
from transformer_jax.data.tokenizer import Tokenizer
from transformer_jax.model.config import AnyModelConfig
from transformer_jax.model.params import Params
from transformer_jax.runtime.values import JsonObject
from transformer_jax.training.sums import Sums


class Validation(Protocol):
  """The measurements of a run on held-out text, during training and at the end.

  Attributes:
    shown: the scores that the log shows beside loss and perplexity: name -> format, such as `BLEU {:.2f}`.
    samples: some examples of the last measurement, for a person to look at; may be empty.
  """

  shown: Mapping[str, str]
  samples: str

  def measure(self, params: Params) -> JsonObject:
    """The scores on the validation text by name, as JSON values; `loss` and `perplexity` are always there.

    `samples` may have some translations, as `TranslationValidation` gives them.
    """
    ...

  def test(self, params: Params) -> str:
    """The scores on the test text, in words."""
    ...


@dataclass(frozen=True)
class Task:
  """The functions of one kind of training.

  `dataclasses.replace(task, batch_sums=...)` is the same task with another loss.

  Attributes:
    unit: the unit that the loss is a mean over, in the plural.
    parts: the number of arrays of a packed row `[parts, row_length]`.
    predictions: how many tokens of the vocabulary are predicted at each position, at most.
    init_params: (config, key) -> random parameters.
    batch_sums: (config, params, rows, keys) -> the `Sums` of the losses of packed rows `[rows, parts, row_length]`;
      `keys` has a dropout key for each row, or is None for no dropout.
    learn_tokenizer: (config) -> the vocabulary of the training text.
    packed_rows: (config, text, tokenizer) -> the `PackedRows` of a text, which is named like `config.data.train`.
    validation: (config, task, tokenizer) -> the `Validation`, which measures on held-out text.
    counts: (config, rows) -> the number of terms of each loss, before the losses are computed; empty if there is one
      loss. See `sums.joint_loss`.
    chosen_rows: (config, params, rows, keys, step) -> the rows that `batch_sums` gets in an update. The default, which
      is teacher forcing, is the rows themselves. No gradient goes through it.
    schedules: (config, number of updates before this one) -> what changes by a schedule of the task, by its name in the
      log; the learning rate is there always.
    packing_ahead: (config, tokenizer) -> a function that packs a part of the training text during the run, see
      `data/packed_ahead.py`; None if the task always packs all of it before.
  """

  unit: str
  parts: int
  init_params: Callable[[Config, jax.Array], Params]
  batch_sums: Callable[[Config, Params, jax.Array, jax.Array | None], Sums]
  learn_tokenizer: Callable[[Config], Tokenizer]
  packed_rows: Callable[[Config, str, Tokenizer], PackedRows]
  validation: "Callable[[Config, Task, Tokenizer], Validation]"
  counts: Callable[[Config, jax.Array], dict[str, jax.Array]] = lambda config, rows: {}
  chosen_rows: Callable[[Config, Params, jax.Array, jax.Array, jax.Array], jax.Array] = (
    lambda config, params, rows, keys, step: rows
  )
  schedules: Callable[[Config, int], dict[str, float]] = lambda config, step: {}
  predictions: int = 1
  packing_ahead: Callable[[Config, Tokenizer], Callable[[int], Iterable[np.ndarray]]] | None = None


def task_of(model: AnyModelConfig) -> Task:
  """The task of a model's family.

  Raises:
    InputError: the family's task is no `Task`.
  """
  return registry.task(model, Task)
