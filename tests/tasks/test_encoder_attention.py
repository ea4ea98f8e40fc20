"""The attention of BERT over a sentence: the softmaxes of NumPy, each with the token that looks."""

import dataclasses

import numpy as np
import pytest

from tests.data.letters import Letters
from tests.language import example
from tests.model.example import float64, random_params
from transformer_jax.config import Config, Corpus, DataConfig
from transformer_jax.language.config import BERTClassifierConfig
from transformer_jax.model.special_tokens import CLS, SEP
from transformer_jax.paper import formulas
from transformer_jax.runtime.errors import InputError
from transformer_jax.tasks import classification, masked
from transformer_jax.tasks.classifier import Classifier
from transformer_jax.tasks.encoder_attention import encoder_attention

ROW_LENGTH = 11
BERT = example.options(example.BERT, vocab_size=128, num_layers=2)
CLASSIFIER = BERTClassifierConfig(**dataclasses.asdict(BERT), labels="long,short")


def config_of(model):
  return Config(data=DataConfig(corpus=Corpus.TEXT, row_length=ROW_LENGTH), model=model)


def softmaxes(monkeypatch, model, trunk, tokens):
  """Each softmax of a pass of the NumPy trunk: `[layers, heads, query, key]`."""
  found, softmax = [], formulas.softmax
  with monkeypatch.context() as patch:
    patch.setattr(formulas, "softmax", lambda z: found.append(softmax(z)) or found[-1])
    example.trunk(model, float64(trunk), np.array(tokens), np.zeros(len(tokens), int))
  return np.reshape(found, (model.num_layers, model.num_heads, len(tokens), len(tokens)))


def require_softmaxes(monkeypatch, model, params, attention):
  """The attention is that of NumPy for a sentence shorter than its row, for a full row, and for no letter."""
  for sentence in ("dabc", "abcdefghi", ""):
    found = attention(sentence)
    assert found.source == ("[CLS]", *sentence, "[SEP]") and found.read == found.target == ()
    assert [*found.weights] == ["encoder"]
    expected = softmaxes(monkeypatch, model, params["trunk"], [CLS, *map(ord, sentence), SEP])
    np.testing.assert_allclose(found.weights["encoder"], expected, atol=3e-6)


def test_the_weights_and_tokens_of_a_pre_trained_model(monkeypatch):
  config = config_of(BERT)
  params = random_params(config, masked.TASK)
  require_softmaxes(monkeypatch, BERT, params, lambda text: encoder_attention(config, params, Letters(), text))


def test_the_weights_and_tokens_of_a_classifier(monkeypatch):
  config = config_of(CLASSIFIER)
  params = random_params(config, classification.TASK)
  require_softmaxes(monkeypatch, CLASSIFIER, params, Classifier(config, params, Letters()).attention)


@pytest.mark.parametrize(
  ("sentence", "message"),
  [
    ("abcdefghij", "the sentence has more than 9 tokens, as many as config.data.row_length = 11 allows: shorten it"),
    ("a\ud800", "the sentence has half of a surrogate pair, U\\+D800, as character 2, and is no text"),
    (None, "the sentence is of type NoneType, but must be a str"),
  ],
)
def test_mistakes_are_one_sentence(sentence, message):
  with pytest.raises(InputError, match=message):
    encoder_attention(config_of(BERT), {}, Letters(), sentence)
