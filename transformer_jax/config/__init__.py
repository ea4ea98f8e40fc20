"""An experiment as typed dataclasses, its JSON form and its flags."""

from transformer_jax.config.experiment import (
  Config,
  Corpus,
  DataConfig,
  DecodeConfig,
  Document,
  EvaluateConfig,
  LengthPenalty,
  TrainConfig,
)

__all__ = [
  "Config",
  "Corpus",
  "DataConfig",
  "DecodeConfig",
  "Document",
  "EvaluateConfig",
  "LengthPenalty",
  "TrainConfig",
]
