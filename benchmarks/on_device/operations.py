"""The time of each part of the model in one training step, and of the longest operations, from JAX's profiler.

The compiled program has the module and line of each of its operations; the profiler has the time of each. Times are
summed over the threads that ran the operations, and a share is a share of this sum: several operations run at a time,
and one that is split over all cores counts once. So the shares tell what is large, not what a change would save.
"""

import collections
import functools
import gzip
import json
import re
import tempfile
from pathlib import Path
from typing import Any

import jax
import part
import training

from transformer_jax.config import Config

MOST, PASSES = 15, 3
# The first pattern that matches the name of an operation tells the part that it belongs to.
PARTS = (
  ("dropout", r"dropout|random_bits|threefry"),
  ("layer normalisation", r"/norm/"),
  ("attention over the source", r"cross_attention|memory_keys_values"),
  ("self-attention", r"self_attention|/attention"),
  ("feed-forward", r"feed_forward"),
  ("embeddings and positions", r"embedding|positions"),
  ("output layer and loss, or probabilities", r"d,vd->|closed_call|eval_jaxpr|logits|log_softmax"),
  ("choice of hypotheses", r"top_k|take_along_axis|scatter|gather"),
)


def measure(config: Config) -> part.Rows:
  """A row for each part of the model, then one for each of the longest operations."""
  step = training.prepare(config)
  state = step.state

  def run() -> None:
    nonlocal state
    state, _ = step.compiled(state, step.batch)
    jax.block_until_ready(state)

  parts = parts_of(step.compiled.as_text())
  of_operations: collections.Counter[str] = collections.Counter()
  of_parts: collections.Counter[str] = collections.Counter()
  for name, duration in traced(run, PASSES):
    of_operations[name] += duration / PASSES
    of_parts[parts.get(name, "unknown")] += duration / PASSES
  total = sum(of_parts.values())
  rows = [(of, "", seconds) for of, seconds in of_parts.most_common()]
  rows += [(parts.get(name, "unknown"), name, seconds) for name, seconds in of_operations.most_common(MOST)]
  return [
    {"part": of, "operation": name, "ms": 1e3 * seconds, "share, %": 100 * seconds / total}
    for of, name, seconds in rows
  ]


def parts_of(program: str) -> dict[str, str]:
  """Operation of the compiled program -> the part that it belongs to."""
  with_matmuls, found = set(), {}
  for computation in re.split(r"\n(?=%|ENTRY )", program):
    if " dot(" in computation:
      with_matmuls.add(computation.split(" ")[0].lstrip("%"))
  for line in program.split("\n"):
    if match := re.match(r"\s*(?:ROOT )?%?([\w.\-]+) = ", line):
      name, called = re.search(r'op_name="([^"]*)"', line), re.search(r"calls=%?([\w.\-]+)", line)
      is_matmul = " dot(" in line or "__cublas" in line or (called is not None and called[1] in with_matmuls)
      found[match[1]] = part_of(match[1], name[1] if name else "", is_matmul)
  return found


def part_of(operation: str, name: str, is_matmul: bool) -> str:
  if operation.startswith(("while", "cond", "call")):
    return "loops, which hold other operations"
  name = name.replace("after_self_attention", "")  # the method that computes all parts after self-attention
  part = next((part for part, pattern in PARTS if re.search(pattern, name)), "optimizer, copies and others")
  return f"{part}: {'matmuls' if is_matmul else 'others'}"


def traced(run: Any, passes: int) -> list[tuple[str, float]]:
  """The operations and their seconds in `passes` runs, after two runs that do not count."""
  run(), run()
  with tempfile.TemporaryDirectory() as folder:
    with jax.profiler.trace(folder):
      for _ in range(passes):
        run()
    (file,) = Path(folder).rglob("*.trace.json.gz")
    events = json.loads(gzip.decompress(file.read_bytes()))["traceEvents"]
  return [
    (event["args"]["hlo_op"], event["dur"] / 1e6)
    for event in events
    if event.get("ph") == "X" and "hlo_op" in event.get("args", {})
  ]


def programs(tiny: bool) -> dict[str, Config]:
  """The first steps of `training`."""
  return dict(list(training.programs(tiny).items())[:2])


def cases(tiny: bool) -> dict[str, part.Case]:
  return {name: functools.partial(measure, config) for name, config in programs(tiny).items()}


if __name__ == "__main__":
  part.run(cases)
