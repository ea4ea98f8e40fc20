"""The run folder: what training leaves and decoding reads."""

from transformer_jax.runs.run import Model, Run, open

__all__ = ["Model", "Run", "open"]
