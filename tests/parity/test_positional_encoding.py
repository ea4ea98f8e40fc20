"""Sinusoids against those of Marian's models in Hugging Face Transformers."""

import jax.numpy as jnp
import numpy as np
import pytest

from tests.parity.peer import required
from transformer_jax.model.positional_encoding import sinusoids

torch = required("torch")
transformers = required("transformers")

LENGTH = 307


@pytest.mark.parametrize("d_model", [22, 512])
def test_sinusoids(d_model):
  config = transformers.MarianConfig(
    vocab_size=3,
    pad_token_id=0,
    decoder_start_token_id=0,
    d_model=d_model,
    max_position_embeddings=LENGTH,
    encoder_layers=1,
    decoder_layers=1,
    encoder_attention_heads=1,
    decoder_attention_heads=1,
    encoder_ffn_dim=1,
    decoder_ffn_dim=1,
  )
  encoding = transformers.MarianModel(config).get_encoder().embed_positions(torch.Size([1, LENGTH])).numpy()
  # All sines come first there, and here each has its cosine behind it.
  interleaved = np.stack(np.split(encoding, 2, axis=1), axis=2).reshape(LENGTH, d_model)

  # Theirs are computed in float64. Our angle, and its frequency before it, are rounded to float32: 2^-21 of the angle.
  positions = np.arange(LENGTH)
  error = np.abs(sinusoids(jnp.asarray(positions), d_model) - interleaved)
  assert np.all(error <= 1e-6 + positions[:, None] * 2.0**-21)
