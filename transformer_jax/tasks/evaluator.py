"""Loss and counts of a held-out text, whatever the task."""

import functools

import jax

from transformer_jax import registry
from transformer_jax.config import Config
from transformer_jax.data import pipeline
from transformer_jax.data.tokenizer import Tokenizer
from transformer_jax.runtime import devices, hosts
from transformer_jax.runtime.progress import say
from transformer_jax.trainer.metrics import means
from transformer_jax.training.loss import Sums
from transformer_jax.training.step import Params, eval_step


class HeldOut:
  """A text in packed rows, and the compiled function that measures on it.

  Args:
    config: of the run.
    which: the text, as `config.data.validation` names one.
    tokenizer: of the run.
  """

  def __init__(self, config: Config, which: str, tokenizer: Tokenizer):
    packed = registry.task(config.model).packed_rows(config, which, tokenizer)
    longest, row_length = config.data.longest, config.data.row_length
    if left_out := packed.report.left_out(longest):
      say(f"the loss on {which} is of {packed.report.size}{left_out}")
    rows = min(config.train.batch_tokens // row_length // config.train.accumulation, len(packed.rows))
    size = -(-max(rows, 1) // devices.device_count())
    self._batches = pipeline.in_order(packed, size * devices.device_count())
    self._step = devices.over_devices(functools.partial(eval_step, config), out_axes=None)

  def means(self, params: Params) -> dict[str, float]:
    """What `metrics.means` says of the whole text."""
    total = None
    for batch in self._batches:
      sums: Sums = jax.device_get(self._step(params, devices.shard(jax.tree.map(hosts.share, batch))))
      total = sums if total is None else jax.tree.map(lambda a, b: a + b, total, sums)
    assert total is not None
    return means(total)
