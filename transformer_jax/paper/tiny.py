"""What the checks run the code on: a tiny model, sentences, and packed rows of them."""

import dataclasses

import numpy as np

from transformer_jax.data import packing
from transformer_jax.model.config import ModelConfig
from transformer_jax.model.special_tokens import EOS

# All axes differ, so that none can stand for another.
TINY = ModelConfig(vocab_size=31, num_layers=2, d_model=22, d_ff=29, num_heads=3, d_k=5, d_v=7, dropout=0.0)
SHALLOW = dataclasses.replace(TINY, num_layers=1)
ROW_LENGTH = 19

SOURCE = [7, 11, 5, 23, 29, 13, EOS]
TARGET = [17, 9, 9, 28, 6, 21, 12, 8, EOS]


def row(*pairs: tuple[list[int], list[int]]) -> np.ndarray:
  """Sentence pairs packed into one row, as in training: `[4, ROW_LENGTH]`."""
  ((packed,),) = packing.pack(pairs, ROW_LENGTH)
  return packed


def changed(tokens: list[int], position: int) -> list[int]:
  """The same sentence with another token at one position."""
  return [*tokens[:position], tokens[position] + 1, *tokens[position + 1 :]]
