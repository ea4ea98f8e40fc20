"""The operations of one training step that take longest, from JAX's profiler."""

import collections
import functools

import jax
import part
import sizes
import training
import where_time_goes

from transformer_jax.model.config import ModelConfig

MOST, PASSES = 25, 3


def measure(model: ModelConfig, row_length: int, tokens: int) -> part.Rows:
  """A row for each of the longest operations, and one for the rest."""
  step = training.prepare(sizes.config(model, row_length, tokens))
  state = step.state

  def run() -> None:
    nonlocal state
    state, _ = step.compiled(state, step.batch)
    jax.block_until_ready(state)

  parts = where_time_goes.parts_of(step.compiled.as_text())
  seconds: collections.Counter[str] = collections.Counter()
  for name, duration in where_time_goes.traced(run, PASSES):
    seconds[name] += duration / PASSES
  total = sum(seconds.values())
  longest = [(name, parts.get(name, ""), found) for name, found in seconds.most_common(MOST)]
  rest = total - sum(found for *_, found in longest)
  return [
    {"operation": name, "part": of, "ms": 1e3 * found, "share, %": 100 * found / total}
    for name, of, found in [*longest, (f"{max(0, len(seconds) - MOST)} others", "", rest)]
  ]


def cases(tiny: bool) -> dict[str, part.Case]:
  size = (32, 128) if tiny else (128, 25_088)
  return {name: functools.partial(measure, model, *size) for name, model in sizes.models(tiny).items()}


if __name__ == "__main__":
  part.run(cases)
