"""The next token: its probabilities against those of whole translations and texts, and the most probable ones."""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.data.letters import Letters
from tests.decoding.conftest import VOCAB
from transformer_jax.config import Config, Corpus, DataConfig
from transformer_jax.data.documents import encode_text
from transformer_jax.decoding import next_token
from transformer_jax.decoding.generator import Generator
from transformer_jax.decoding.next_token import NextToken
from transformer_jax.decoding.translator import Translator
from transformer_jax.language.config import GPTConfig
from transformer_jax.language.gpt import GPT
from transformer_jax.model.config import Start
from transformer_jax.model.special_tokens import BOS, EOS, PAD
from transformer_jax.runtime.errors import InputError, RunError


def test_the_probabilities_of_all_steps_multiply_to_that_of_the_translation(translator):
  """P(target) is the product of P(next token) over all beginnings, as `score` computes it in one pass."""
  tokenizer, source, target = translator._tokenizer, "abc de", "cab"
  tokens = tokenizer.encode(target)
  log_prob, texts = 0.0, []
  for i, token in enumerate([*tokens, EOS]):
    found = next_token.after_pair(
      translator._model, translator.params, tokenizer, [*tokenizer.encode(source), EOS], tokens[:i]
    )
    assert math.isclose(found.probabilities.sum(), 1, rel_tol=1e-5)
    log_prob += math.log(found.probabilities[token])
    if tokenizer.encode(text := tokenizer.decode(tokens[:i])) == tokens[:i]:  # so a text can say so
      texts.append(text)
      np.testing.assert_array_equal(translator.next_token(source, text).probabilities, found.probabilities)
  assert texts[0] == "" and target in texts
  [score] = translator.score([(source, target)])
  assert math.isclose(log_prob, score.log_probability, rel_tol=1e-4)
  assert found.probabilities.shape == (VOCAB,)
  with pytest.raises(InputError, match="the sentence is empty"):
    translator.next_token(" ")


def test_tokens_that_no_output_has_get_no_probability_if_the_config_says_so(translator):
  before = translator.next_token("abc de", "c").probabilities.copy()
  config = dataclasses.replace(
    translator.config, decode=dataclasses.replace(translator.config.decode, renormalize=True)
  )
  found = Translator(config, translator.params, translator._tokenizer).next_token("abc de", "c").probabilities
  before[[PAD, BOS]] = 0
  np.testing.assert_allclose(found, before / before.sum(), rtol=1e-5)


def test_a_language_model_by_hand(translator):
  """The softmax of the output layer at the last position, without padding."""
  sizes = {"vocab_size": VOCAB, "num_layers": 1, "d_model": 8, "d_ff": 13, "num_heads": 2, "max_positions": 7}
  config = GPTConfig(**sizes, dropout=0, attention_dropout=0)
  model, tokenizer = GPT(config), translator._tokenizer
  read = jnp.array([BOS, *encode_text(tokenizer, "ab")])
  n = len(read)

  @jax.jit
  def both(read):
    mask = jnp.tri(n, dtype=bool)
    params = model.init(jax.random.key(0), read, jnp.arange(n), mask)
    hidden = model.apply(params, read, jnp.arange(n), mask)
    return params["params"], hidden[-1] @ params["params"]["embedding"]["table"].T

  params, logits = both(read)
  expected = np.exp(np.float64(logits))
  generator = Generator(Config(data=DataConfig(corpus=Corpus.TEXT, row_length=7), model=config), params, tokenizer)
  found = generator.next_token("ab")
  np.testing.assert_allclose(found.probabilities, expected / expected.sum(), rtol=1e-4)
  assert found.source == () and found.read == tuple(tokenizer.pieces(read.tolist()))
  with pytest.raises(InputError, match="the model can read at most 6: shorten it"):
    generator.next_token("abcdefghij" * 9)
  broken = Generator(generator.config, jax.tree.map(lambda x: x * np.nan, params), tokenizer)
  for temperature in (0.0, 1.0):
    with pytest.raises(RunError, match="NaN"):
      broken.generate("ab", max_tokens=2, temperature=temperature)


def test_the_most_probable_tokens_come_first():
  """Of equal ones the token with the smaller number."""
  found = NextToken((), ("<s>",), ("a", "b", "c", "d"), np.array([0.125, 0.25, 0.5, 0.125], np.float32))
  assert found.best(3) == [("c", 0.5), ("b", 0.25), ("a", 0.125)]
  assert found.best(9) == [("c", 0.5), ("b", 0.25), ("a", 0.125), ("d", 0.125)] and found.best(0) == []


def test_the_decoder_begins_with_the_token_of_the_config(translator):
  """That of OPUS-MT is PAD."""
  model = dataclasses.replace(translator.config.model, start=Start.PAD)
  config = dataclasses.replace(translator.config, model=model)
  other, tokenizer = Translator(config, translator.params, translator._tokenizer), translator._tokenizer
  source, read = np.array([*tokenizer.encode("abc de"), EOS]), np.array([PAD, *tokenizer.encode("c")])
  n, m = len(source), len(read)

  @jax.jit
  def logits(params):
    masks = jnp.ones((n, n), bool), jnp.tri(m, dtype=bool), jnp.ones((m, n), bool)
    hidden = other._model.apply({"params": params}, source, read, jnp.arange(n), jnp.arange(m), *masks)
    return other._model.apply({"params": params}, hidden[-1], method="logits")

  expected, found = np.exp(np.float64(logits(translator.params))), other.next_token("abc de", "c")
  assert found.read[0] == tokenizer.pieces([PAD])[0]
  np.testing.assert_allclose(found.probabilities, expected / expected.sum(), rtol=1e-4)


def test_probabilities_that_are_not_finite_are_an_error():
  with pytest.raises(RunError, match="NaN"):
    next_token._next_token(Letters(), [5], [5], np.array([0.5, np.nan], np.float32))


def test_a_beginning_that_is_too_long_is_refused(translator):
  with pytest.raises(InputError, match="the sentence pair has a sentence of"):
    translator.next_token("abc", "a " * 99)
