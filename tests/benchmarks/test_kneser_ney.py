"""The perplexity of GPT that the n-gram models are compared with, token by token in NumPy."""

import numpy as np
import pytest

from tests.language import example
from tests.marks import long
from tests.model.example import float64, random_params
from transformer_jax.config import Config, DataConfig
from transformer_jax.model.special_tokens import BOS
from transformer_jax.tasks.causal import TASK

LENGTH, HALF = 10, 5
CONFIG = Config(data=DataConfig(row_length=LENGTH), model=example.options(example.GPT, max_positions=LENGTH))


@pytest.fixture(scope="module")
def params():
  return random_params(CONFIG, TASK)


@pytest.fixture
def gpt_perplexity(program):
  return program("kneser_ney").gpt_perplexity


@pytest.mark.parametrize("tokens", [LENGTH + 1, *long((7, LENGTH, 3 * HALF, 211))])
def test_each_token_is_scored_once_behind_at_least_half_a_row(gpt_perplexity, params, tokens):
  text = np.random.default_rng(tokens).integers(4, CONFIG.model.vocab_size, tokens)
  total = 0.0
  for start in range(0, tokens, HALF):  # of rows that overlap by half
    row = text[start : start + LENGTH]
    logits = example.gpt(CONFIG.model, float64(params), np.array([BOS, *row[:-1]]))
    log_p = logits - np.log(np.sum(np.exp(logits), axis=1, keepdims=True))
    fresh = range(HALF if start else 0, len(row))
    total += sum(log_p[place, row[place]] for place in fresh)
  assert gpt_perplexity(CONFIG, params, text) == pytest.approx(np.exp(-total / tokens), rel=1e-6)


@pytest.mark.parametrize("around", [False, True])
def test_models_learn_from_the_first_nine_tenths_of_the_book_itself(program, tmp_path, around):
  """Not from what Project Gutenberg writes before and behind it."""
  lines = [f"line {number}" for number in range(37)]
  before, behind = ["A licence", "*** START OF IT ***"], ["*** END OF IT ***", *["more of it"] * 50]
  (tmp_path / "book.txt").write_text("\n".join([*before, *lines, *behind] if around else lines))
  paths = program("kneser_ney").split(tmp_path / "book.txt", tmp_path / "parts")
  train, test = (paths[name].read_text().splitlines() for name in ("train", "test"))
  assert train + test == lines and len(train) == 33
