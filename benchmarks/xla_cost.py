"""XLA's cost of one training step and one search: the operations, and the bytes that are read or written.

    python benchmarks/xla_cost.py

XLA counts them in the programs compiled for this machine's processor. They do not depend on the machine's load, so two
checkouts can be compared: PYTHONPATH=CHECKOUT takes the package from another checkout. The body of a loop counts once.
The model has 4+4 layers of 128; a batch is 64 rows of 64 tokens, a search 16 sentences of 32 tokens.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import programs
import report

from transformer_jax.config import Config, DataConfig, LengthPenalty, TrainConfig
from transformer_jax.data.batches import Batch
from transformer_jax.decoding.programs import SearchOptions, search
from transformer_jax.model.config import ModelConfig
from transformer_jax.model.transformer import Transformer
from transformer_jax.runtime import devices
from transformer_jax.tasks.translation import TASK
from transformer_jax.training.step import init_state, train_step

ROWS, ROW_LENGTH, SENTENCES, LENGTH = 64, 64, 16, 32
MODEL = ModelConfig(vocab_size=4000, num_layers=4, d_model=128, d_ff=512, num_heads=4, dropout=0.1)


def main() -> None:
  rows = [
    {"what": "training step", **cost(training_step())},
    {"what": "greedy search", **cost(search_of(1))},
    {"what": "beam 4", **cost(search_of(4))},
  ]
  print(report.table(rows))


def training_step() -> Any:
  config = Config(
    data=DataConfig(row_length=ROW_LENGTH), model=MODEL, train=TrainConfig(batch_tokens=ROWS * ROW_LENGTH)
  )
  state = jax.eval_shape(lambda: init_state(config, TASK))
  rows, places = (1, ROWS, 4, ROW_LENGTH), (1, ROWS)
  batch = Batch(jax.ShapeDtypeStruct(rows, jnp.uint16), jax.ShapeDtypeStruct(places, jnp.int32))
  step = devices.over_devices(functools.partial(train_step, config, TASK), out_axes=(None, None))
  return step.lower(state, batch)


def search_of(beam_size: int) -> Any:
  tokens, mask = jnp.zeros(2, jnp.int32), jnp.ones((2, 2), bool)
  model = Transformer(MODEL)
  everything = functools.partial(model.init, method=lambda m: m.logits(m(*[tokens] * 4, *[mask] * 3)))
  params = jax.eval_shape(everything, jax.random.key(0))["params"]
  options = SearchOptions(beam_size, LengthPenalty.GNMT, 0.6)
  source = jax.ShapeDtypeStruct((SENTENCES, LENGTH), jnp.int32)
  return jax.jit(functools.partial(search, model, options, slots=SENTENCES, extra_length=50)).lower(params, source)


def cost(lowered: Any) -> dict[str, str]:
  found = lowered.compile().cost_analysis()
  return {"operations": f"{found['flops']:,.0f}", "bytes": f"{found['bytes accessed']:,.0f}"}


if __name__ == "__main__":
  programs.run(main)
