"""Table 4 and §6.3's settings: the configs, and what the docs say of them."""

import dataclasses

import pytest

from configs import base, parsing
from tests.paper.documented import DOCS
from transformer_jax.config import Corpus
from transformer_jax.paper.table4 import PARSERS
from transformer_jax.runtime.errors import InputError


@pytest.mark.parametrize(("which", "vocabulary"), [("wsj", 16_000), ("semi-supervised", 32_000)])
def test_the_configs_differ_from_base_by_what_the_paper_says(which, vocabulary):
  config, of_base = parsing.get_config(which), base.get_config()
  model = {"num_layers": 4, "d_model": 1024, "vocab_size": vocabulary}
  decode = {"beam_size": 21, "length_penalty": 0.3, "extra_length": 300}
  assert config.model == dataclasses.replace(of_base.model, **model)
  assert config.decode == dataclasses.replace(of_base.decode, **decode)
  assert (config.train, config.evaluate) == (of_base.train, of_base.evaluate)
  assert config.data.corpus is Corpus.TREES


def test_another_config_is_refused():
  with pytest.raises(InputError, match="'tiny' is not a config of parsing; there are grammar, wsj and semi-supervised"):
    parsing.get_config("tiny")


def test_the_docs_have_the_papers_numbers():
  lines = (DOCS / "parsing.md").read_text().splitlines()
  for row in PARSERS:
    assert f"| {row.name} | {row.training} | {row.f1} |" in lines
