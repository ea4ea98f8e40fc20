"""§6.2, the models of Table 3, and the big one of §6.1."""

import math
from typing import Any

import jax.numpy as jnp
import numpy as np

from transformer_jax.analysis import requirements
from transformer_jax.config import Config, TrainConfig
from transformer_jax.model.config import ModelConfig
from transformer_jax.paper import formulas
from transformer_jax.paper.examples import float64, normal
from transformer_jax.paper.statement import Deviation, Statements, require_close, require_equal
from transformer_jax.paper.table3 import ROWS
from transformer_jax.runtime.values import JsonObject
from transformer_jax.training import loss, sums

STATEMENTS = Statements()


_BASE = {
  "num_layers": 6,
  "d_model": 512,
  "d_ff": 2048,
  "num_heads": 8,
  "d_k": 64,
  "d_v": 64,
  "dropout": 0.1,
  "label_smoothing": 0.1,
  "steps": 100_000,
  "learned_positions": False,
}

# Every row of Table 3, once more from the paper: what `table3.ROWS` must say. Where a row is empty there, it is base's.
TABLE_3 = {
  name: _BASE | changes
  for name, changes in {
    "base": {},
    "A-h1": {"num_heads": 1, "d_k": 512, "d_v": 512},
    "A-h4": {"num_heads": 4, "d_k": 128, "d_v": 128},
    "A-h16": {"num_heads": 16, "d_k": 32, "d_v": 32},
    "A-h32": {"num_heads": 32, "d_k": 16, "d_v": 16},
    "B-dk16": {"d_k": 16},
    "B-dk32": {"d_k": 32},
    "C-N2": {"num_layers": 2},
    "C-N4": {"num_layers": 4},
    "C-N8": {"num_layers": 8},
    "C-d256": {"d_model": 256, "d_k": 32, "d_v": 32},
    "C-d1024": {"d_model": 1024, "d_k": 128, "d_v": 128},
    "C-dff1024": {"d_ff": 1024},
    "C-dff4096": {"d_ff": 4096},
    "D-drop0.0": {"dropout": 0.0},
    "D-drop0.2": {"dropout": 0.2},
    "D-ls0.0": {"label_smoothing": 0.0},
    "D-ls0.2": {"label_smoothing": 0.2},
    "E-learned": {"learned_positions": True},
    "big": {"d_model": 1024, "d_ff": 4096, "num_heads": 16, "dropout": 0.3, "steps": 300_000},
  }.items()
}


def values(config: Config) -> JsonObject:
  """The columns of Table 3, of a config of the Transformer."""
  model: Any = config.model
  found = {name: getattr(model, name) for name in _BASE if hasattr(model, name)}
  of_heads = {"d_k": model.head_dim_k, "d_v": model.head_dim_v}
  return found | of_heads | {name: getattr(config.train, name) for name in ("label_smoothing", "steps")}


def _require_rows(letter: str, number: int) -> None:
  """So many rows have names that begin so, each with the values of the paper and the parameters that they give."""
  names = [name for name in ROWS if name.startswith(letter)]
  require_equal(len(names), number, f"rows {letter}")
  for name in names:
    row = ROWS[name]
    config = Config(model=ModelConfig(**row.model), train=TrainConfig(**row.train))
    found = values(config)
    for column, expected in TABLE_3[name].items():
      require_equal(found[column], expected, f"{column} of row {name}")
    require_equal(requirements.parameters(config)["total"], _count(**TABLE_3[name]), f"parameters of row {name}")


def _count(
  *,
  num_layers: int,
  d_model: int,
  d_ff: int,
  num_heads: int,
  d_k: int,
  d_v: int,
  learned_positions: bool,
  **_: float,
) -> int:
  """V d + N (3 a + 2 f + 10 d) and two tables of 1,024 learned positions, as in `docs/table3.md`."""
  attention = 2 * d_model * num_heads * (d_k + d_v)
  feed_forward = 2 * d_model * d_ff + d_ff + d_model
  positions = 2 * 1024 * d_model if learned_positions else 0
  return 37_000 * d_model + num_layers * (3 * attention + 2 * feed_forward + 10 * d_model) + positions


@STATEMENTS.add(
  "6.2",
  "Table 3, base: N = 6, d_model = 512, d_ff = 2048, h = 8, d_k = d_v = 64, P_drop = epsilon_ls = 0.1; 65 million "
  "parameters.",
  code="model/config.py: ModelConfig",
  test="tests/paper/test_table3.py::test_parameters",
  deviation=Deviation(
    "63,045,632 parameters, with a vocabulary of 37,000",
    "no one vocabulary gives all counts that the table prints (`docs/table3.md`)",
  ),
)
def base():
  require_equal(set(ROWS), set(TABLE_3), "rows of Table 3")
  require_equal(_count(**_BASE), 63_045_632, "parameters by the formula")
  _require_rows("base", 1)


@STATEMENTS.add(
  "6.2",
  "Table 3, rows A: 1, 4, 16 or 32 heads, of d_k = d_v = 512 / h so that the cost stays the same.",
  code="model/config.py: ModelConfig.num_heads",
  test="tests/paper/test_table3.py::test_heads_share_the_width_in_rows_a_and_keep_it_in_rows_b",
)
def rows_a():
  _require_rows("A", 4)
  for heads in (1, 4, 16, 32):
    model = ModelConfig(num_heads=heads)
    require_equal((model.head_dim_k, model.head_dim_v), (512 // heads,) * 2, f"d_k and d_v of {heads} heads by default")


@STATEMENTS.add(
  "6.2",
  "Table 3, rows B: keys of d_k = 16 or 32; values stay as wide.",
  code="model/config.py: ModelConfig.d_k",
  test="tests/paper/test_table3.py::test_heads_share_the_width_in_rows_a_and_keep_it_in_rows_b",
)
def rows_b():
  _require_rows("B", 2)


@STATEMENTS.add(
  "6.2",
  "Table 3, rows C: 2, 4 or 8 layers; d_model = 256 or 1024; d_ff = 1024 or 4096.",
  code="model/config.py: ModelConfig.num_layers",
  test="tests/paper/test_table3.py::test_parameters",
)
def rows_c():
  _require_rows("C", 7)


@STATEMENTS.add(
  "6.2",
  "Table 3, rows D: P_drop of 0 or 0.2, label smoothing of 0 or 0.2.",
  code="config/experiment.py: TrainConfig.label_smoothing",
  test="tests/paper/test_table3.py::test_a_row_differs_from_base_by_its_own_fields_only",
)
def rows_d():
  _require_rows("D", 4)
  logits, targets = normal(0, 11, 13), np.arange(11)
  for smoothing in (0.0, 0.2):
    found = loss.token_sums(jnp.asarray(logits), jnp.asarray(targets), jnp.ones(11, bool), smoothing).loss
    expected = formulas.cross_entropy(float64(logits), targets.tolist(), smoothing)
    require_close(found / expected, 1, f"the loss with smoothing of {smoothing}, over that of the formula", 1e-5)


@STATEMENTS.add(
  "6.2",
  "Table 3, row E: learned positional embeddings in place of sinusoids.",
  code="model/config.py: ModelConfig.learned_positions",
  test="tests/paper/test_table3.py::test_parameters",
)
def row_e():
  _require_rows("E", 1)


@STATEMENTS.add(
  "6.2",
  "Table 3, big: d_model = 1024, d_ff = 4096, h = 16, P_drop = 0.3, by §6.1 0.1 for French, 300,000 steps; "
  "213 million parameters.",
  code="model/config.py: ModelConfig",
  test="tests/paper/test_table3.py::test_big_is_the_model_of_configs_big",
  deviation=Deviation(
    "214,171,648 parameters, with a vocabulary of 37,000",
    "no one vocabulary gives all counts that the table prints (`docs/table3.md`)",
  ),
)
def big():
  require_equal(_count(**TABLE_3["big"]), 214_171_648, "parameters by the formula")
  _require_rows("big", 1)


@STATEMENTS.add(
  "6.2",
  "Table 3: perplexity is per token of the vocabulary.",
  code="training/sums.py: means",
  test="tests/trainer/test_metrics.py::test_an_interval_adds_up_what_was_not_skipped",
)
def perplexity():
  logits, targets = normal(0, 11, 13), np.arange(11)
  valid = targets % 4 > 0  # padding is left out
  means = sums.means(loss.token_sums(jnp.asarray(logits), jnp.asarray(targets), jnp.asarray(valid), 0.1))
  expected = math.exp(-np.mean(np.log(formulas.softmax(float64(logits))[targets, targets][valid])))
  require_close(means["perplexity"] / expected, 1, "perplexity, over that of the targets alone", 1e-5)
