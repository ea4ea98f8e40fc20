"""The matrix that a page draws, from given weights."""

import numpy as np
import pytest

from transformer_jax.decoding.attention import Attention
from transformer_jax.inside.cross_attention import matrix_of
from transformer_jax.inside.scored import Text, Translations, scored
from transformer_jax.runtime.errors import InputError

SOURCE, READ, TARGET = ("a", " b", "</s>"), ("<s>", "c"), ("c", "</s>")
WEIGHTS = np.random.default_rng(0).dirichlet(np.ones(3), (5, 7, 2)).astype(np.float32)  # [layers, heads, query, key]


def test_it_is_the_mean_of_the_last_layers_heads():
  found = matrix_of(Attention(SOURCE, READ, TARGET, {"cross": WEIGHTS, "encoder": WEIGHTS}))
  assert (found.query, found.key) == (["c", "</s>"], ["a", "␣b", "</s>"])
  drawn = np.zeros((2, 3))
  for row, column, weight in found.cells:
    drawn[row, column] = weight
  expected = np.mean([WEIGHTS[4, head] for head in range(7)], axis=0)
  np.testing.assert_allclose(drawn, np.where(expected < 0.02, 0, expected), atol=5.1e-4)


@pytest.mark.parametrize("token", ["안녕하세요", "WWWWWW"])
def test_the_margins_have_room_for_wide_letters(token):
  """A letter of East Asia is as wide as it is high, which are 12 units; a W is nearly so."""
  found = matrix_of(Attention((token, "</s>"), ("<s>",), (token, "</s>"), {"cross": WEIGHTS[..., :2]}))
  assert min(found.top, found.left) - 5 >= (11 if token == "WWWWWW" else 12) * len(token)


def test_each_margin_is_that_of_its_own_tokens():
  found = matrix_of(Attention(("a", "</s>"), ("<s>",), ("a long token", "</s>"), {"cross": WEIGHTS[..., :2]}))
  assert found.left > 12 * 7 > found.top


def test_without_cross_attention_there_is_none():
  with pytest.raises(InputError, match="no cross-attention"):
    matrix_of(Attention((), READ, TARGET, {"decoder": WEIGHTS}))


def test_best_and_worst_sentences_have_theirs():
  pairs = [("a b", "c"), ("d e", "f"), ("too long", "g")]
  asked = []

  def attend(source, target):
    asked.append((source, target))
    if source == "too long":
      raise InputError("too long")
    return Attention(SOURCE, READ, TARGET, {"cross": WEIGHTS})

  [found] = scored([Translations(Text("t", pairs), ["c", "f", "x"], 1, "13a", False, attend)])
  assert asked == [("a b", "c"), ("too long", "x")]
  assert found.best[0].attention == matrix_of(attend("a b", "c")) and found.worst[0].attention is None
