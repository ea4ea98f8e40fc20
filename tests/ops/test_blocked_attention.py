"""Eq. 1 in blocks is eq. 1, with its gradients, for masks of every kind."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.model.example import module_params, normal, options
from transformer_jax.model import attention
from transformer_jax.model.attention import MultiHeadAttention, scaled_dot_product_attention
from transformer_jax.model.masking import causal_mask
from transformer_jax.ops import blocked_attention as blocks
from transformer_jax.ops.blocked_attention import BLOCK, blocked_attention
from transformer_jax.paper import formulas

QUERY, KEY, HEADS, D_K, D_V = 3 * BLOCK, 211, 3, 5, 7


def segments(seed, length, mean=11):
  return np.cumsum(np.random.default_rng(seed).random(length) < 1 / mean)


def packed(seed):
  """Sentences of some tokens, and their translations; the last queries are padding and may look at nothing."""
  of_queries, of_keys = segments(seed, QUERY), segments(seed + 1, KEY)
  mask = of_queries[:, None] == of_keys[None]
  mask[-BLOCK - 3 :] = False
  return mask


def masks():
  random = np.random.default_rng(3).random((QUERY, KEY)) < 0.3
  distant = np.zeros((QUERY, KEY), bool)
  distant[:, [0, -1]] = True
  return {
    "packed": packed(0),
    "all": np.ones((QUERY, KEY), bool),
    "none": np.zeros((QUERY, KEY), bool),
    "random": random,
    "first and last": distant,
    "causal": np.tril(np.ones((QUERY, KEY), bool)),
    "packed and causal": packed(0) & np.tril(np.ones((QUERY, KEY), bool)),
  }


@pytest.fixture(scope="module")
def qkv():
  return normal(1, QUERY, HEADS, D_K), normal(2, KEY, HEADS, D_K), normal(3, KEY, HEADS, D_V)


def gradients(function, *arguments):
  """Those of a sum with random weights."""
  weights = normal(4, QUERY, HEADS, D_V)
  return jax.jit(jax.grad(lambda qkv: jnp.sum(function(*qkv, *arguments) * weights)))


@pytest.mark.parametrize("name", masks())
def test_it_is_equation_1(qkv, name):
  mask = masks()[name]
  result = jax.jit(blocked_attention)(*qkv, mask)
  for head in range(HEADS):
    expected = formulas.attention(*(x[:, head].astype(np.float64) for x in qkv), mask)
    np.testing.assert_allclose(result[:, head], expected, atol=2e-6)
  found, expected = (gradients(one, mask)(qkv) for one in (blocked_attention, scaled_dot_product_attention))
  for one, other in zip(found, expected, strict=True):
    np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("shared", [False, True])
def test_each_sequence_of_a_batch_has_its_own_windows(qkv, shared):
  batch = [np.stack([x, x[::-1]]) for x in qkv]
  each = np.stack([packed(0), packed(7)])
  axes = (0, 0, 0, None if shared else 0)
  mask = each[0] if shared else each

  def total(function):
    weights = normal(4, 2, QUERY, HEADS, D_V)
    return lambda batch: jnp.sum(jax.vmap(function, axes)(*batch, mask) * weights)

  found, expected = (
    jax.jit(jax.value_and_grad(total(one)))(batch) for one in (blocked_attention, scaled_dot_product_attention)
  )
  jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5), found, expected)


def test_bfloat16_goes_in_and_out(qkv):
  short = [x.astype(jnp.bfloat16) for x in qkv]
  mask = packed(0)
  result = blocked_attention(*short, mask)
  exact = blocked_attention(*(x.astype(np.float32) for x in short), mask)
  assert result.dtype == jnp.bfloat16
  np.testing.assert_array_equal(result, exact.astype(jnp.bfloat16))  # nothing else is rounded
  assert {x.dtype for x in gradients(blocked_attention, mask)(short)} == {jnp.dtype(jnp.bfloat16)}


def test_the_weights_of_all_queries_are_never_held(qkv):
  mask = packed(0)
  wide = f"{HEADS},{QUERY},{KEY}"
  texts = [
    gradients(one, mask).lower(qkv).compile().as_text() for one in (blocked_attention, scaled_dot_product_attention)
  ]
  assert [wide in text for text in texts] == [False, True]


def test_a_window_holds_few_keys_of_a_packed_row(monkeypatch):
  """It would be no error, but slow, to read all keys."""
  sizes = []
  jax.lax.map(
    lambda start: blocks._in_window(
      jax.lax.dynamic_slice_in_dim(jnp.asarray(np.eye(512, dtype=bool)), start, BLOCK),
      lambda first, size: jax.debug.callback(lambda: sizes.append(size)) or first,
    ),
    jnp.arange(0, 512, BLOCK),
  )
  jax.effects_barrier()
  assert sizes == [96] * (512 // BLOCK)


@pytest.mark.parametrize(
  ("length", "changes", "expected"),
  [(512, {}, True), (448, {}, False), (514, {}, False), (512, {"attention_dropout": 0.1}, False)],
)
def test_which_updates_are_in_blocks(monkeypatch, length, changes, expected):
  monkeypatch.setattr(blocks, "cores", lambda: 2)
  config = options(**changes)
  module, x = MultiHeadAttention(config), normal(1, length, config.d_model)
  params = module_params(module, x, x, causal_mask(length), deterministic=True)
  calls = []
  monkeypatch.setattr(attention, "blocked_attention", lambda *args: (calls.append(1), blocked_attention(*args))[1])

  def apply(deterministic, **options):
    rngs = {"dropout": jax.random.key(0, impl="threefry2x32")}
    return module.apply(
      {"params": params}, x, x, causal_mask(length), deterministic=deterministic, rngs=rngs, **options
    )

  plain = apply(True)
  apply(False, mutable=["intermediates"])  # shows the weights
  assert not calls
  updated = apply(False)
  assert bool(calls) == expected
  if not changes:
    np.testing.assert_allclose(updated, plain, atol=1e-5)


def test_only_a_cpu_of_few_cores_has_blocks(monkeypatch):
  monkeypatch.setattr(blocks, "cores", lambda: 4)
  assert blocks.suits(512, 521)
  monkeypatch.setattr(blocks, "cores", lambda: 5)
  assert not blocks.suits(512, 521)
  monkeypatch.setattr(blocks, "cores", lambda: 4)
  monkeypatch.setattr(blocks.devices, "on_cpu", lambda: False)
  assert not blocks.suits(512, 521)
