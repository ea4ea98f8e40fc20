"""Attention as data: the weights against NumPy, and what they cost where nobody asks for them."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.language import example as language
from tests.marks import long
from tests.model.example import CONFIG, float64, random_params
from tests.recurrent import example as recurrent
from tests.recurrent import reference
from transformer_jax.config import Config, DataConfig
from transformer_jax.decoding.attention import Attention, attention_of_pair, attention_of_text, weights_by_kind
from transformer_jax.decoding.generator import Generator
from transformer_jax.language.gpt import GPT
from transformer_jax.model.attention import WEIGHTS
from transformer_jax.model.special_tokens import BOS, EOS, PAD
from transformer_jax.model.transformer import Transformer
from transformer_jax.paper import formulas
from transformer_jax.runtime.errors import InputError
from transformer_jax.tasks import causal
from transformer_jax.tasks.translation import TASK

SOURCE, TARGET = [5, 7, 30, 4, 9, 9, EOS], [11, 6, 8, 29, EOS]
PADDED = 13


def row(tokens):
  return np.array([*tokens, *[PAD] * (PADDED - len(tokens))], np.int32)


def rows_of(module, monkeypatch, forward):
  """Every result of a module's `softmax` in a pass of the NumPy formulas: a row of weights each."""
  found, softmax = [], formulas.softmax

  def recorder(z):
    found.append(softmax(z))
    return found[-1]

  monkeypatch.setattr(module, "softmax", recorder)
  forward()
  return found


def stacked(rows, query, key):
  """The next `query` rows as a matrix; a causal row is shorter than `key`."""
  matrix = np.zeros((query, key))
  for line in matrix:
    weights = next(rows)
    line[: len(weights)] = weights
  return matrix


@pytest.fixture(scope="module")
def transformer():
  """Parameters, and what the program finds for a padded pair."""
  params = random_params(Config(model=CONFIG), TASK)
  found = weights_by_kind(Transformer(CONFIG), params, row(SOURCE), row([BOS, *TARGET[:-1]]))
  n, m = len(SOURCE), len(TARGET)
  sizes = {"encoder": (n, n), "decoder": (m, m), "cross": (m, n)}
  return params, {kind: np.asarray(found[kind])[:, :, :query, :key] for kind, (query, key) in sizes.items()}


def test_the_weights_are_those_of_equation_1(transformer, monkeypatch):
  params, found = transformer
  rows = iter(rows_of(formulas, monkeypatch, lambda: formulas.transformer(float64(params), SOURCE, TARGET)))
  order = ["encoder"] * 2 + ["decoder", "cross"] * 2
  for place, kind in enumerate(order):
    layer, (query, key) = order[:place].count(kind), found[kind].shape[2:]
    assert found[kind].shape[:2] == (2, 3)
    for head in range(3):
      np.testing.assert_allclose(found[kind][layer, head], stacked(rows, query, key), atol=3e-6)
  assert next(rows, None) is None


def test_rows_sum_to_one_and_nothing_looks_at_what_is_hidden(transformer):
  for weights in transformer[1].values():
    assert weights.dtype == np.float32 and np.all(weights >= 0)
    np.testing.assert_allclose(weights.sum(axis=-1), 1, atol=1e-6)
  assert not np.any(np.triu(transformer[1]["decoder"], 1))


def test_the_weights_give_the_model_s_logits(transformer, monkeypatch):
  """In the NumPy formulas they stand in the place of softmax(Q K^T / sqrt(d_k))."""
  params, found = transformer
  layers = [*found["encoder"], *(found[kind][layer] for layer in range(2) for kind in ("decoder", "cross"))]
  heads = iter([head for layer in layers for head in layer])
  monkeypatch.setattr(formulas, "attention", lambda q, k, v, mask: next(heads) @ v)
  logits = formulas.transformer(float64(params), SOURCE, TARGET)
  model, read = Transformer(CONFIG), np.array([BOS, *TARGET[:-1]])

  @jax.jit
  def expected(params):
    hidden = model.apply({"params": params}, np.array(SOURCE), read)
    return model.apply({"params": params}, hidden, method="logits")

  np.testing.assert_allclose(logits, expected(params), atol=1e-4)


def test_layers_stand_in_the_order_of_their_numbers():
  """And not of their names, by which layers_10 would come before layers_2: GPT-2 and BERT have twelve."""

  class Layer(nn.Module):
    number: int

    @nn.compact
    def __call__(self):
      self.sow("intermediates", WEIGHTS, jnp.full((1, 1, 1), self.number))

  class Twelve(nn.Module):
    @nn.compact
    def __call__(self):
      for number in range(12):
        Layer(number, name=f"layers_{number}")()

  assert weights_by_kind(Twelve(), {})["cross"].ravel().tolist() == [*range(12)]


@pytest.mark.parametrize("name", ["bahdanau", *long(("luong-concat", "luong-not-fed"))])
def test_the_alignments_of_recurrent_models(name, monkeypatch):
  model, params = recurrent.example(name)
  found = weights_by_kind(model, params, row(SOURCE), row([BOS, *TARGET[:-1]]))
  expected = rows_of(
    reference,
    monkeypatch,
    lambda: reference.logits(model.config, float64(params), np.array(SOURCE), np.array(TARGET)),
  )
  expected = np.array(expected)[:, ::-1] if getattr(model.config, "reverse_source", False) else np.array(expected)
  assert [*found] == ["cross"] and found["cross"].shape == (1, 1, PADDED, PADDED)
  np.testing.assert_allclose(found["cross"][0, 0, : len(TARGET), : len(SOURCE)], expected, atol=3e-6)


def test_the_weights_of_gpt(translator, monkeypatch):
  params = random_params(Config(model=language.GPT, data=DataConfig(row_length=16)), causal.TASK)
  text = SOURCE[:-1]
  found = attention_of_text(GPT(language.GPT), params, translator._tokenizer, text)
  rows = iter(
    rows_of(formulas, monkeypatch, lambda: language.gpt(language.GPT, float64(params), np.array([BOS, *text])))
  )
  assert [*found.weights] == ["decoder"] and not found.source
  size = len(text) + 1
  assert found.read[1:] == found.target[:-1] and (found.read[0], found.target[-1]) == ("<s>", "</s>")
  assert found.weights["decoder"].shape == (1, 2, size, size)
  for head in range(2):
    np.testing.assert_allclose(found.weights["decoder"][0, head], stacked(rows, size, size), atol=3e-6)
  generator = Generator(Config(model=language.GPT, data=DataConfig(row_length=16)), params, translator._tokenizer)
  monkeypatch.setattr(generator, "_encode", lambda text, *_: [5] * len(text))
  assert generator.attention("a" * 18).weights["decoder"].shape == (1, 2, 19, 19)
  with pytest.raises(InputError, match="19 tokens, but the model can read at most 18: shorten it"):
    generator.attention("a" * 19)


@pytest.mark.long
@pytest.mark.parametrize("name", ["transformer", "bahdanau", "luong-not-fed"])
def test_nothing_is_computed_where_nobody_asks(name, monkeypatch):
  """The program is that of modules which sow nothing, equation by equation."""
  if name == "transformer":
    model, params = Transformer(CONFIG), jax.eval_shape(lambda: random_params(Config(model=CONFIG), TASK))
  else:
    model, params = recurrent.example(name)

  def program(*collections):
    def forward(params, source, target):
      return model.apply({"params": params}, source, target, mutable=list(collections))

    return str(jax.make_jaxpr(forward)(params, jnp.array(SOURCE), jnp.array(TARGET)))

  plain = program()
  assert program("intermediates") != plain
  monkeypatch.setattr(nn.Module, "sow", lambda *args, **kwargs: False)
  assert program() == program("intermediates") == plain


def test_a_model_without_attention(translator):
  model, params = recurrent.example("plain")
  with pytest.raises(InputError, match="has no attention, so there is nothing to see: take a run of another model"):
    attention_of_pair(model, params, translator._tokenizer, SOURCE, TARGET)


def test_of_a_sentence(translator, lines):
  source, target = lines[0], lines[1]
  found = translator.attention(source, target)
  assert "".join(found.source) == f" {source}</s>" and "".join(found.target) == f" {target}</s>"
  assert found.read == ("<s>", *found.target[:-1])
  assert [*found.weights] == ["encoder", "decoder", "cross"]
  for kind, weights in found.weights.items():
    query, key = found.axes(kind)
    assert weights.shape == (1, 2, len(query), len(key)) and weights.dtype == np.float32
  own = translator.attention(source)
  assert own.target == translator.attention(source, translator.translate([source])[0]).target
  empty = translator.attention("")
  assert empty.source == empty.target == ("</s>",) and np.all(empty.weights["cross"] == 1)
  with pytest.raises(InputError, match="the sentence pair has a sentence of"):
    translator.attention(source, "a " * 99)
  weights = sum(np.prod(x.shape[:2]) for x in found.weights.values()) * 32**2  # of the padded tokens
  assert translator.attention(source, target, most=int(weights)).source == found.source
  with pytest.raises(InputError, match=f"has {weights:,} weights of attention, but at most {weights - 1:,} are shown"):
    translator.attention(source, target, most=int(weights) - 1)


def test_each_axis_has_its_own_tokens():
  found = Attention(("a", "</s>"), ("<s>", "b"), ("b", "</s>"), {})
  axes = [found.axes(kind) for kind in ("encoder", "decoder", "cross")]
  assert axes == [(found.source, found.source), (("<s>", "b"), ("<s>", "b")), (("b", "</s>"), ("a", "</s>"))]
