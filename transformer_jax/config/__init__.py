"""An experiment as typed dataclasses, its JSON form and its flags."""

from transformer_jax.config.experiment import (
  Config,
  Corpus,
  DataConfig,
  Decay,
  DecodeConfig,
  Document,
  EvaluateConfig,
  LengthPenalty,
  PieceKind,
  TrainConfig,
)

__all__ = [
  "Config",
  "Corpus",
  "DataConfig",
  "Decay",
  "DecodeConfig",
  "Document",
  "EvaluateConfig",
  "LengthPenalty",
  "PieceKind",
  "TrainConfig",
]
