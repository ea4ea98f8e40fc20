"""§3.4, embeddings and softmax, and §3.5, positional encoding."""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np

from transformer_jax.analysis import requirements
from transformer_jax.model import embedding, positional_encoding
from transformer_jax.model.config import ModelConfig
from transformer_jax.model.transformer import Transformer
from transformer_jax.paper import formulas
from transformer_jax.paper.examples import compiled, differ, float64, normal, parameters, random_params
from transformer_jax.paper.statement import Deviation, Statements, require, require_close, require_equal
from transformer_jax.paper.tiny import SHALLOW, SOURCE, TINY

STATEMENTS = Statements()


@STATEMENTS.add(
  "3.4",
  "Both embeddings and the linear transformation before the softmax share one matrix.",
  code="model/transformer.py: Transformer.output_table",
  test="tests/model/test_transformer.py::test_tables_are_shared_as_asked",
)
def one_table():
  tree = requirements.parameter_shapes(ModelConfig())
  tables = [leaf.shape for leaf in jax.tree.leaves(tree) if 37_000 in leaf.shape]
  require_equal(tables, [(37_000, 512)], "parameters with an axis of the vocabulary")
  params = random_params(TINY)
  hidden = normal(1, 13, TINY.d_model)
  expected = float64(hidden) @ float64(params["target_embedding"]["table"]).T
  require_close(compiled(Transformer(TINY), method="logits")(params, hidden), expected, "the logits")


@STATEMENTS.add(
  "3.4",
  "In the embeddings the weights are multiplied by sqrt(d_model).",
  code="model/embedding.py: embed",
  test="tests/model/test_embedding.py::test_a_token_is_its_row_times_the_root_of_d_model",
  deviation=Deviation(
    "the rows that are looked up are multiplied, the table that makes the logits is not",
    "the same numbers; the authors' own code does the same",
  ),
)
def embeddings_are_scaled():
  table, tokens = normal(0, 31, 22), np.array([0, 30, 7, 7])
  found = embedding.embed(jnp.asarray(table), jnp.asarray(tokens))
  require_close(found, float64(table)[tokens] * math.sqrt(22), "embeddings")


@STATEMENTS.add(
  "3.5",
  "Positional encodings are added to the embeddings at the bottom of both stacks (nothing else in the encoder knows "
  "the order; in the decoder the causal mask does, too).",
  code="model/transformer.py: Transformer.encode",
  test="tests/model/test_transformer.py::test_logits",
)
def only_positions_know_the_order():
  params, mask = random_params(SHALLOW), np.ones((7, 7), bool)
  encoder = compiled(Transformer(SHALLOW), method="encode")
  tokens, order = np.array(SOURCE), np.array([3, 6, 0, 5, 1, 4, 2])

  def encode(tokens: np.ndarray, positions: np.ndarray) -> np.ndarray:
    return encoder(params, tokens, positions, mask)

  in_order, nowhere = np.arange(7), np.zeros(7, np.int32)
  without = encode(tokens, nowhere)
  require_close(encode(tokens[order], nowhere), without[order], "permuted tokens in the encoder, without positions")
  moved = encode(tokens[order], in_order[order])
  require_close(moved, encode(tokens, in_order)[order], "tokens permuted with their positions")
  require(differ(encode(tokens[order], in_order), moved).all(), "the order of the tokens makes no difference")
  decode = compiled(Transformer(SHALLOW), method="decode")
  swap = np.array([0, 2, 1, 3, 4, 5, 6])
  one, other = (decode(params, some, nowhere, without, np.tri(7, dtype=bool), mask) for some in (tokens, tokens[swap]))
  require(differ(one[swap], other)[1], "the order of the decoder's tokens makes no difference to them")


@STATEMENTS.add(
  "3.5",
  "PE(pos, 2i) = sin(pos / 10000^(2i / d_model)), PE(pos, 2i + 1) = cos(pos / 10000^(2i / d_model)).",
  code="model/positional_encoding.py: sinusoids",
  test="tests/model/test_positional_encoding.py::test_sinusoids",
)
def sinusoids():
  positions = [0, 1, 2, 3, 97, 1021]
  found = positional_encoding.sinusoids(jnp.array(positions), 22)
  require_close(found, formulas.sinusoids(positions, 22), "sinusoids", 1e-3)  # of an angle in float32


@STATEMENTS.add(
  "3.5",
  "The wavelengths are a geometric progression from 2 pi up to 10000 * 2 pi.",
  code="model/positional_encoding.py: sinusoids",
  test="tests/model/test_positional_encoding.py::test_sinusoids",
)
def wavelengths():
  d_model = 512
  sine, cosine = float64(positional_encoding.sinusoids(jnp.array(1), d_model)).reshape(-1, 2).T
  found = 2 * math.pi / np.arctan2(sine, cosine)
  ratio = 10_000 ** (2 / d_model)
  require_close(found[0] / (2 * math.pi), 1, "the shortest wavelength over 2 pi")
  require_close(found[1:] / found[:-1], np.full(255, ratio), "the ratio of neighbouring wavelengths")
  require_close(found[-1] * ratio / (20_000 * math.pi), 1, "the wavelength after the last, over 10000 * 2 pi", 1e-3)


@STATEMENTS.add(
  "3.5",
  "PE(pos + k) is a linear function of PE(pos), for any fixed k.",
  code="model/positional_encoding.py: sinusoids",
  test="tests/paper/test_lecture_positions.py::test_a_shift_is_a_rotation_by_the_offset_alone",
)
def a_shift_is_linear():
  d_model, shift, positions = 22, 7, jnp.arange(53)
  here = float64(positional_encoding.sinusoids(positions, d_model))
  there = float64(positional_encoding.sinusoids(positions + shift, d_model))
  for i in range(d_model // 2):
    pair = slice(2 * i, 2 * i + 2)
    angle = shift / 10_000 ** (2 * i / d_model)
    rotation = [[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]]
    require_close(there[:, pair], here[:, pair] @ np.array(rotation), f"a shift by {shift} of pair {i}")


@STATEMENTS.add(
  "3.5",
  "Sinusoids may serve sentences longer than those of training.",
  code="model/positional_encoding.py: PositionalEncoding",
  test="tests/model/test_positional_encoding.py::test_sinusoids_have_no_parameters",
  deviation=Deviation("with sinusoids there is no largest position", "they are computed, not stored"),
)
def no_largest_position():
  module = positional_encoding.PositionalEncoding(TINY)
  stored = jax.eval_shape(lambda: module.init(jax.random.key(0), jnp.arange(3)))
  require_equal(jax.tree.leaves(stored), [], "parameters of sinusoids")
  positions = [TINY.max_positions, 10_007]
  found = compiled(module)({}, np.array(positions))
  # The angle is rounded to float32, and so is the frequency before it: about 2^-21 of the angle.
  require_close(found, formulas.sinusoids(positions, TINY.d_model), "encodings of far positions", 10_007 * 2**-21)


@STATEMENTS.add(
  "3.5",
  "Positional embeddings may be learned in place of sinusoids (Table 3, row E).",
  code="model/config.py: ModelConfig.learned_positions",
  test="tests/model/test_positional_encoding.py::test_learned_positions_are_rows_of_a_table_as_large_as_embeddings",
  deviation=Deviation(
    "a table of `config.model.max_positions` rows for either side, multiplied by sqrt(d_model) as embeddings are",
    "the paper does not say; so both parts of the sum are of one size from the start",
  ),
)
def learned_positions():
  module = positional_encoding.PositionalEncoding(dataclasses.replace(TINY, learned_positions=True, max_positions=37))
  positions = np.array([0, 36, 5, 5])
  params = parameters(module, positions)
  require_equal(params["table"].shape, (37, TINY.d_model), "the shape of the table")
  expected = float64(params["table"])[positions] * math.sqrt(TINY.d_model)
  require_close(compiled(module)(params, positions), expected, "learned positions")
