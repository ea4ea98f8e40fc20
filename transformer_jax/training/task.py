"""What a model is trained for: a `Task`, which the training and validation steps are given."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import jax

from transformer_jax import registry
from transformer_jax.config import Config
from transformer_jax.data.row_cache import PackedRows
from transformer_jax.data.tokenizer import Tokenizer
from transformer_jax.model.config import AnyModelConfig
from transformer_jax.model.params import Params
from transformer_jax.training.sums import Sums


class Validation(Protocol):
  """What a run is measured by, while it is trained and at the end.

  Attributes:
    shown: what the log shows of a measurement beside loss and perplexity: by its name there, a format such as
      `BLEU {:.2f}`.
    samples: some of what was last measured, for a person to look at; may be empty.
  """

  shown: Mapping[str, str]
  samples: str

  def measure(self, params: Params) -> dict[str, float | str]:
    """Measures on the validation text; `loss` and `perplexity` are always there."""
    ...

  def test(self, params: Params) -> str:
    """Measures on the test text, in words."""
    ...


def _one_loss(config: Config, rows: jax.Array) -> dict[str, jax.Array]:
  """The counts of a task that has no loss but one."""
  return {}


@dataclass(frozen=True)
class Task:
  """The functions that tell one kind of training from another.

  `dataclasses.replace(task, batch_sums=...)` is the same task with another loss.

  Attributes:
    unit: what the loss is a mean over, in the plural.
    parts: arrays of a packed row, `[parts, row_length]`.
    init_params: (config, key) -> random parameters.
    batch_sums: (config, params, rows, keys) -> the `Sums` of the losses of packed rows `[rows, parts, row_length]`;
      `keys` has a dropout key for each row, or is None, which is without dropout.
    learn_tokenizer: (config) -> the vocabulary of its training text.
    packed_rows: (config, text, tokenizer) -> the `PackedRows` of a text, named as `config.data.train` names one.
    validation: (config, task, tokenizer) -> what measures on held-out text.
    counts: (config, rows) -> how many terms each loss has, before it is computed; empty where there is one loss.
      See `sums.joint_loss`.
  """

  unit: str
  parts: int
  init_params: Callable[[Config, jax.Array], Params]
  batch_sums: Callable[[Config, Params, jax.Array, jax.Array | None], Sums]
  learn_tokenizer: Callable[[Config], Tokenizer]
  packed_rows: Callable[[Config, str, Tokenizer], PackedRows]
  validation: "Callable[[Config, Task, Tokenizer], Validation]"
  counts: Callable[[Config, jax.Array], dict[str, jax.Array]] = _one_loss


def task_of(model: AnyModelConfig) -> Task:
  """The task of a model's family.

  Raises:
    TypeError: the family names something that is no `Task`.
  """
  found = registry.task(model)
  if not isinstance(found, Task):
    raise TypeError(f"the task of the model family {registry.name_of(model)!r} is {found!r}, but must be a Task")
  return found
