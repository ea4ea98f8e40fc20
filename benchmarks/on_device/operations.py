"""The time of each part of the model in one training step, and of the longest operations, from JAX's profiler."""

import collections
import functools

import jax
import part
import training
import where_time_goes

from transformer_jax.config import Config

MOST, PASSES = 15, 3


def measure(config: Config) -> part.Rows:
  """A row for each part of the model, then one for each of the longest operations."""
  step = training.prepare(config)
  state = step.state

  def run() -> None:
    nonlocal state
    state, _ = step.compiled(state, step.batch)
    jax.block_until_ready(state)

  parts = where_time_goes.parts_of(step.compiled.as_text())
  of_operations: collections.Counter[str] = collections.Counter()
  of_parts: collections.Counter[str] = collections.Counter()
  for name, duration in where_time_goes.traced(run, PASSES):
    of_operations[name] += duration / PASSES
    of_parts[parts.get(name, "unknown")] += duration / PASSES
  total = sum(of_parts.values())
  rows = [(of, "", seconds) for of, seconds in of_parts.most_common()]
  rows += [(parts.get(name, "unknown"), name, seconds) for name, seconds in of_operations.most_common(MOST)]
  return [
    {"part": of, "operation": name, "ms": 1e3 * seconds, "share, %": 100 * seconds / total}
    for of, name, seconds in rows
  ]


def programs(tiny: bool) -> dict[str, Config]:
  """The first steps of `training`."""
  return dict(list(training.programs(tiny).items())[:2])


def cases(tiny: bool) -> dict[str, part.Case]:
  return {name: functools.partial(measure, config) for name, config in programs(tiny).items()}


if __name__ == "__main__":
  part.run(cases)
