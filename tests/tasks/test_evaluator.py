"""The loss on held-out text."""

import jax

from tests.data.letters import Letters
from tests.language import example
from tests.model.example import random_params
from transformer_jax.config import Config, Corpus, DataConfig, TrainConfig
from transformer_jax.runtime import devices
from transformer_jax.tasks.causal import TASK
from transformer_jax.tasks.evaluator import Evaluator, LossValidation


def test_each_text_has_its_own_loss(tmp_path):
  texts = {"train": "abcab" * 7, "validation": "defed" * 7, "test": "ghgig" * 7}
  for name, text in texts.items():
    (tmp_path / name).write_text(f"{text}\n")
  paths = {name: str(tmp_path / name) for name in texts}
  config = Config(
    data=DataConfig(corpus=Corpus.TEXT, row_length=11, **paths),
    model=example.options(example.GPT, vocab_size=128),
    train=TrainConfig(batch_tokens=44),
  )
  tokenizer, params = Letters(), devices.replicate(random_params(config, TASK))
  means = {name: Evaluator(config, TASK, path, tokenizer).means(params) for name, path in paths.items()}
  assert len({f"{line['loss']:.2f}" for line in means.values()}) == len(texts)  # the texts can be told apart
  validation = LossValidation(config, TASK, tokenizer)
  assert validation.measure(params) == means["validation"]
  test = means["test"]
  assert validation.test(params) == (
    f"loss {test['loss']:.4f}, perplexity {test['perplexity']:.4g}, accuracy {test['accuracy']:.4f}"
  )
  large = jax.tree.map(lambda x: 1e3 * x, params)
  assert len(validation.test(large)) < 80 and "e+" in validation.test(large)


def test_without_a_validation_text_none_is_read(tmp_path):
  """As configs/gpt.py has it."""
  (tmp_path / "text").write_text("abcab\n")
  config = Config(
    data=DataConfig(corpus=Corpus.TEXT, row_length=11, train=str(tmp_path / "text"), validation=""),
    model=example.options(example.GPT, vocab_size=128),
    train=TrainConfig(batch_tokens=44),
  )
  assert LossValidation(config, TASK, Letters())._test is None
