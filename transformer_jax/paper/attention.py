"""§3.2, attention."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np

from transformer_jax.analysis import operations, requirements
from transformer_jax.model import attention
from transformer_jax.model.config import ModelConfig
from transformer_jax.paper import formulas
from transformer_jax.paper.examples import (
  changed_memory,
  changed_outputs,
  compiled,
  float64,
  normal,
  parameters,
)
from transformer_jax.paper.statement import Deviation, Statements, require, require_close, require_equal
from transformer_jax.paper.tiny import SHALLOW, SOURCE, TARGET, TINY

STATEMENTS = Statements()


@STATEMENTS.add(
  "3.2.1",
  "Attention(Q, K, V) = softmax(Q K^T / sqrt(d_k)) V, eq. 1.",
  code="model/attention.py: scaled_dot_product_attention",
  test="tests/model/test_attention.py::test_equation_1",
)
def equation_1():
  query, key, value = (jnp.asarray(x) for x in (normal(0, 11, 3, 5), normal(1, 13, 3, 5), normal(2, 13, 3, 7)))
  found = attention.scaled_dot_product_attention(query, key, value, jnp.ones((11, 13), bool))
  for head in range(3):
    q, k, v = (float64(x[:, head]) for x in (query, key, value))
    require_close(found[:, head], formulas.attention(q, k, v, np.ones((11, 13), bool)), f"attention of head {head}")


@STATEMENTS.add(
  "3.2.1",
  "Products of queries and keys of unit variance have the variance d_k, which the scale brings back to 1.",
  code="model/attention.py: attention_weights",
  test="tests/paper/test_lecture.py::test_the_variance_of_a_product_is_d_k",
)
def scale():
  for d_k in (8, 512):
    query, key = normal(0, 53, 1, d_k), normal(1, 211, 1, d_k)
    weights = attention.attention_weights(jnp.asarray(query), jnp.asarray(key), jnp.ones((53, 211), bool))
    scores = np.log(np.asarray(weights, np.float64))  # up to a constant for each query
    variance = np.mean(np.var(scores, axis=-1))
    require(0.8 < variance < 1.25, f"scaled products have a variance of {variance:.3g} for d_k = {d_k}, not 1")


@STATEMENTS.add(
  "3.2.2",
  "MultiHead(Q, K, V) = Concat(head_1, ..., head_h) W^O, head_i = Attention(Q W_i^Q, K W_i^K, V W_i^V).",
  code="model/attention.py: MultiHeadAttention",
  test="tests/model/test_attention.py::test_multi_head",
  deviation=Deviation(
    "no biases in the projections; `config.model.attention_bias` adds them", "the equations have none"
  ),
)
def multi_head():
  x, source = normal(0, 11, TINY.d_model), normal(1, 13, TINY.d_model)
  mask = np.random.default_rng(2).random((11, 13)) < 0.6
  mask[:, 0] = True  # each query may look at something
  module = attention.MultiHeadAttention(TINY)
  params = parameters(module, x, source, mask, deterministic=True)
  require_equal({kind for part in params.values() for kind in part}, {"kernel"}, "parameters of the projections")
  expected = formulas.multi_head(float64(params), float64(x), float64(source), mask)
  require_close(compiled(module, deterministic=True)(params, x, source, mask), expected, "multi-head attention")


@STATEMENTS.add(
  "3.2.2",
  "h = 8 heads of d_k = d_v = d_model / h = 64.",
  code="model/config.py: ModelConfig.num_heads",
  test="tests/model/test_transformer.py::test_number_of_parameters",
)
def heads():
  layer = requirements.parameter_shapes(ModelConfig(num_layers=1))["encoder"]["layers_0"]["attention"]
  found = {name: part["kernel"].shape for name, part in layer.items()}
  projection = (512, 8, 64)
  expected = {"query": projection, "key": projection, "value": projection, "output": (8, 64, 512)}
  require_equal(found, expected, "shapes of the projections")


@STATEMENTS.add(
  "3.2.2",
  "As the heads are narrower, all of them cost about as much as one head of full width.",
  code="model/attention.py: MultiHeadAttention",
  test="tests/paper/test_lecture.py::test_operations_do_not_depend_on_the_number_of_heads",
)
def cost_of_heads():
  x, mask = jax.ShapeDtypeStruct((13, 512), jnp.float32), jnp.ones((13, 13), bool)

  def operations_of(heads: int) -> int:
    module = attention.MultiHeadAttention(ModelConfig(num_heads=heads))
    params = jax.eval_shape(lambda x: module.init(jax.random.key(0), x, x, mask, deterministic=True), x)
    function = functools.partial(module.apply, deterministic=True)
    return operations.matmuls(jax.make_jaxpr(function)(params, x, x, mask).jaxpr)

  projections, both_products = 4 * 2 * 13 * 512 * 512, 2 * 2 * 13 * 13 * 512
  for heads in (1, 8, 32):
    require_equal(operations_of(heads), projections + both_products, f"operations of {heads} heads")


@STATEMENTS.add(
  "3.2.3",
  "Each position of the decoder attends to all positions of the input, which are the keys and values.",
  code="model/decoder.py: DecoderLayer.after_self_attention",
  test="tests/model/test_transformer.py::test_a_source_token_changes_no_logit_of_another_segment",
)
def encoder_decoder_attention():
  # With this window no position of the encoder knows all of the input.
  for position, differs in changed_outputs(dataclasses.replace(SHALLOW, attention_window=1), 0):
    require(differs.all(), f"some outputs do not depend on token {position} of the input")


@STATEMENTS.add(
  "3.2.3",
  "Each position of the encoder attends to all positions of the layer below.",
  code="model/transformer.py: Transformer.encode",
  test="tests/model/test_transformer.py::test_logits",
)
def encoder_self_attention():
  for position, differs in changed_memory(SHALLOW, padding=4):  # padding is no position
    expected = position < len(SOURCE)
    require((differs == expected).all(), f"position {position} is not seen by all that may, or by others")


@STATEMENTS.add(
  "3.2.3",
  "Self-attention in the decoder sees no later position, so that an output depends on the outputs before it only.",
  code="model/masking.py: causal_mask",
  test="tests/model/test_transformer.py::test_a_later_target_token_changes_no_earlier_logit",
  deviation=Deviation(
    "what is masked has the smallest finite score in place of minus infinity, and then the weight 0; a query that may "
    "look at nothing gives 0",
    "the same weights, and no NaN at padding",
  ),
)
def causal():
  for position, differs in changed_outputs(SHALLOW, 1):
    expected = np.arange(len(TARGET)) > position
    require((differs == expected).all(), f"output {position} changes others than those after it")
