"""Label smoothing against `torch.nn.functional.cross_entropy`."""

import functools

import jax
import numpy as np
import pytest

from tests.parity.peer import assert_close, required
from transformer_jax.model.embedding import output_logits
from transformer_jax.training.chunked_loss import chunked_sums
from transformer_jax.training.loss import token_sums

torch = required("torch")

TOKENS, MODEL, VOCAB = 37, 11, 29
IGNORED = -1


@pytest.fixture
def example():
  """Table, hidden states, targets, and which of them count."""
  generator = np.random.default_rng(0)
  table = generator.standard_normal((VOCAB, MODEL)).astype(np.float32)
  hidden = generator.standard_normal((TOKENS, MODEL)).astype(np.float32)
  return table, hidden, generator.integers(VOCAB, size=TOKENS), generator.random(TOKENS) < 0.7


def cross_entropy(logits, targets, valid, smoothing):
  return torch.nn.functional.cross_entropy(
    logits,
    torch.from_numpy(np.where(valid, targets, IGNORED)),
    label_smoothing=smoothing,
    ignore_index=IGNORED,
    reduction="sum",
  )


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.3])
def test_sums(smoothing, example):
  table, hidden, targets, valid = example
  logits = hidden @ table.T
  sums = token_sums(logits, targets, valid, smoothing)
  assert_close(sums.loss, cross_entropy(torch.from_numpy(logits), targets, valid, smoothing))
  assert_close(sums.negative_log_likelihood, cross_entropy(torch.from_numpy(logits), targets, valid, 0.0))


@pytest.mark.parametrize("chunk", [7, 256])
@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.3])
def test_gradients(smoothing, chunk, example):
  table, hidden, targets, valid = example

  @functools.partial(jax.value_and_grad, argnums=(0, 1))
  def ours(table, hidden):
    return chunked_sums(output_logits, table, hidden, targets, valid, smoothing, chunk).loss

  peers = [torch.tensor(array, requires_grad=True) for array in (table, hidden)]
  loss = cross_entropy(peers[1] @ peers[0].T, targets, valid, smoothing)
  loss.backward()
  found, gradients = ours(table, hidden)
  assert_close(found, loss.detach())
  for gradient, other in zip(gradients, peers, strict=True):
    assert_close(gradient, other.grad)
