"""The next token: its probabilities against those of whole translations and texts, the picture, and the command."""

import dataclasses
import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from transformer_jax.config import Config, Corpus, DataConfig
from transformer_jax.data.documents import encode_text
from transformer_jax.decoding import next_token
from transformer_jax.decoding.generator import Generator
from transformer_jax.decoding.next_token import NextToken
from transformer_jax.decoding.translator import Translator
from transformer_jax.language.config import GPTConfig
from transformer_jax.language.gpt import GPT
from transformer_jax.model.special_tokens import BOS, EOS, PAD
from transformer_jax.runtime.errors import InputError

COMMAND = ("draw", "next")

picture = pytest.importorskip("transformer_jax.inside.next_picture")


def test_the_probabilities_of_all_steps_multiply_to_that_of_the_translation(translator):
  """P(target) is the product of P(next token) over all beginnings, as `score` computes it in one pass."""
  tokenizer, source, target = translator._tokenizer, "abc de", "cab"
  tokens = tokenizer.encode(target)
  log_prob = 0.0
  for i, token in enumerate([*tokens, EOS]):
    found = next_token.after_pair(
      translator._model, translator.params, tokenizer, [*tokenizer.encode(source), EOS], tokens[:i]
    )
    assert math.isclose(found.probabilities.sum(), 1, rel_tol=1e-5)
    log_prob += math.log(found.probabilities[token])
  [score] = translator.score([(source, target)])
  assert math.isclose(log_prob, score.log_probability, rel_tol=1e-4)
  np.testing.assert_array_equal(translator.next_token(source, target).probabilities.shape, (277,))
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
  sizes = {"vocab_size": 277, "num_layers": 1, "d_model": 8, "d_ff": 13, "num_heads": 2, "max_positions": 7}
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


def example(source, read, values):
  pieces = [" Haus", "$x$", " ", "\n", "<0xE2>", " Donaudampfschifffahrt", "Ж", *map(str, range(31))]
  return NextToken(source, read, tuple(pieces), np.array([*values, *[0.0] * (38 - len(values))], np.float32))


@pytest.mark.parametrize("values", [[0.1, 0.2, 0.0004, 0.6], [1.0]])
def test_the_picture(values):
  from tests.inside.drawn import all_texts, require_readable

  found = example((" a", " b", "</s>") * 40, ("<s>", "$x$"), values)
  assert found.best(2) == sorted(found.best(2), key=lambda each: -each[1])
  figure = picture.draw(found, 7)
  require_readable(figure)
  shown = [text.get_text() for text in all_texts(figure)]
  order = [name for name in shown if name in ("␣Haus", "$x$", "⏎", "31 others")]
  assert "31 others" in order and any("has written: <s> $x$" in text for text in shown)
  widths = [bar.get_width() for bar in figure.axes[0].patches]
  assert widths[:-1] == sorted(widths[:-1], reverse=True) and math.isclose(sum(widths), 1, rel_tol=1e-5)
  assert all(a >= b for a, b in itertools.pairwise(widths[:-1]))


def test_the_command(run, translator, tmp_path):
  output = tmp_path / "next.svg"
  status, out, err = run("--sentence", "abc", "--prefix", "a", "--top", 3, "--output", output)
  assert (status, out) == (0, f"{output}\n") and "274 others" in output.read_text()
  for argv, message in (
    (["--sentence", " "], "the sentence is empty"),
    ([], "--sentence is missing"),
    (["--sentence", "a", "--top", 0], "--top is 0"),
  ):
    status, out, err = run(*argv, "--output", output)
    assert (status, out) == (2, "") and message in err[-1]
