"""The operations of one training step that take longest, from JAX's profiler."""

import collections
import functools

import jax
import part
import training
import where_time_goes

from transformer_jax.config import Config

MOST, PASSES = 25, 3


def measure(config: Config) -> part.Rows:
  """A row for each of the longest operations, and one for the rest."""
  step = training.prepare(config)
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


def programs(tiny: bool) -> dict[str, Config]:
  """The first steps of `training`."""
  return dict(list(training.programs(tiny).items())[:2])


def cases(tiny: bool) -> dict[str, part.Case]:
  return {name: functools.partial(measure, config) for name, config in programs(tiny).items()}


if __name__ == "__main__":
  part.run(cases)
