"""The losses of benchmarks/exposure_bias.py, token by token in NumPy, and their means."""

import numpy as np
import pytest

from tests.model.example import float64
from tests.recurrent import reference
from tests.recurrent.example import example
from transformer_jax.model.special_tokens import BOS, EOS, PAD
from transformer_jax.paper.formulas import softmax

SOURCES = [[5, 9, 30, EOS], [8, EOS]]
TARGETS = [[7, 11, EOS], [13, 4, 29, 6, EOS]]


@pytest.fixture
def bias(program):
  return program("exposure_bias")


def padded(sentences, length):
  return np.array([[*sentence, *[PAD] * (length - len(sentence))] for sentence in sentences], np.int32)


def losses_by_hand(config, params, source, target, own):
  """The reference's losses, and the inputs: the reference, or the most probable tokens that end nothing."""
  inputs, losses = [BOS], []
  for token in target:
    p = softmax(reference.logits(config, params, np.array(source), np.array([*inputs[1:], PAD]))[-1])
    losses.append(-np.log(p[token]))
    inputs.append(int(np.argmax(np.where(np.isin(np.arange(31), (PAD, BOS, EOS)), 0, p))) if own else token)
  return losses, inputs


@pytest.mark.long
@pytest.mark.parametrize("name", ["bahdanau", "reversed"])
def test_losses_of_a_model_that_reads_the_reference_or_its_own_output(bias, name):
  model, params = example(name)
  found = bias.losses(model, params, padded(SOURCES, 6), padded(TARGETS, 5))
  for side, own in ((found.reference, False), (found.own, True)):
    assert side.shape == (2, 5)
    for losses, source, target in zip(side, SOURCES, TARGETS, strict=True):
      expected, inputs = losses_by_hand(model.config, float64(params), source, target, own)
      np.testing.assert_allclose(losses, expected + [0] * (5 - len(target)), rtol=1e-4)
      if own:
        same = [inputs[1 : t + 1] == target[:t] for t in range(len(target))]
        assert found.same[SOURCES.index(source), : len(target)].tolist() == same


def test_means_are_over_tokens(bias):
  real = np.array([[True] * 4, [True, True, False, False], [True, False, False, False]])
  losses = np.arange(12.0).reshape(3, 4)
  found = bias.Losses(losses, 2 * losses + 1, np.arange(4) < np.array([[2], [1], [1]]))
  one, two, rest = bias.grouped(found, real)
  assert [row["positions"] for row in (one, two, rest)] == ["1", "2", "3 to 4"]
  assert [row["tokens"] for row in (one, two, rest)] == [3, 2, 2]
  assert [row["same so far"] for row in (one, two, rest)] == ["100%", "50%", "0%"]
  assert (one["loss, reference"], two["loss, reference"], rest["loss, reference"]) == (4.0, 3.0, 2.5)
  assert (one["loss, own"], two["difference"], rest["difference"]) == (9.0, 4.0, 3.5)
  assert two["standard error"] == pytest.approx(np.sqrt(2 * 2**2) / 2)  # differences of 2 and 6
  assert bias.by_position(found, real) == {
    "tokens": [3, 2, 1, 1], "reference": [4, 3, 2, 3], "own": [9, 7, 5, 7], "same": [1, 0.5, 0, 0]
  }  # fmt: skip
