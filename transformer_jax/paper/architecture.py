"""§3, the stacks of Figure 1 and what is in a layer besides attention: §3.1 and §3.3."""

import dataclasses
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from transformer_jax.config import Config
from transformer_jax.model import masking
from transformer_jax.model.config import Dtype, ModelConfig
from transformer_jax.model.decoder import Decoder
from transformer_jax.model.encoder import Encoder
from transformer_jax.model.feed_forward import FeedForward
from transformer_jax.model.sublayer import Sublayer
from transformer_jax.model.transformer import Transformer
from transformer_jax.paper import formulas
from transformer_jax.paper.examples import (
  SHALLOW,
  SOURCE,
  TARGET,
  TINY,
  compiled,
  float64,
  normal,
  parameters,
  random_like,
  row,
  row_logits,
  shapes,
)
from transformer_jax.paper.statement import Deviation, Statements, require, require_close, require_equal
from transformer_jax.training import step, translation

STATEMENTS = Statements()


def _after(params: Any, x: np.ndarray, y: np.ndarray) -> np.ndarray:
  """LayerNorm(x + y)."""
  return formulas.layer_norm(params["norm"], x + y)


@STATEMENTS.add(
  "3",
  "The decoder makes one token at a time and reads those that it made before.",
  code="model/transformer.py: Transformer.decode_step",
  test="tests/model/test_decode_step.py::test_beams_that_change_places_equal_the_whole_path_of_each",
)
def one_token_at_a_time():

  def both_ways(model: Transformer, source: jax.Array, target: jax.Array) -> tuple[jax.Array, jax.Array]:
    valid = jnp.ones(len(source), bool)
    memory = model.encode(source, jnp.arange(len(source)), masking.padding_mask(valid, valid))
    cross_mask = jnp.ones((len(target), len(source)), bool)
    whole = model.decode(target, jnp.arange(len(target)), memory, masking.causal_mask(len(target)), cross_mask)
    cache, steps = model.start(model.remember(memory, valid), len(target), beams=1), []
    for position in range(len(target)):
      hidden, cache = model.decode_step(cache, jnp.int32(position), jnp.array([0]), target[position : position + 1])
      steps.append(hidden)
    return whole, jnp.concatenate(steps)

  params = random_like(shapes(SHALLOW))
  whole, steps = compiled(Transformer(SHALLOW), method=both_ways)(params, np.array(SOURCE), np.array(TARGET[:4]))
  require_close(steps, whole, "decoding step by step against all steps at once")


@STATEMENTS.add(
  "3.1",
  "The encoder is a stack of N = 6 equal layers, each of multi-head self-attention and then feed-forward.",
  code="model/encoder.py: Encoder",
  test="tests/model/test_transformer.py::test_encoder_layer",
)
def encoder():
  require_equal(ModelConfig().num_layers, 6, "N by default")
  x, mask = normal(0, 13, TINY.d_model), np.ones((13, 13), bool)
  params = parameters(Encoder(TINY), x, mask, deterministic=True)
  expected = float64(x)
  for i in range(TINY.num_layers):
    layer = float64(params)[f"layers_{i}"]
    attended = formulas.multi_head(layer["attention"], expected, expected, mask)
    expected = _after(layer["attention_sublayer"], expected, attended)
    expected = _after(layer["feed_forward_sublayer"], expected, formulas.feed_forward(layer["feed_forward"], expected))
  require_close(compiled(Encoder(TINY), deterministic=True)(params, x, mask), expected, "the encoder's output")


@STATEMENTS.add(
  "3.1",
  "Each of the decoder's N = 6 layers has masked self-attention, attention over the encoder's output, feed-forward.",
  code="model/decoder.py: Decoder",
  test="tests/model/test_transformer.py::test_decoder_layer",
)
def decoder():
  x, memory = normal(0, 17, TINY.d_model), normal(1, 13, TINY.d_model)
  causal, cross = np.tri(17, dtype=bool), np.ones((17, 13), bool)
  params = parameters(Decoder(TINY), x, memory, causal, cross, deterministic=True)
  expected = float64(x)
  for i in range(TINY.num_layers):
    layer = float64(params)[f"layers_{i}"]
    attended = formulas.multi_head(layer["self_attention"], expected, expected, causal)
    expected = _after(layer["self_sublayer"], expected, attended)
    attended = formulas.multi_head(layer["cross_attention"], expected, float64(memory), cross)
    expected = _after(layer["cross_sublayer"], expected, attended)
    expected = _after(layer["feed_forward_sublayer"], expected, formulas.feed_forward(layer["feed_forward"], expected))
  found = compiled(Decoder(TINY), deterministic=True)(params, x, memory, causal, cross)
  require_close(found, expected, "the decoder's output")


@STATEMENTS.add(
  "3.1",
  "Around each sub-layer: LayerNorm(x + Sublayer(x)).",
  code="model/sublayer.py: Sublayer",
  test="tests/model/test_sublayer.py::test_residual_and_layer_norm",
  deviation=Deviation("LayerNorm's epsilon is 1e-6, which the paper does not give", "the authors' own code"),
)
def residual_and_normalisation():
  matrix, module = normal(1, TINY.d_model, TINY.d_model), Sublayer(TINY)

  def f(x: Any) -> Any:
    return x @ matrix

  for size in (1, 1e-4):  # of small values epsilon is a large part of the variance
    x = (size * (3 + normal(0, 13, TINY.d_model))).astype(np.float32)
    params = parameters(module, x, f, deterministic=True)
    found = jax.jit(lambda params, x: module.apply({"params": params}, x, f, deterministic=True))(params, x)
    require_close(found, _after(float64(params), float64(x), f(float64(x))), f"a sub-layer and x of about {size:g}")


@STATEMENTS.add(
  "3.1",
  "All sub-layers and embeddings give vectors of d_model = 512.",
  code="model/config.py: ModelConfig.d_model",
  test="tests/model/test_transformer.py::test_number_of_parameters",
)
def one_width():
  tree = shapes(ModelConfig())
  layers = [layer for side in ("encoder", "decoder") for layer in tree[side].values()]
  outputs = [part["output"]["kernel"] for layer in layers for name, part in layer.items() if name.endswith("attention")]
  outputs += [layer["feed_forward"]["outer"]["kernel"] for layer in layers] + [tree["target_embedding"]["table"]]
  require_equal({leaf.shape[-1] for leaf in outputs}, {512}, "widths of sub-layers and embeddings")
  require_equal(len(outputs), 6 * 2 + 6 * 3 + 1, "sub-layers and embeddings")


@STATEMENTS.add(
  "3.1",
  "The decoder's input is the output shifted right by one position.",
  code="training/segments.py: decoder_input",
  test="tests/training/test_step.py::test_positions_and_decoder_input_start_again_in_each_segment",
)
def shifted_right():
  found = translation.decoder_input(jnp.array(TARGET), jnp.arange(len(TARGET)))
  require_equal(np.asarray(found).tolist(), [2, *TARGET[:-1]], "the decoder's input, behind the begin of sentence, 2")


@STATEMENTS.add(
  "3.1",
  "(The initial values of the parameters are not given.)",
  code="training/step.py: init_params",
  test="tests/model/test_attention.py::test_projections_have_the_sizes_of_the_paper_and_glorot_uniform_values",
  deviation=Deviation("Glorot uniform projections, embeddings of N(0, 1/d_model)", "the authors' own code"),
)
def initial_values():
  model = ModelConfig(vocab_size=211, num_layers=1, d_model=64, d_ff=101, num_heads=4)

  @jax.jit
  def some() -> list[jax.Array]:
    params = step.init_params(Config(model=model))
    attention, feed_forward = (params["encoder"]["layers_0"][name] for name in ("attention", "feed_forward"))
    kernels = [part["kernel"] for part in (attention["query"], attention["output"], feed_forward["inner"])]
    return [params["target_embedding"]["table"], *kernels]

  table, *kernels = some()
  deviation = float(np.std(table))
  require(
    abs(deviation * math.sqrt(64) - 1) < 0.05, f"embeddings have a standard deviation of {deviation:.3g}, not 1/8"
  )
  for kernel, size in zip(kernels, (64 + 64, 64 + 64, 64 + 101), strict=True):
    largest, limit = float(np.max(np.abs(kernel))), math.sqrt(6 / size)
    require(0.97 * limit < largest <= limit, f"a projection has values up to {largest:.3g}, not {limit:.3g}")


@STATEMENTS.add(
  "3.1",
  "(The precision of the arithmetic is not given.)",
  code="model/config.py: ModelConfig.dtype",
  test="tests/model/test_embedding.py::test_logits_are_float32_in_bfloat16",
  deviation=Deviation(
    "float32, or by option bfloat16 for products and activations, which the recipes of §5 in `configs/` ask for; "
    "parameters, softmax, logits and loss are float32 in any case",
    "accelerators are several times as fast in bfloat16",
  ),
)
def precision():
  require_equal(ModelConfig().dtype, Dtype.FLOAT32, "the type of products by default")
  params, logits = random_like(shapes(SHALLOW)), {}
  for dtype in Dtype:
    logits[dtype] = row_logits(dataclasses.replace(SHALLOW, dtype=dtype), params)(row((SOURCE, TARGET)))
    require_equal(logits[dtype].dtype, jnp.float32, f"the type of logits with products in {dtype.value}")
  scale = float(np.std(logits[Dtype.FLOAT32]))
  # Seven layers of products that are each rounded to 8 bits.
  difference = (logits[Dtype.BFLOAT16] - logits[Dtype.FLOAT32]) / scale
  require_close(difference, np.zeros(difference.shape), "logits in bfloat16, against float32", 0.2)
  require(float(np.max(np.abs(difference))) > 1e-4, "logits in bfloat16 are those of float32: nothing was rounded")


@STATEMENTS.add(
  "3.3",
  "FFN(x) = max(0, x W_1 + b_1) W_2 + b_2 at each position, eq. 2.",
  code="model/feed_forward.py: FeedForward",
  test="tests/model/test_feed_forward.py::test_equation_2",
)
def equation_2():
  x = normal(0, 13, TINY.d_model)
  params = parameters(FeedForward(TINY), x)
  # Position by position, so that none can see another.
  expected = [formulas.feed_forward(float64(params), position) for position in float64(x)]
  require_close(compiled(FeedForward(TINY))(params, x), expected, "the feed-forward network")


@STATEMENTS.add(
  "3.3",
  "The inner layer is d_ff = 2048 wide; each layer of the stacks has its own weights.",
  code="model/config.py: ModelConfig.d_ff",
  test="tests/model/test_transformer.py::test_number_of_parameters",
)
def inner_width():
  tree = shapes(ModelConfig())
  kernels = [
    layer["feed_forward"]["inner"]["kernel"].shape for s in ("encoder", "decoder") for layer in tree[s].values()
  ]
  require_equal(kernels, [(512, 2048)] * 12, "shapes of W_1 in all layers")
