"""What training reports: `metrics.jsonl`, TensorBoard, and the sums between two logs."""

import json
import math
import time
from typing import Any

import jax
from etils import epath

from transformer_jax import parallel
from transformer_jax.checkpoint import write_atomically
from transformer_jax.training.loss import Sums

FILE = "metrics.jsonl"


def means(sums: Sums) -> dict[str, float]:
  """Loss in nats a token, perplexity (unsmoothed, a token), and the share of tokens guessed right."""
  tokens = max(float(sums.tokens), 1.0)
  negative_log_likelihood = float(sums.negative_log_likelihood) / tokens
  return {
    "loss": float(sums.loss) / tokens,
    "perplexity": math.exp(min(negative_log_likelihood, 700.0)),
    "accuracy": float(sums.correct) / tokens,
  }


def _last(pending: list[dict[str, Any]], skipped: list[bool]) -> float:
  """The norm of the gradients that last changed the parameters."""
  return [float(metrics["gradient_norm"]) for metrics, none in zip(pending, skipped, strict=True) if not none][-1]


class MetricsLog:
  """Appends lines to `metrics.jsonl` and points to TensorBoard's curves.

  A run that resumes at a step forgets the lines after it, which will be written
  again.

  Args:
    workdir: the run folder.
    step: the step that the run goes on from.

  Attributes:
    skipped_in_a_row: updates up to the last flush that changed nothing, as their loss or gradients were no numbers.
  """

  def __init__(self, workdir: epath.Path, step: int):
    self._path = workdir / FILE
    self._pending: list[dict[str, Any]] = []
    self.skipped_in_a_row = 0
    self._since = time.perf_counter()
    self._writer = None
    if not parallel.is_main_host():
      return
    if self._path.exists():
      whole = self._path.read_text().split("\n")[:-1]  # what is behind the last line feed was cut short by a kill
      kept = [line for line in whole if json.loads(line)["step"] <= step]
      write_atomically(self._path, "".join(line + "\n" for line in kept))
    from tensorboardX import SummaryWriter

    self._writer = SummaryWriter(str(workdir / "tensorboard"), purge_step=step + 1)

  def add(self, metrics: dict[str, Any]) -> None:
    """Remembers an update's metrics, on the device; nothing is waited for."""
    self._pending.append(metrics)

  def wait(self, in_flight: int) -> None:
    """Until no more than the last `in_flight` updates are unfinished."""
    if len(self._pending) > in_flight:
      jax.block_until_ready(self._pending[-1 - in_flight])

  def flush(self, step: int) -> dict[str, float]:
    """Writes one line for all updates since the last one and returns it; waits for them.

    Means are of the updates that were not skipped, and left out where all were.
    """
    pending = jax.device_get(self._pending)
    total = jax.tree.map(lambda *values: sum(map(float, values)), *[metrics["sums"] for metrics in pending])
    seconds = time.perf_counter() - self._since
    skipped = [bool(metrics["skipped"]) for metrics in pending]
    for one in skipped:
      self.skipped_in_a_row = self.skipped_in_a_row + 1 if one else 0
    line = {
      **({} if all(skipped) else means(total) | {"gradient_norm": _last(pending, skipped)}),
      "learning_rate": float(pending[-1]["learning_rate"]),
      "updates": len(pending),
      "skipped": sum(skipped),
      "target_tokens": total.tokens,
      "seconds": seconds,
      "tokens_per_second": total.tokens / seconds,
    }
    self._pending = []
    self._since = time.perf_counter()
    self.write(step, "train", line)
    return line

  def write(self, step: int, split: str, line: dict[str, Any]) -> None:
    """Appends `line` under the name of its data."""
    if self._writer is None:
      return
    with self._path.open("a") as file:
      file.write(json.dumps({"step": step, "split": split, **line}) + "\n")
    for name, value in line.items():
      if isinstance(value, int | float):
        self._writer.add_scalar(f"{split}/{name}", value, step)

  def pause(self) -> None:
    """Leaves out of the rate what was done since the last line that was not training."""
    self._since = time.perf_counter()

  def close(self) -> None:
    if self._writer is not None:
      self._writer.close()
