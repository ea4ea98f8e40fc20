"""A tiny model whose axes all have different lengths, and parameters in which nothing is 0 or 1."""

import dataclasses
from typing import Any

import jax
import numpy as np

from transformer_jax.model.config import ModelConfig

# d_model is even, so it is twice a prime.
CONFIG = ModelConfig(
  vocab_size=31, num_layers=2, d_model=22, d_ff=29, num_heads=3, d_k=5, d_v=7, max_positions=317, dropout=0.0
)
SOURCE, TARGET = 13, 17


def options(**changes: Any) -> ModelConfig:
  return dataclasses.replace(CONFIG, **changes)


def normal(seed: int, *shape: int) -> np.ndarray:
  return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def perturbed(params: Any, seed: int = 0) -> Any:
  """The parameters with noise: new biases are 0 and new scales 1, which would hide mistakes."""
  generator = np.random.default_rng(seed)
  return jax.tree.map(lambda x: x + 0.1 * generator.standard_normal(x.shape).astype(x.dtype), params)


def float64(params: Any) -> Any:
  return jax.tree.map(lambda x: np.asarray(x, np.float64), params)
