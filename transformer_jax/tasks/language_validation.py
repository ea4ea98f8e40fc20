"""What a language model is measured by, while it is trained and at the end."""

from typing import Any

from transformer_jax.config import Config
from transformer_jax.data.tokenizer import Tokenizer
from transformer_jax.tasks.evaluator import HeldOut
from transformer_jax.training.step import Params


class Validation:
  """Loss, perplexity and accuracy on held-out text.

  Attributes:
    shown: what of a measurement the log shows beside loss and perplexity.
  """

  shown: tuple[str, ...] = ("accuracy",)

  def __init__(self, config: Config, tokenizer: Tokenizer):
    # What cannot be read is said now, and not after the training.
    self._test = HeldOut(config, config.data.test, tokenizer) if config.data.test else None
    if config.data.validation:
      self._held_out = HeldOut(config, config.data.validation, tokenizer)

  def measure(self, params: Params) -> dict[str, Any]:
    """Of the whole validation text."""
    return self._held_out.means(params)

  def test(self, params: Params) -> str:
    """Of the whole test text, in words."""
    assert self._test
    line = self._test.means(params)
    return ", ".join(f"{name} {value:.4f}" for name, value in line.items())
