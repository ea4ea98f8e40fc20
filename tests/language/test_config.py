"""The configs of language models: sizes of the papers, and values that cannot be."""

import re

import pytest

from transformer_jax.language.config import BERTClassifierConfig, BERTConfig, ELMoConfig, GPTConfig
from transformer_jax.runtime.errors import InputError


@pytest.mark.parametrize("config", [GPTConfig(), BERTConfig()])
def test_sizes_of_gpt_and_of_bert_base(config):
  assert (config.num_layers, config.d_model, config.d_ff, config.num_heads, config.max_positions) == (
    (12, 768, 3072, 12, 512)
  )


def test_dropout_is_by_default_that_of_the_papers():
  for config in (GPTConfig(), BERTConfig(), BERTClassifierConfig()):
    assert (config.dropout, config.attention_dropout) == (0.1, 0.1)
  assert ELMoConfig().dropout == 0.1


def test_the_width_of_elmo_is_its_papers():
  assert (ELMoConfig().num_layers, ELMoConfig().d_model) == (2, 512)


@pytest.mark.parametrize("labels", ["", "one", "a,a", "a, a", "a,,b", "a,b,", "a,b\n,c", "a,a\x07"])
def test_labels_that_are_no_classes(labels):
  with pytest.raises(InputError, match=r"config\.model\.labels is .*be the different names of two or more classes"):
    BERTClassifierConfig(labels=labels)


@pytest.mark.parametrize("kind", [GPTConfig, BERTConfig])
def test_heads_that_do_not_divide_the_width(kind):
  """Their size cannot be chosen, as that of the Transformer's heads can."""
  message = (
    "config.model.num_heads is 5, which does not divide config.model.d_model = 768: choose another number of heads"
  )
  with pytest.raises(InputError, match=rf"^{re.escape(message)}$"):
    kind(num_heads=5)


def test_labels_are_classes_in_their_order():
  config = BERTClassifierConfig(labels="no, yes,perhaps")
  assert config.classes == ["no", "yes", "perhaps"]
  assert hash(config) == hash(BERTClassifierConfig(labels="no, yes,perhaps"))


@pytest.mark.parametrize("positions", [0, -1])
def test_a_table_has_positions(positions):
  with pytest.raises(InputError, match=r"model\.max_positions"):
    GPTConfig(max_positions=positions)


@pytest.mark.parametrize("dropout", [-0.1, 1.0, 1.5])
def test_dropout_is_a_probability_below_1(dropout):
  with pytest.raises(InputError, match=r"model\.dropout"):
    ELMoConfig(dropout=dropout)
