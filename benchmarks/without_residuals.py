"""The Transformer without its residual connections, for `gradient_flow.py`: LayerNorm(f(x)) in place of
LayerNorm(x + f(x)), on Multi30k.

    PYTHONPATH=benchmarks transformer-jax train --config=benchmarks/without_residuals.py --workdir=DIR \\
      --config.data.train=TRAIN --config.data.validation=VALID
"""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp

from transformer_jax import registry
from transformer_jax.config import Config, flags
from transformer_jax.model.config import ModelConfig
from transformer_jax.model.sublayer import Sublayer
from transformer_jax.model.transformer import Transformer


@dataclass(unsafe_hash=True)
class WithoutResidualsConfig(ModelConfig):
  """The sizes are those of the Transformer."""


class WithoutResiduals(Transformer):
  """Each sub-layer's output is f alone."""

  config: WithoutResidualsConfig

  def encode(self, *args: Any, **kwargs: Any) -> jax.Array:
    with nn.intercept_methods(without_residual):
      return super().encode(*args, **kwargs)

  def decode(self, *args: Any, **kwargs: Any) -> jax.Array:
    with nn.intercept_methods(without_residual):
      return super().decode(*args, **kwargs)

  def decode_step(self, *args: Any, **kwargs: Any) -> Any:
    with nn.intercept_methods(without_residual):
      return super().decode_step(*args, **kwargs)


def without_residual(method: Callable[..., Any], args: Any, kwargs: Any, context: nn.module.InterceptorContext) -> Any:
  """`Sublayer.output(0, y)` in place of `Sublayer.output(x, y)`."""
  if isinstance(context.module, Sublayer) and context.method_name == "output":
    x, y = args
    args = (jnp.zeros_like(x), y)
  return method(*args, **kwargs)


registry.register(
  "transformer-without-residuals",
  registry.Family("without_residuals:WithoutResidualsConfig", "without_residuals:WithoutResiduals"),
)


def get_config() -> Config:
  from without_residuals import WithoutResidualsConfig  # the registry's; as a config file this module is another one

  config = flags.read_config("multi30k:plain", {})  # `configs.multi30k` would be the file of this name beside this one
  return dataclasses.replace(config, model=WithoutResidualsConfig(**vars(config.model)))
