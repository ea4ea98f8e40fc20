"""The config of a run of a few updates, and its state afterwards."""

from pathlib import Path

import jax
import numpy as np
from etils import epath

from transformer_jax.config import Config, Corpus, DataConfig, DecodeConfig, EvaluateConfig, TrainConfig
from transformer_jax.model.config import ModelConfig
from transformer_jax.runs import checkpoint
from transformer_jax.training.step import abstract_state
from transformer_jax.training.task import task_of


def tiny(prefix: str, **train) -> Config:
  defaults = {"steps": 6, "batch_tokens": 128, "warmup_steps": 3, "log_every": 2, "save_every": 2, "keep": 2}
  return Config(
    data=DataConfig(corpus=Corpus.TEXT, train=prefix, validation=prefix, row_length=16),
    model=ModelConfig(vocab_size=290, num_layers=1, d_model=8, d_ff=16, num_heads=2, dropout=0.1),
    train=TrainConfig(**{**defaults, **train}),
    evaluate=EvaluateConfig(every=3, sentences=2),
    decode=DecodeConfig(beam_size=1, max_source_length=16, extra_length=3),
  )


def state_of(workdir: Path, config: Config):
  """The state of the last checkpoint."""
  checkpoints = checkpoint.Checkpoints(epath.Path(workdir), 2)
  restored = checkpoints.restore(abstract_state(config, task_of(config.model)))
  checkpoints.close()
  assert restored is not None
  return jax.device_get(restored.state)


def assert_same_bits(a, b) -> None:
  """Two trees with equal arrays."""
  jax.tree.map(np.testing.assert_array_equal, a, b)
