"""The claims of teaching material on the Transformer, with the right values; `docs/lecture.md` lists them.

Those on positions are in `test_lecture_positions.py`, and more on attention are in `test_lecture_attention.py`.
"""

import functools
import math
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.model.example import CONFIG, SOURCE, TARGET, module_params, normal, options, perturbed
from tests.paper import test_lecture_attention, test_lecture_positions, test_lecture_recurrent
from tests.paper.documented import DOCS, decimals, scientific
from tests.paper.lecture import PAGE, assert_documented, one_head, weights_of_products
from transformer_jax.analysis import operations
from transformer_jax.config import Config
from transformer_jax.model.attention import MultiHeadAttention, attention_weights, scaled_dot_product_attention
from transformer_jax.model.config import ModelConfig
from transformer_jax.model.embedding import Embedding, embed
from transformer_jax.model.encoder import Encoder
from transformer_jax.model.feed_forward import FeedForward
from transformer_jax.model.masking import causal_mask
from transformer_jax.model.positional_encoding import sinusoids
from transformer_jax.model.sublayer import layer_norm
from transformer_jax.model.transformer import Transformer
from transformer_jax.tasks.translation import TASK
from transformer_jax.training.initialization import init_params
from transformer_jax.training.schedule import inverse_square_root


def test_the_table_names_every_test():
  ours = {"test_lecture": globals()}
  modules = test_lecture_attention, test_lecture_positions, test_lecture_recurrent
  ours |= {module.__name__.split(".")[-1]: vars(module) for module in modules}
  tests = {f"{file}.py::{name}" for file, names in ours.items() for name in names if name.startswith("test_")}
  tests -= {f"test_lecture.py::{name}" for name in ("test_the_table_names_every_test", *ours)}
  assert set(re.findall(r"test_\w+\.py::test_\w+", (DOCS / PAGE).read_text())) == tests


# Attention.


def test_scores_of_112_and_96():
  query, key = np.ones((1, 64)), np.array([[1.75] * 64, [1.5] * 64])
  np.testing.assert_array_equal(query @ key.T, [[112, 96]])
  np.testing.assert_array_equal(query @ key.T / math.sqrt(64), [[14, 12]])
  weights, unscaled = one_head(query, key), one_head(math.sqrt(64) * query, key)
  np.testing.assert_allclose(weights, [[0.8808, 0.1192]], atol=5e-5)
  # Without the scale the second key would be lost: e^-16.
  np.testing.assert_allclose(unscaled, [[1, 1.125e-7]], atol=1e-9, rtol=2e-7)
  numbers = f"64 112 96 14 12 {decimals(weights, 4)} {scientific(unscaled[0, 1], 1)}"
  assert_documented(test_scores_of_112_and_96, "holds", numbers)


FOUR_WORDS = np.array([[8, 4, 12, 0], [4, 8, 0, 12], [0, 4, 8, 16], [4, 4, 4, 4]])


def test_causal_mask_of_four_words():
  weights = weights_of_products(FOUR_WORDS, 16, causal_mask(4))
  written_out = [[1, 0, 0, 0], [0.2689, 0.7311, 0, 0], [0.0900, 0.2447, 0.6652, 0], [0.25, 0.25, 0.25, 0.25]]
  np.testing.assert_allclose(weights, written_out, atol=5e-5)
  exponentials = np.exp(np.where(np.tri(4, dtype=bool), FOUR_WORDS / 4, -np.inf))
  np.testing.assert_allclose(weights, exponentials / exponentials.sum(axis=1, keepdims=True), rtol=1e-6)
  np.testing.assert_array_equal(weights[0], [1, 0, 0, 0])
  np.testing.assert_allclose(weights.sum(axis=1), 1, rtol=1e-6)
  numbers = f"1 {' '.join(f'{weight:g}' for weight in weights[0])}"
  assert_documented(test_causal_mask_of_four_words, "holds", numbers, "softmax(scores / sqrt(d_k))")


def test_scores_of_later_words_do_not_matter():
  later = FOUR_WORDS + np.triu(np.full((4, 4), 1000), 1)
  masked, free = causal_mask(4), np.ones((4, 4), bool)
  expected = weights_of_products(FOUR_WORDS, 16, masked)
  np.testing.assert_array_equal(weights_of_products(later, 16, masked), expected)
  assert not np.allclose(weights_of_products(later, 16, free), weights_of_products(FOUR_WORDS, 16, free))
  assert_documented(test_scores_of_later_words_do_not_matter, "holds", "")


def test_the_output_is_the_weighted_mean_of_the_values():
  d_k, value = 16, normal(0, 3, 1, 5)
  query = math.sqrt(d_k) * np.pad(np.log([0.2, 0.7, 0.1]), (0, 13))[None, None]
  key, mask = np.eye(3, d_k)[:, None], np.ones((1, 3), bool)
  result = scaled_dot_product_attention(jnp.float32(query), jnp.float32(key), value, mask)
  np.testing.assert_allclose(result, 0.2 * value[:1] + 0.7 * value[1:2] + 0.1 * value[2:], atol=1e-6)
  test = test_the_output_is_the_weighted_mean_of_the_values
  assert_documented(test, "holds", ".2 .7 .1 .2 .7 .1", ".2 V1 + .7 V2 + .1 V3")


# Why the products are scaled.

DRAWS = {
  "normal": (lambda generator, shape: generator.standard_normal(shape), 3),
  "uniform": (lambda generator, shape: generator.uniform(-math.sqrt(3), math.sqrt(3), shape), 9 / 5),
}


@pytest.mark.parametrize("d_k", [3, 64, 512])
@pytest.mark.parametrize("parts", DRAWS)
def test_the_variance_of_a_product_is_d_k(parts, d_k):
  draw, fourth_moment = DRAWS[parts]
  samples = 5003
  q, k, other = draw(np.random.default_rng(d_k), (3, samples, d_k))
  products = np.sum(q * k, axis=1)
  # A sample variance errs by Var sqrt((kurtosis - 1) / samples); one part's product has kurtosis fourth_moment^2.
  relative_error = math.sqrt((2 + (fourth_moment**2 - 3) / d_k) / samples)
  assert products.var() == pytest.approx(d_k, rel=4 * relative_error)
  if parts == "normal":
    # The scaled scores have variance 1, so that two of them differ by one of 2: log y_1 / y_2. A sample is a head.
    weights = attention_weights(jnp.float32(q)[None], jnp.float32([k, other]), np.ones((1, 2), bool))
    ratios = np.log(np.asarray(weights, np.float64)[:, 0])
    assert (ratios[:, 0] - ratios[:, 1]).var() == pytest.approx(2, rel=4 * relative_error)
  assert_documented(test_the_variance_of_a_product_is_d_k, "holds", "0 1 1", "Var(q.k) = d_k")


def test_jacobian_of_the_softmax():
  n, scores = 5, normal(0, 5)
  key, mask = jnp.eye(n)[:, None], np.ones((1, n), bool)  # with these keys the products are the query itself

  def softmax(scores):
    return attention_weights(math.sqrt(n) * scores[None, None], key, mask)[0, 0]

  jacobian = jax.jit(jax.jacobian(softmax))(scores)
  y = np.exp(scores) / np.sum(np.exp(scores))
  for i in range(n):
    for j in range(n):
      assert jacobian[i, j] == pytest.approx(y[i] * (1 - y[i]) if i == j else -y[i] * y[j], abs=1e-6)
  formulas = "y_i (1 - y_i) on the diagonal", "-y_i y_j off it"
  assert_documented(test_jacobian_of_the_softmax, "holds", "1", *formulas)


def largest_entries(y):
  """The largest entry of each Jacobian; it is on the diagonal, as y_j <= 1 - y_i: `[queries, keys]`."""
  return np.max(y * (1 - y), axis=-1)


def drawn_largest_entries(d_k, keys):
  """Those of 400,000 queries, with the scale and without, in NumPy: given |q|, the products are normal."""
  generator, found = np.random.default_rng(keys), []
  for _ in range(20):
    norms = np.sqrt(generator.chisquare(d_k, (20_000, 1)))
    products = norms * generator.standard_normal((20_000, keys))
    found.append([])
    for scores in (products / math.sqrt(d_k), products):
      y = np.exp(scores - scores.max(axis=1, keepdims=True))
      found[-1].append(largest_entries(y / y.sum(axis=1, keepdims=True)))
  return [np.concatenate(part) for part in zip(*found, strict=True)]


def test_without_the_scale_many_gradients_are_nearly_gone():
  d_k, samples, numbers = 512, 503, "512"
  generator = np.random.default_rng(0)
  for keys in (10, 64):
    with_scale, without = drawn_largest_entries(d_k, keys)
    lost = np.mean(without < 0.001)
    # The same from the model's own weights, with fewer samples: within four standard errors.
    query, key = (generator.standard_normal((n, samples, d_k), np.float32) for n in (1, keys))  # a sample is a head
    mask = np.ones((1, keys), bool)
    ours, unscaled = (
      largest_entries(np.asarray(attention_weights(np.float32(factor) * query, key, mask)))
      for factor in (1, math.sqrt(d_k))
    )
    assert ours.mean() == pytest.approx(with_scale.mean(), abs=0.006)
    assert unscaled.mean() == pytest.approx(without.mean(), abs=0.015)
    assert not np.any(ours < 0.001)
    assert np.mean(unscaled < 0.001) == pytest.approx(lost, abs=0.09)
    numbers += f" {keys} {decimals([without.mean(), with_scale.mean()], 3)} .001"
    if keys == 10:
      numbers += f" {10 * lost:.0f} 10"
    else:
      assert 0.45 < lost < 0.48
  test = test_without_the_scale_many_gradients_are_nearly_gone
  assert_documented(test, "holds corrected", numbers, "below .001 for nearly half of the queries")


# The model.


def test_without_positions_the_encoder_is_permutation_equivariant():
  encoder, x, mask = Encoder(CONFIG), normal(0, SOURCE, CONFIG.d_model), np.ones((SOURCE, SOURCE), bool)
  encode_with = jax.jit(functools.partial(encoder.apply, deterministic=True))
  params = {"params": module_params(encoder, x, mask, deterministic=True)}

  def encode(x):
    return np.asarray(encode_with(params, x, mask))

  order = np.random.default_rng(1).permutation(SOURCE)
  np.testing.assert_allclose(encode(x[order]), encode(x)[order], atol=2e-5)
  positions = np.asarray(sinusoids(jnp.arange(SOURCE), CONFIG.d_model))
  assert np.max(np.abs(encode(x[order] + positions) - encode(x + positions)[order])) > 0.1
  assert_documented(test_without_positions_the_encoder_is_permutation_equivariant, "holds", "")


def normalise(x, params=None):
  return np.asarray(layer_norm(CONFIG).apply(params or layer_norm(CONFIG).init(jax.random.key(0), x), x))


def test_layer_norm_ignores_the_scale_of_its_input():
  x = normal(0, SOURCE, CONFIG.d_model)
  x = (x - x.mean(axis=1, keepdims=True)) / x.std(axis=1, keepdims=True)
  np.testing.assert_allclose(normalise(1000 * x), normalise(x), atol=1e-5)
  np.testing.assert_allclose(normalise(0.1 * x), normalise(x), atol=5e-4)
  np.testing.assert_allclose(normalise(-x), -normalise(x), atol=1e-6)
  # Not where the variance is as small as epsilon, 1e-6.
  np.testing.assert_allclose(normalise(0.001 * x), x / math.sqrt(2), atol=1e-5)
  test = test_layer_norm_ignores_the_scale_of_its_input
  numbers = f"{scientific(layer_norm(CONFIG).epsilon, 0)} 1 2"
  assert_documented(test, "holds corrected", numbers, "1/sqrt(2) of the usual result")


def test_layer_norm_ignores_the_rest_of_the_batch():
  x = normal(0, 3, SOURCE, CONFIG.d_model)
  params = perturbed(layer_norm(CONFIG).init(jax.random.key(0), x))
  changed = 10 * normal(1, *x.shape)
  changed[1, 5] = x[1, 5]
  np.testing.assert_array_equal(normalise(changed, params)[1, 5], normalise(x, params)[1, 5])
  assert_documented(test_layer_norm_ignores_the_rest_of_the_batch, "holds", "")


# Sizes.


@pytest.mark.parametrize("heads", [1, 2, 3, 5, 6])
def test_operations_do_not_depend_on_the_number_of_heads(heads):
  d, query, key = 30, 11, 13
  module = MultiHeadAttention(options(d_model=d, num_heads=heads, d_k=None, d_v=None))
  inputs = normal(0, query, d), normal(1, key, d), np.ones((query, key), bool)
  params = jax.eval_shape(lambda: module.init(jax.random.key(0), *inputs, deterministic=True))
  traced = jax.make_jaxpr(lambda params: module.apply(params, *inputs, deterministic=True))(params)
  projections, scores_and_means = (2 * query + 2 * key) * d * d, 2 * query * key * d
  assert operations.matmuls(traced.jaxpr) == 2 * (projections + scores_and_means)
  # The softmax's do: it has a row for each head and query.
  parts = (jnp.zeros((length, heads, d // heads)) for length in (query, key))
  assert jax.eval_shape(attention_weights, *parts, inputs[-1]).size == heads * query * key
  formulas = "2 (2n + 2m) d^2 + 4nmd for n queries and m keys", "h n m weights"
  assert_documented(test_operations_do_not_depend_on_the_number_of_heads, "holds corrected", "2", *formulas)


HEADS = [1, 4, 8, 16, 32]


@pytest.mark.parametrize("heads", HEADS)
def test_parameters_do_not_depend_on_the_number_of_heads(heads):
  model = ModelConfig(num_heads=heads, num_layers=1)
  params = jax.eval_shape(lambda: init_params(Config(model=model), TASK))
  assert sum(leaf.size for leaf in jax.tree.leaves(params)) == 44_101_632 // 6 + 37_000 * 512
  numbers = f"{44_101_632 + 37_000 * 512:,} {HEADS[0]} {HEADS[-1]}"
  test = test_parameters_do_not_depend_on_the_number_of_heads
  assert_documented(test, "holds", numbers, "d_k = d_v = d_model / h")


@pytest.fixture(scope="module")
def base():
  """The sizes of the base model's parameters, by path."""
  model = ModelConfig(vocab_size=37_000, num_layers=6, d_model=512, d_ff=2048, num_heads=8)
  params = jax.eval_shape(lambda: init_params(Config(model=model), TASK))
  leaves = jax.tree_util.tree_leaves_with_path(params)
  return {jax.tree_util.keystr(path, simple=True, separator="/"): leaf.size for path, leaf in leaves}


def size(base, pattern):
  return sum(size for path, size in base.items() if re.search(pattern, path))


def test_parameters_of_the_projections_of_queries_keys_and_values(base):
  encoder, decoder = (size(base, f"^{side}/.*/(query|key|value)/kernel$") for side in ("encoder", "decoder"))
  assert encoder == 6 * 3 * 512 * 512 == 4_718_592
  assert decoder == 6 * 2 * 3 * 512 * 512 == 9_437_184
  test = test_parameters_of_the_projections_of_queries_keys_and_values
  assert_documented(test, "holds", f"{encoder:,} {decoder:,} 6 3 512", "6 * 3 * 512^2 and twice that number")


def test_parameters_of_the_feed_forward_layers(base):
  for side in ("encoder", "decoder"):
    weights = size(base, f"^{side}/.*/feed_forward/.*/kernel$")
    assert weights == 6 * 2 * 512 * 2048 == 12_582_912
    assert_documented(test_parameters_of_the_feed_forward_layers, "holds", f"{weights:,} 6 2 512 2048")


def test_parameters_that_such_counts_leave_out(base):
  assert size(base, "^encoder/.*/output/kernel$") == 6 * 512 * 512 == 1_572_864
  assert size(base, "^decoder/.*/output/kernel$") == 6 * 2 * 512 * 512 == 3_145_728
  assert size(base, "/feed_forward/.*/bias$") == 2 * 6 * (2048 + 512) == 30_720
  assert size(base, "/norm/(scale|bias)$") == 6 * (2 + 3) * 2 * 512 == 30_720
  patterns = "^encoder/.*/output/kernel$", "^decoder/.*/output/kernel$", "/feed_forward/.*/bias$", "/norm/(scale|bias)$"
  numbers = " ".join(f"{size(base, pattern):,}" for pattern in patterns)
  assert_documented(test_parameters_that_such_counts_leave_out, "holds", numbers)


def test_parameters_without_embeddings(base):
  counted = 4_718_592 + 9_437_184 + 2 * 12_582_912
  assert counted == 39_321_600
  left_out = 1_572_864 + 3_145_728 + 30_720 + 30_720
  assert size(base, "^(encoder|decoder)/") == counted + left_out == 44_101_632
  assert sum(base.values()) == 44_101_632 + 37_000 * 512
  numbers = f"{counted:,} {left_out:,} {counted + left_out:,}"
  assert_documented(test_parameters_without_embeddings, "holds corrected", numbers)


def test_two_layers_whose_sum_is_near_65_million_by_chance(base):
  counted, output, left_out = 39_321_600, 50_000 * 512, 4_780_032
  layers, tokens = size(base, "^(encoder|decoder)/"), size(base, "^target_embedding/")
  assert layers == counted + left_out and tokens == 37_000 * 512 and size(base, ".") == layers + tokens
  sums = f"{counted + output:,} {output:,} {50_000:,} {layers + output:,} {37_000:,} {tokens:,} {layers + tokens:,}"
  assert_documented(
    test_two_layers_whose_sum_is_near_65_million_by_chance,
    "does not hold",
    f"{counted:,} {output:,} 65 {sums}",
  )


def test_the_matrices_of_the_feed_forward_layer_do_not_depend_on_the_length():
  module = FeedForward(ModelConfig())

  def shapes(length):
    x = jax.ShapeDtypeStruct((length, 512), jnp.float32)
    params = jax.eval_shape(lambda x: module.init(jax.random.key(0), x), x)["params"]
    return params["inner"]["kernel"].shape + params["outer"]["kernel"].shape

  d, hidden, *outer = shapes(7)
  assert shapes(11) == (d, hidden, *outer) == (512, 4 * 512, 4 * 512, 512)
  assert_documented(
    test_the_matrices_of_the_feed_forward_layer_do_not_depend_on_the_length,
    "does not hold",
    f"{d:,} {hidden:,} {outer[0]:,} {outer[1]:,}",
    "W_1 is M x 4d and W_2 is M x d",
    "W_1 is d x 4d and W_2 is 4d x d",
  )


def test_shared_embeddings_save_parameters_and_no_operation():
  shared, own = options(num_layers=1), options(num_layers=1, share_embeddings=False, share_logits=False)
  source, target = np.arange(SOURCE), np.arange(TARGET)

  def operations_of(config):
    model = Transformer(config)

    def forward(params):
      return model.apply(params, model.apply(params, source, target), method="logits")

    params = jax.eval_shape(lambda: {"params": init_params(Config(model=config), TASK)})
    return operations.count(jax.make_jaxpr(forward)(params).jaxpr), sum(leaf.size for leaf in jax.tree.leaves(params))

  (operations_shared, with_one), (operations_own, with_three) = operations_of(shared), operations_of(own)
  assert operations_shared == operations_own
  assert with_three - with_one == 2 * CONFIG.vocab_size * CONFIG.d_model
  assert_documented(
    test_shared_embeddings_save_parameters_and_no_operation, "does not hold", f"2 37,000 512 {2 * 37_000 * 512:,}"
  )


def test_embeddings_are_learned_from_random_numbers():
  tokens, d, weights = np.array([3, 5, 3]), 22, normal(0, 3, 22)
  embedding = Embedding(options(d_model=d))
  init = jax.jit(embedding.init)
  tables = [np.asarray(init(jax.random.key(seed), tokens)["params"]["table"]) for seed in (1, 2)]
  assert np.max(np.abs(tables[0] - tables[1])) > 0.1
  assert np.std(tables) == pytest.approx(d**-0.5, rel=0.1)
  gradient = jax.grad(lambda table: jnp.sum(weights * embed(table, tokens)))(jnp.asarray(tables[0]))
  expected = np.zeros_like(tables[0])
  np.add.at(expected, tokens, math.sqrt(d) * weights)
  np.testing.assert_allclose(gradient, expected, rtol=1e-6)
  assert_documented(test_embeddings_are_learned_from_random_numbers, "does not hold", "")


# Training.


def test_the_learning_rate_of_base_peaks_at_step_4000():
  rates = np.asarray(inverse_square_root(512, 4000)(jnp.arange(20_000)))  # of steps 1, 2, ...
  assert rates[4000 - 1] == pytest.approx(6.98771e-4, rel=1e-6)
  assert rates[4000 - 1] == pytest.approx((512 * 4000) ** -0.5, rel=1e-6)
  assert np.all(np.diff(rates[:4000]) > 0)
  assert np.all(np.diff(rates[3999:]) < 0)
  assert rates[1000 - 1] == pytest.approx(6.98771e-4 / 4, rel=1e-6)  # in a line with the step
  assert rates[16_000 - 1] == pytest.approx(6.98771e-4 / 2, rel=1e-6)  # with its inverse square root
  numbers = f"4000 512 4000 0.5 {scientific(rates[4000 - 1], 5)}"
  assert_documented(test_the_learning_rate_of_base_peaks_at_step_4000, "holds", numbers, "(512 * 4000)^-0.5")
