"""The loss on held-out text, for every task."""

import dataclasses
import functools
import operator
from collections.abc import Mapping

import jax

from transformer_jax.config import Config
from transformer_jax.data.batches import in_order
from transformer_jax.data.corpus import without_temperature
from transformer_jax.data.tokenizer import Tokenizer
from transformer_jax.model.params import Params
from transformer_jax.runtime import devices, hosts
from transformer_jax.runtime.progress import say
from transformer_jax.training.sums import Sums, means
from transformer_jax.training.task import Task


class Evaluator:
  """The packed rows of a text, and the compiled function that computes their loss.

  Args:
    config: the run's configuration.
    task: the run's task.
    which: the text, named like `config.data.validation`.
    tokenizer: the run's tokenizer.
  """

  def __init__(self, config: Config, task: Task, which: str, tokenizer: Tokenizer):
    from transformer_jax.training.step import eval_step  # imports optax, which translating does not need

    data = without_temperature(config.data)
    self._packed = task.packed_rows(dataclasses.replace(config, data=data), which, tokenizer)
    if missing := self._packed.report.missing():
      say("\n  ".join([f"the loss is that of {self._packed.report.examples} of", which, *missing]))
    most = config.train.batch_tokens // config.data.row_length // config.train.accumulation
    rows = min(most, len(self._packed.rows))
    size = -(-max(rows, 1) // devices.device_count())
    self._size = size * devices.device_count()
    self._step = devices.over_devices(functools.partial(eval_step, config, task), out_axes=None)

  def means(self, params: Params) -> dict[str, float]:
    """The loss, perplexity and accuracy of the whole text, as in `sums.means`."""
    total = None
    for batch in in_order(self._packed, self._size):
      sums: Sums = jax.device_get(self._step(params, devices.shard(jax.tree.map(hosts.share, batch))))
      total = sums if total is None else jax.tree.map(operator.add, total, sums)
    assert total is not None
    return means(total)


class LossValidation:
  """The loss on the validation and the test text: the `Validation` of tasks that generate no text.

  Attributes:
    shown: as in `training.task.Validation`.
  """

  shown: Mapping[str, str] = {"accuracy": "accuracy {:.1%}"}
  samples = ""

  def __init__(self, config: Config, task: Task, tokenizer: Tokenizer):
    # A text that cannot be read must be reported now, not after the training.
    self._test = Evaluator(config, task, config.data.test, tokenizer) if config.data.test else None
    if config.data.validation:
      self._validation = Evaluator(config, task, config.data.validation, tokenizer)

  def measure(self, params: Params) -> dict[str, float]:
    """The loss, perplexity and accuracy of the whole validation text."""
    return self._validation.means(params)

  def test(self, params: Params) -> str:
    """The loss, perplexity and accuracy of the whole test text, in words."""
    assert self._test
    line = self._test.means(params)
    # A perplexity may be very large: that of a run that diverged has hundreds of digits.
    return ", ".join(f"{name} {value:{'.4g' if 'perplexity' in name else '.4f'}}" for name, value in line.items())
