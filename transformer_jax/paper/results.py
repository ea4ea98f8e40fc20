"""§6.2, the models of Table 3, and the big one of §6.1."""

import math

import jax
import jax.numpy as jnp
import numpy as np

from transformer_jax.config import Config, TrainConfig
from transformer_jax.model.config import ModelConfig
from transformer_jax.paper.examples import float64, normal, shapes
from transformer_jax.paper.statement import Deviation, Statements, require_close, require_equal
from transformer_jax.table3 import ROWS
from transformer_jax.training import loss, metrics

STATEMENTS = Statements()


def _require_counts(letter: str) -> None:
  """The parameters of all rows whose names begin so, against the formula of `docs/table3.md`."""
  for name, row in ROWS.items():
    if name.startswith(letter):
      model = ModelConfig(**row.model)
      found = sum(leaf.size for leaf in jax.tree.leaves(shapes(model)))
      require_equal(found, _count(**row.model), f"parameters of row {name}")


def _count(
  *,
  num_layers: int = 6,
  d_model: int = 512,
  d_ff: int = 2048,
  num_heads: int = 8,
  d_k: int = 64,
  d_v: int = 64,
  learned_positions: bool = False,
  dropout: float = 0.1,
) -> int:
  """V d + N (3 a + 2 f + 10 d) and two tables of 1,024 learned positions; the defaults are the row base."""
  attention = 2 * d_model * num_heads * (d_k + d_v)
  feed_forward = 2 * d_model * d_ff + d_ff + d_model
  positions = 2 * 1024 * d_model if learned_positions else 0
  return 37_000 * d_model + num_layers * (3 * attention + 2 * feed_forward + 10 * d_model) + positions


@STATEMENTS.add(
  "6.2",
  "Table 3, base: N = 6, d_model = 512, d_ff = 2048, h = 8, d_k = d_v = 64, P_drop = epsilon_ls = 0.1; 65 million "
  "parameters.",
  code="model/config.py: ModelConfig",
  test="tests/test_table3.py::test_parameters",
  deviation=Deviation(
    "63,045,632 parameters, with 37,000 pieces",
    "no one vocabulary gives all counts that the table prints (`docs/table3.md`)",
  ),
)
def base():
  model, train = ModelConfig(), TrainConfig()
  sizes = (model.num_layers, model.d_model, model.d_ff, model.num_heads, model.head_dim_k, model.head_dim_v)
  require_equal(sizes, (6, 512, 2048, 8, 64, 64), "N, d_model, d_ff, h, d_k, d_v by default")
  require_equal((model.dropout, train.label_smoothing), (0.1, 0.1), "P_drop and epsilon_ls by default")
  require_equal(_count(), 63_045_632, "parameters by the formula")
  _require_counts("base")


@STATEMENTS.add(
  "6.2",
  "Table 3, rows A: 1, 4, 16 or 32 heads, of d_k = d_v = 512 / h so that the cost stays the same.",
  code="model/config.py: ModelConfig.num_heads",
  test="tests/test_table3.py::test_heads_share_the_width_in_rows_a_and_keep_it_in_rows_b",
)
def rows_a():
  _require_counts("A")
  for name, row in ROWS.items():
    if name.startswith("A"):
      require_equal(_count(**row.model), _count(), f"parameters of row {name}, against base")
      model = ModelConfig(num_heads=row.model["num_heads"])
      sizes = model.head_dim_k, model.head_dim_v
      require_equal(sizes, (row.model["d_k"], row.model["d_v"]), f"d_k and d_v of row {name} where they are not set")


@STATEMENTS.add(
  "6.2",
  "Table 3, rows B: keys of d_k = 16 or 32; values stay as wide.",
  code="model/config.py: ModelConfig.d_k",
  test="tests/test_table3.py::test_heads_share_the_width_in_rows_a_and_keep_it_in_rows_b",
)
def rows_b():
  _require_counts("B")
  values = [ModelConfig(**row.model).head_dim_v for name, row in ROWS.items() if name.startswith("B")]
  require_equal(values, [64, 64], "d_v of the rows")


@STATEMENTS.add(
  "6.2",
  "Table 3, rows C: 2, 4 or 8 layers; d_model = 256 or 1024; d_ff = 1024 or 4096.",
  code="model/config.py: ModelConfig.num_layers",
  test="tests/test_table3.py::test_parameters",
)
def rows_c():
  _require_counts("C")


@STATEMENTS.add(
  "6.2",
  "Table 3, rows D: P_drop of 0 or 0.2, label smoothing of 0 or 0.2.",
  code="config.py: TrainConfig.label_smoothing",
  test="tests/test_table3.py::test_a_row_differs_from_base_by_its_own_fields_only",
)
def rows_d():
  _require_counts("D")
  logits, targets, valid = (jnp.asarray(x) for x in (normal(0, 11, 13), np.arange(11), np.ones(11, bool)))
  sums = {}
  for name, row in ROWS.items():
    if name.startswith("D"):
      config = Config(model=ModelConfig(**row.model), train=TrainConfig(**row.train))
      sums[name] = loss.token_sums(logits, targets, valid, config.train.label_smoothing)
  plain = sums["D-ls0.0"]
  require_close(plain.loss, plain.negative_log_likelihood, "the loss without smoothing, against that of the targets")
  smoothing = [float(sums[name].loss - plain.loss) for name in ("D-drop0.0", "D-ls0.2")]
  require_close(smoothing[1], 2 * smoothing[0], "what smoothing of 0.2 adds to the loss, against twice that of 0.1")


@STATEMENTS.add(
  "6.2",
  "Table 3, row E: learned positional embeddings in place of sinusoids.",
  code="model/config.py: ModelConfig.learned_positions",
  test="tests/test_table3.py::test_parameters",
)
def row_e():
  _require_counts("E")


@STATEMENTS.add(
  "6.2",
  "Table 3, big: d_model = 1024, d_ff = 4096, h = 16, P_drop = 0.3, 300,000 steps; 213 million parameters.",
  code="model/config.py: ModelConfig",
  test="tests/test_table3.py::test_big_is_the_model_of_configs_big",
  deviation=Deviation(
    "214,171,648 parameters, with 37,000 pieces",
    "no one vocabulary gives all counts that the table prints (`docs/table3.md`)",
  ),
)
def big():
  require_equal(_count(**ROWS["big"].model), 214_171_648, "parameters by the formula")
  _require_counts("big")
  model = ModelConfig(**ROWS["big"].model)
  require_equal((model.head_dim_k, model.head_dim_v), (64, 64), "d_k and d_v of the big model")


@STATEMENTS.add(
  "6.2",
  "Table 3: perplexity is per piece of the vocabulary.",
  code="training/metrics.py: means",
  test="tests/training/test_step.py::test_metrics",
)
def perplexity():
  logits, targets = normal(0, 11, 13), np.arange(11)
  valid = targets % 4 > 0  # padding is left out
  means = metrics.means(loss.token_sums(jnp.asarray(logits), jnp.asarray(targets), jnp.asarray(valid), 0.1))
  probabilities = np.exp(float64(logits)) / np.exp(float64(logits)).sum(axis=1, keepdims=True)
  expected = math.exp(-np.mean(np.log(probabilities[targets, targets][valid])))
  require_close(means["perplexity"] / expected, 1, "perplexity, over that of the targets alone", 1e-5)
