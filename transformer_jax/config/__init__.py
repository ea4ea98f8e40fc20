"""An experiment as typed dataclasses, its JSON form and its flags."""

from transformer_jax.config.experiment import (
  BestBy,
  Config,
  Corpus,
  DataConfig,
  Decay,
  DecodeConfig,
  Document,
  EvaluateConfig,
  LengthPenalty,
  Optimizer,
  PieceKind,
  Schedule,
  TrainConfig,
)

__all__ = [
  "BestBy",
  "Config",
  "Corpus",
  "DataConfig",
  "Decay",
  "DecodeConfig",
  "Document",
  "EvaluateConfig",
  "LengthPenalty",
  "Optimizer",
  "PieceKind",
  "Schedule",
  "TrainConfig",
]
