"""§3, the stacks of Figure 1 and what is in a layer besides attention: §3.1 and §3.3."""

import dataclasses
import math

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from transformer_jax.analysis import requirements
from transformer_jax.config import Config
from transformer_jax.model import attention, embedding, masking
from transformer_jax.model.config import Dtype, ModelConfig
from transformer_jax.model.decoder import Decoder
from transformer_jax.model.encoder import Encoder
from transformer_jax.model.feed_forward import FeedForward
from transformer_jax.model.params import by_name
from transformer_jax.model.special_tokens import BOS, PAD
from transformer_jax.model.sublayer import Sublayer
from transformer_jax.model.transformer import Transformer
from transformer_jax.paper import formulas
from transformer_jax.paper.examples import compiled, float64, normal, parameters, random_params, row_logits
from transformer_jax.paper.statement import Deviation, Statements, require, require_close, require_equal
from transformer_jax.paper.tiny import SHALLOW, SOURCE, TARGET, TINY, row
from transformer_jax.tasks import translation
from transformer_jax.training.initialization import init_params

STATEMENTS = Statements()


@STATEMENTS.add(
  "3",
  "Figure 1: embeddings and positions, the encoder, the decoder over its own past and the encoder's output, and from "
  "that the logits of the next token.",
  code="model/transformer.py: Transformer.__call__",
  test="tests/model/test_transformer.py::test_logits",
)
def whole_model():
  params = random_params(TINY)
  found = row_logits(TINY, params)(row((SOURCE, TARGET)))[: len(TARGET)]  # padding is behind them
  require_close(found, formulas.transformer(float64(params), SOURCE, TARGET), "the logits of the whole model")


@STATEMENTS.add(
  "3",
  "The decoder makes one token at a time and reads those that it made before.",
  code="model/transformer.py: Transformer.decode_step",
  test="tests/model/test_decode_step.py::test_beams_that_change_places_equal_the_whole_path_of_each",
)
def one_token_at_a_time():
  # Three outputs side by side: two begin with the same tokens, and before the last token they change places.
  outputs, order = [[5, 9, 11, 30], [5, 9, 12, 13], [5, 17, 4, 6]], [2, 0, 1]
  parents = [[0, 0, 0], [0, 0, 0], [0, 1, 2], order]

  def logits(model: Transformer, source: jax.Array) -> jax.Array:
    valid = source != PAD
    memory = model.encode(source, jnp.arange(len(source)), masking.padding_mask(valid, valid))
    cache, steps = model.init_cache(model.precompute_cross_attention(memory, valid), max_length=7, beams=3), []
    for position in range(4):
      before = [formulas.BEGIN if position == 0 else tokens[position - 1] for tokens in outputs]
      tokens = jnp.array([before[i] for i in order] if position == 3 else before)
      hidden, cache = model.decode_step(cache, jnp.int32(position), jnp.array(parents[position]), tokens)
      steps.append(model.logits(hidden))
    return jnp.stack(steps)

  params = random_params(SHALLOW)
  found = compiled(Transformer(SHALLOW), method=logits)(params, np.array([*SOURCE, PAD, PAD]))
  expected = np.array([formulas.transformer(float64(params), SOURCE, tokens) for tokens in outputs]).swapaxes(0, 1)
  require_close(found[:3], expected[:3], "logits of three outputs side by side, token by token")
  require_close(found[3], expected[3][order], "logits of outputs that changed places")


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
    expected = formulas.encoder_layer(float64(params)[f"layers_{i}"], expected, mask)
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
    expected = formulas.decoder_layer(float64(params)[f"layers_{i}"], expected, float64(memory), causal, cross)
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

  def f(x: jax.Array) -> jax.Array:
    return x @ matrix

  for size in (1, 1e-4):  # of small values epsilon is a large part of the variance
    x = (size * (3 + normal(0, 13, TINY.d_model))).astype(np.float32)
    params = parameters(module, x, f, deterministic=True)
    found = jax.jit(lambda params, x: module.apply({"params": params}, x, f, deterministic=True))(params, x)
    expected = formulas.layer_norm(float64(params)["norm"], float64(x) + f(float64(x)))
    require_close(found, expected, f"a sub-layer and x of about {size:g}")
  x = 3000 + normal(2, 13, TINY.d_model)  # a mean that hides the spread from careless statistics
  found = jax.jit(lambda x: module.apply({"params": params}, x, jnp.zeros_like, deterministic=True))(x)
  require_close(found, formulas.layer_norm(float64(params)["norm"], float64(x)), "a sub-layer and x of about 3000")


@STATEMENTS.add(
  "3.1",
  "All sub-layers and embeddings give vectors of d_model = 512.",
  code="model/config.py: ModelConfig.d_model",
  test="tests/model/test_transformer.py::test_number_of_parameters",
)
def one_width():
  tree = requirements.parameter_shapes(ModelConfig())
  layers = [layer for side in ("encoder", "decoder") for layer in tree[side].values()]
  outputs = [part["output"]["kernel"] for layer in layers for name, part in layer.items() if name.endswith("attention")]
  outputs += [layer["feed_forward"]["outer"]["kernel"] for layer in layers] + [tree["target_embedding"]["table"]]
  require_equal({leaf.shape[-1] for leaf in outputs}, {512}, "widths of sub-layers and embeddings")
  require_equal(len(outputs), 6 * 2 + 6 * 3 + 1, "sub-layers and embeddings")


@STATEMENTS.add(
  "3.1",
  "The decoder's input is the output shifted right by one position.",
  code="data/segments.py: decoder_input",
  test="tests/training/test_step.py::test_positions_and_decoder_input_start_again_in_each_segment",
)
def shifted_right():
  found = translation.decoder_input(jnp.array(TARGET), jnp.arange(len(TARGET)), BOS)
  require_equal(np.asarray(found).tolist(), [2, *TARGET[:-1]], "the decoder's input, behind the begin of sentence, 2")


@STATEMENTS.add(
  "3.1",
  "(The initial values of the parameters are not given.)",
  code="training/initialization.py: init_params",
  test="tests/model/test_attention.py::test_projections_have_the_sizes_of_the_paper_and_glorot_uniform_values",
  deviation=Deviation("Glorot uniform projections, embeddings of N(0, 1/d_model)", "the authors' own code"),
)
def initial_values():
  config = Config(model=ModelConfig(vocab_size=211, num_layers=1, d_model=64, d_ff=101, num_heads=4))
  for name, array in by_name(jax.device_get(jax.jit(lambda: init_params(config, translation.TASK))())).items():
    deviation, largest = float(np.std(array)), float(np.max(np.abs(array)))
    match name.rpartition("/")[2]:
      case "table":
        require(abs(8 * deviation - 1) < 0.05, f"{name} has a standard deviation of {deviation:.3g}, not 1/8")
      case "kernel":  # one side of each is d_model
        limit = math.sqrt(6 / (64 + array.size / 64))
        require(0.97 * limit < largest <= limit, f"{name} has values up to {largest:.3g}, not {limit:.3g}")
      case "scale":
        require((array == 1).all(), f"{name} is not 1")
      case _:
        require((array == 0).all(), f"{name} is not 0")


@STATEMENTS.add(
  "3.1",
  "(The precision of the arithmetic is not given.)",
  code="model/config.py: ModelConfig.dtype",
  test="tests/model/test_embedding.py::test_logits_are_float32_in_bfloat16",
  deviation=Deviation(
    "float32, or by option bfloat16 for matmuls and activations, which the recipes of §5 in `configs/` ask for; "
    "parameters, softmax, logits and loss are float32 in any case",
    "accelerators are several times as fast in bfloat16",
  ),
)
def precision():
  require_equal(ModelConfig().dtype, Dtype.FLOAT32, "the type of matmuls by default")
  config, params = dataclasses.replace(SHALLOW, dtype=Dtype.BFLOAT16), random_params(SHALLOW)
  found = row_logits(config, params)(row((SOURCE, TARGET)))[: len(TARGET)]
  require_equal(found.dtype, jnp.float32, "the type of logits with matmuls in bfloat16")
  exact = formulas.transformer(float64(params), SOURCE, TARGET)
  # Seven layers of matmuls, whose results are each rounded to 8 bits.
  difference = (found - exact) / np.std(exact)
  require_close(difference, np.zeros(difference.shape), "logits in bfloat16, against float64", 0.2)
  require(float(np.max(np.abs(difference))) > 1e-4, "logits in bfloat16 are exact: nothing was rounded")
  _require_float32_inside(config)


def _require_float32_inside(config: ModelConfig) -> None:
  """What is float32 in any case, from operands in bfloat16 to what is found without rounding them again."""
  query, key = (jnp.asarray(normal(seed, n, 1, 5), jnp.bfloat16) for seed, n in ((0, 11), (1, 13)))
  weights = attention.attention_weights(query, key, jnp.ones((11, 13), bool))[0]
  expected = formulas.softmax(float64(query)[:, 0] @ float64(key)[:, 0].T / math.sqrt(5))
  require_close(weights, expected, "softmax of products in bfloat16", 1e-6)

  hidden, table = (jnp.asarray(normal(seed, n, 22), jnp.bfloat16) for seed, n in ((2, 7), (3, 31)))
  logits = embedding.output_logits(table, hidden, config.dtype.value)
  require_close(logits, float64(hidden) @ float64(table).T, "logits of a hidden state in bfloat16", 1e-5)

  x = jnp.asarray(100 + normal(4, 13, config.d_model), jnp.bfloat16)  # the mean has more digits than bfloat16 holds
  module = Sublayer(config)
  params = parameters(module, x, jnp.zeros_like, deterministic=True)
  found = jax.jit(lambda params, x: module.apply({"params": params}, x, jnp.zeros_like, deterministic=True))(params, x)
  expected = formulas.layer_norm(float64(params)["norm"], float64(x))
  require_close(found, expected, "layer normalisation in bfloat16", 0.01)  # its output is rounded


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
  "Another way to say it is two convolutions with kernel size 1.",
  code="model/feed_forward.py: FeedForward",
  test="tests/model/test_feed_forward.py::test_it_is_two_convolutions_of_width_1",
)
def two_convolutions():
  x = normal(0, 13, TINY.d_model)
  params = parameters(FeedForward(TINY), x)

  def convolution(part: str, x: jax.Array) -> jax.Array:
    kernel, bias = params[part]["kernel"], params[part]["bias"]
    module = nn.Conv(kernel.shape[1], kernel_size=(1,))
    return jnp.asarray(module.apply({"params": {"kernel": kernel[None], "bias": bias}}, x))

  expected = convolution("outer", nn.relu(convolution("inner", jnp.asarray(x))))
  require_close(compiled(FeedForward(TINY))(params, x), expected, "the feed-forward network")


@STATEMENTS.add(
  "3.3",
  "The inner layer is d_ff = 2048 wide; each layer of the stacks has its own weights.",
  code="model/config.py: ModelConfig.d_ff",
  test="tests/model/test_transformer.py::test_number_of_parameters",
)
def inner_width():
  tree = requirements.parameter_shapes(ModelConfig())
  kernels = [
    layer["feed_forward"]["inner"]["kernel"].shape for s in ("encoder", "decoder") for layer in tree[s].values()
  ]
  require_equal(kernels, [(512, 2048)] * 12, "shapes of W_1 in all layers")
