import functools
from types import SimpleNamespace

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
import scipy.stats

from transformer_jax.config import Config
from transformer_jax.model.config import Dtype, ModelConfig
from transformer_jax.model.embedding import output_logits
from transformer_jax.paper import formulas
from transformer_jax.runtime import devices
from transformer_jax.tasks import token_prediction
from transformer_jax.tasks.token_prediction import Prediction, output_layer_sums
from transformer_jax.training.chunked_loss import chunk_size, chunked_sums
from transformer_jax.training.loss import r_drop_sums, token_sums
from transformer_jax.training.sums import Sums, joint_loss, means, total_loss

TOKENS, MODEL, VOCAB = 17, 5, 13


def logits_of(table, hidden):
  return hidden @ table.T


sums_of = jax.jit(token_sums, static_argnums=3)


@pytest.fixture(scope="module")
def example():
  generator = np.random.default_rng(0)
  logits = (3 * generator.standard_normal((TOKENS, VOCAB))).astype(np.float32)
  return logits, generator.integers(VOCAB, size=TOKENS), generator.random(TOKENS) < 0.7


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.5])
def test_cross_entropy_against_the_smoothed_distribution(smoothing, example):
  """§5.4: -sum q log p with q = 1 - eps + eps / V on the target and eps / V elsewhere."""
  logits, targets, valid = example
  exact = logits[valid].astype(np.float64), targets[valid]
  sums = sums_of(logits, targets, valid, smoothing)
  assert float(sums.loss) == pytest.approx(formulas.cross_entropy(*exact, smoothing), rel=1e-6)
  assert float(sums.negative_log_likelihood) == pytest.approx(formulas.cross_entropy(*exact, 0.0), rel=1e-6)
  assert float(sums.correct) == np.sum(np.argmax(logits, axis=1)[valid] == targets[valid])
  assert float(sums.tokens) == np.sum(valid)
  assert all(value.dtype == jnp.float32 and value.shape == () for value in jax.tree.leaves(sums))


def test_padding_counts_for_nothing(example):
  logits, targets, valid = example
  sums = sums_of(logits, targets, valid, 0.1)
  other = np.where(valid[:, None], logits, 1e4 * logits)
  assert sums_of(other, np.where(valid, targets, 0), valid, 0.1) == sums
  nothing = sums_of(logits, targets, np.zeros(TOKENS, bool), 0.1)
  assert [float(value) for value in jax.tree.leaves(nothing)] == [0.0] * 4


def test_large_logits_do_not_overflow():
  logits = np.array([[1e4, 0, -1e4], [-1e4, 0, 1e4]], np.float32)
  sums = sums_of(logits, np.array([0, 0]), np.ones(2, bool), 0.0)
  assert float(sums.loss) == pytest.approx(2e4)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_gradient_is_that_of_the_formula(smoothing, example):
  """And p - q, and none at padding."""
  logits, targets, valid = example

  def plain(logits):
    of_target = logits[np.arange(TOKENS), targets]
    loss = jax.nn.logsumexp(logits, axis=1) - (1 - smoothing) * of_target - smoothing * jnp.mean(logits, axis=1)
    return 3 * jnp.sum(jnp.where(valid, loss, 0))

  found = jax.jit(jax.grad(lambda logits: 3 * token_sums(logits, targets, valid, smoothing).loss))(logits)
  q = (1 - smoothing) * np.eye(VOCAB)[targets] + smoothing / VOCAB
  exact = 3 * (formulas.softmax(logits.astype(np.float64)) - q)
  assert found.dtype == jnp.float32 and not np.any(found[~valid])
  np.testing.assert_allclose(found[valid], exact[valid], rtol=1e-5, atol=1e-6)
  np.testing.assert_allclose(found, jax.jit(jax.grad(plain))(logits), rtol=1e-5, atol=1e-6)


@pytest.fixture(scope="module")
def whole(example):
  """A table and vectors, and the gradients and the sums of their logits as a whole."""
  _, targets, valid = example
  generator = np.random.default_rng(1)
  hidden = generator.standard_normal((TOKENS, MODEL)).astype(np.float32)
  table = generator.standard_normal((VOCAB, MODEL)).astype(np.float32)

  def plain(table, hidden):
    sums = token_sums(hidden @ table.T, targets, valid, 0.1)
    return sums.loss, sums

  return table, hidden, jax.jit(jax.grad(plain, (0, 1), has_aux=True))(table, hidden)


@pytest.mark.parametrize("chunk", [1, 5, 16, 17, 256])
def test_chunks_change_neither_values_nor_gradients(chunk, example, whole):
  (_, targets, valid), (table, hidden, expected) = example, whole

  def chunked(table, hidden):
    sums = chunked_sums(logits_of, table, hidden, jnp.asarray(targets), jnp.asarray(valid), 0.1, chunk)
    return sums.loss, sums

  found = jax.jit(jax.grad(chunked, (0, 1), has_aux=True))(table, hidden)
  for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
    np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
  ("on_cpu", "most", "examples"),
  [(True, 256, {25088: 256, 17: 17, 257: 129}), (False, 8192, {25088: 6272, 17: 17, 8193: 4097})],
  ids=["CPU", "accelerator"],
)
def test_chunks_have_equally_many_tokens(on_cpu, most, examples, monkeypatch):
  """But for less than one token of padding for each chunk."""
  monkeypatch.setattr(devices, "on_cpu", lambda: on_cpu)
  assert chunk_size(0) == 1
  assert {tokens: chunk_size(tokens) for tokens in examples} == examples
  for tokens in [*range(1, 3 * most), *range(3 * most, 1_000_000, 997)]:
    chunk = chunk_size(tokens)
    chunks = -(-tokens // chunk)
    assert 1 <= chunk <= most and chunks == -(-tokens // most) and 0 <= chunks * chunk - tokens < chunks


def test_logits_of_all_tokens_are_never_held():
  """The largest array, forwards and backwards, has one chunk of tokens."""
  tokens, chunk = 1024, 64
  hidden, table = jnp.zeros((tokens, MODEL)), jnp.zeros((VOCAB * 11, MODEL))
  targets, valid = jnp.zeros(tokens, jnp.int32), jnp.ones(tokens, bool)

  def loss(table):
    return chunked_sums(logits_of, table, hidden, targets, valid, 0.1, chunk).loss

  compiled = jax.jit(jax.grad(loss)).lower(table).compile()
  assert compiled.memory_analysis().temp_size_in_bytes < tokens * VOCAB * 11 * 4 / 2


def test_a_bias_of_the_output_layer_is_float32(example):
  """With bfloat16 matmuls too: a rounded bias of this size would change the loss by some thousandths."""
  _, targets, valid = example
  generator = np.random.default_rng(4)
  config = Config(model=ModelConfig(vocab_size=VOCAB, d_model=MODEL + 1, num_heads=1, dtype=Dtype.BFLOAT16))
  table, hidden = (jnp.asarray(generator.standard_normal((n, MODEL + 1)), jnp.float32) for n in (VOCAB, TOKENS))
  bias = jnp.asarray(10 * generator.standard_normal(VOCAB), jnp.float32)
  prediction = Prediction(hidden, jnp.asarray(targets), jnp.asarray(valid))

  def whole(table, bias):
    logits = output_logits(table, hidden, "bfloat16") + bias[None]
    return token_sums(logits, jnp.asarray(targets), jnp.asarray(valid), config.train.label_smoothing).loss

  class Output(nn.Module):
    def setup(self):
      self.table = self.param("table", nn.initializers.zeros, table.shape)
      self.bias = self.param("bias", nn.initializers.zeros, bias.shape)

    def output_table(self):
      return self.table

    def output_bias(self):
      return self.bias

  def chunked(table, bias):
    return output_layer_sums(config, Output(), {"table": table, "bias": bias}, prediction).loss

  (found, gradients), (expected, others) = (
    jax.jit(jax.value_and_grad(f, (0, 1)))(table, bias) for f in (chunked, whole)
  )
  np.testing.assert_allclose(found, expected, rtol=1e-6)
  np.testing.assert_allclose(gradients[1], others[1], rtol=1e-5, atol=1e-6)
  np.testing.assert_allclose(gradients[0], others[0], rtol=2e-2, atol=2e-2)  # sums of bfloat16 products


def kl(p, q):
  return scipy.stats.entropy(p, q, axis=-1)


@pytest.mark.parametrize("alpha", [0.0, 5.0])
def test_r_drop_is_its_formula(alpha, example):
  (_, targets, valid) = example
  logits = np.random.default_rng(5).standard_normal((TOKENS, 2, VOCAB)).astype(np.float32)
  p, q = np.moveaxis(scipy.special.softmax(logits.astype(np.float64), axis=-1), 1, 0)
  smooth = 0.9 * np.eye(VOCAB)[np.array(targets)] + 0.1 / VOCAB
  cross_entropies = [-np.sum(smooth * np.log(x), axis=-1) for x in (p, q)]
  expected = np.mean(cross_entropies, axis=0) + alpha / 4 * (kl(p, q) + kl(q, p))
  of_both = jnp.asarray(logits[:, 0]), jnp.asarray(logits[:, 1])
  found = r_drop_sums(of_both, jnp.asarray(targets), jnp.asarray(valid), 0.1, alpha)
  np.testing.assert_allclose(found.loss, np.sum(expected[np.array(valid)]), rtol=1e-5)
  of_passes = [token_sums(jnp.asarray(logits[:, i]), jnp.asarray(targets), jnp.asarray(valid), 0.1) for i in range(2)]
  for name in ("negative_log_likelihood", "correct", "tokens"):
    mean = (getattr(of_passes[0], name) + getattr(of_passes[1], name)) / 2
    np.testing.assert_allclose(getattr(found, name), mean, rtol=1e-6)


def plain_r_drop(logits, targets, valid, smoothing, alpha):
  """The formula as it stands, whose gradient JAX finds."""
  log_p, log_q = (jax.nn.log_softmax(one, axis=-1) for one in logits)
  smooth = (1 - smoothing) * jax.nn.one_hot(targets, VOCAB) + smoothing / VOCAB
  cross_entropy = -jnp.sum(smooth * (log_p + log_q), axis=-1) / 2
  divergences = jnp.sum((jnp.exp(log_p) - jnp.exp(log_q)) * (log_p - log_q), axis=-1)
  return jnp.sum(jnp.where(valid, cross_entropy + alpha / 4 * divergences, 0))


@pytest.mark.parametrize("alpha", [0.0, 5.0])
def test_gradient_of_r_drop(alpha, example):
  (_, targets, valid) = (jnp.asarray(each) for each in example)
  logits = tuple(3 * jax.random.normal(jax.random.key(8), (2, TOKENS, VOCAB)))

  def own(logits):
    return 0.7 * r_drop_sums(logits, targets, valid, 0.1, alpha).loss

  def plain(logits):
    return 0.7 * plain_r_drop(logits, targets, valid, 0.1, alpha)

  for found, expected in zip(*(jax.jit(jax.grad(f))(logits) for f in (own, plain)), strict=True):
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)
    assert not np.any(found[~valid])


def test_r_drop_in_chunks(example, whole):
  """Values and gradients of the chunks are those of all tokens at once."""
  (_, targets, valid), (table, _, _) = example, whole
  hidden = np.random.default_rng(6).standard_normal((TOKENS, 2, MODEL)).astype(np.float32)
  sums_of = functools.partial(r_drop_sums, alpha=5.0)

  def logits_of_both(table, hidden):
    return hidden[:, 0] @ table.T, hidden[:, 1] @ table.T

  def plain(table, hidden):
    sums = sums_of(logits_of_both(table, hidden), jnp.asarray(targets), jnp.asarray(valid), 0.1)
    return sums.loss, sums

  def chunked(table, hidden):
    sums = chunked_sums(logits_of_both, table, hidden, jnp.asarray(targets), jnp.asarray(valid), 0.1, 5, sums_of)
    return sums.loss, sums

  found, expected = (jax.jit(jax.grad(f, (0, 1), has_aux=True))(table, hidden) for f in (chunked, plain))
  for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
    np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_the_loss_that_tells_the_best_checkpoint_is_what_training_minimises():
  """With two losses, each is a mean over its own count; other numbers of the validation do not count."""
  other = Sums(*np.float32([11, 5, 2, 3]))
  both = Sums(*np.float32([17, 13, 4, 7]), {"next_sentence": other})
  line = means(both) | {"bleu": 40.0, "samples": "text"}
  assert total_loss(line) == pytest.approx(17 / 7 + 11 / 3)
  joint = joint_loss(both, {"tokens": np.float32(7), "next_sentence": np.float32(3)}) / 7
  assert total_loss(line) == pytest.approx(float(joint))
  assert total_loss(means(other)) == pytest.approx(11 / 3)


def test_two_passes_have_no_more_logits_at_a_time_than_one(monkeypatch):
  """600 logits are three chunks of 200, each of 100 tokens with the logits of both passes."""
  chunks = []
  monkeypatch.setattr(token_prediction, "chunked_sums", lambda *given: chunks.append(given[6]))
  model = SimpleNamespace(apply=lambda variables, method: np.zeros((VOCAB, MODEL), np.float32))
  prediction = Prediction(jnp.zeros((600, MODEL)), jnp.zeros(600, jnp.int32), jnp.ones(600, bool))
  output_layer_sums(Config(), model, {}, prediction, twice=True)
  assert chunks == [100]
