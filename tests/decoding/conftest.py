"""A tiny Transformer with random weights, and a tokenizer of generated lines."""

import random

import jax
import numpy as np
import pytest

from tests.model.example import random_params
from transformer_jax.config import Config, DecodeConfig
from transformer_jax.data.sentencepiece_tokenizer import SentencePieceTokenizer
from transformer_jax.decoding.translator import Translator
from transformer_jax.model.config import ModelConfig
from transformer_jax.model.special_tokens import EOS
from transformer_jax.tasks.translation import TASK

VOCAB = 311


@pytest.fixture(scope="session")
def lines():
  """Lines of 1 to 11 words of a made-up language, an empty one and one of spaces among them."""
  generator = random.Random(0)
  words = ["".join(generator.choices("abcdefghij", k=generator.randint(1, 5))) for _ in range(53)]
  lines = [" ".join(generator.choices(words, k=generator.randint(1, 11))) for _ in range(41)]
  return [*lines[:7], "", *lines[7:13], "  \t", *lines[13:]]


@pytest.fixture(scope="session")
def translator(lines):
  """Its weights are about as at the start of training: larger ones would amplify rounding, which tests measure."""
  tokenizer = SentencePieceTokenizer.learn([line for line in lines if line.strip()], VOCAB)
  config = Config(
    model=ModelConfig(vocab_size=VOCAB, num_layers=1, d_model=16, d_ff=29, num_heads=2),
    decode=DecodeConfig(beam_size=3, extra_length=5, max_source_length=24),
  )
  return Translator(config, random_params(config, TASK), tokenizer)


@pytest.fixture(scope="session")
def params_of_short_outputs(translator):
  """With an EOS so probable that some hypotheses end at once: at the start of training none ends before its limit."""
  params = jax.tree.map(np.array, translator.params)
  direction = params["target_embedding"]["table"][EOS]
  last = params["decoder"][max(params["decoder"])]["feed_forward_sublayer"]
  last["norm"]["bias"] += 3.5 * direction / np.dot(direction, direction)
  return params
