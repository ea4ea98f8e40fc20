"""GPT (Radford et al. 2018) of 2 million parameters, for a text of a few megabytes on two CPU cores.

    transformer-jax train --config=configs/gpt.py --workdir=runs/gpt \
      --config.data.train=TRAIN --config.data.validation=VALID
    transformer-jax generate --workdir=runs/gpt --prompt="Prince Andrew" --top-p=0.95

TRAIN and VALID are plain text in UTF-8, and may be compressed (`.gz`, `.xz`). Several files are separated by `;`. A
document is a file, or with `--config.data.document=paragraph` or `line` a paragraph or a line of a file. Documents do
not attend to each other. `configs/gpt.py:paper` has the sizes and the optimizer of the paper. LayerNorm comes before
each sub-layer, as in GPT-2, which allows larger learning rates. `--config.model.pre_norm=False` puts it after each
sub-layer, as in the paper.
"""

from transformer_jax.config import Config, Corpus, DataConfig, EvaluateConfig, Optimizer, Schedule, TrainConfig
from transformer_jax.language.config import GPTConfig
from transformer_jax.runtime.errors import InputError


def get_config(size: str = "small") -> Config:
  if size == "paper":
    return _paper()
  if size != "small":
    raise InputError(f"{size!r} is not a size; there are small and paper")
  return Config(
    data=DataConfig(corpus=Corpus.TEXT, train="", validation="", row_length=256),
    model=GPTConfig(
      vocab_size=2048,
      num_layers=4,
      d_model=192,
      d_ff=768,
      num_heads=4,
      max_positions=256,
      dropout=0.1,
      attention_dropout=0.0,
      pre_norm=True,
    ),
    train=TrainConfig(
      steps=3000,
      batch_tokens=2048,
      warmup_steps=200,
      peak_learning_rate=3e-3,
      label_smoothing=0.0,
      ema_decay=0.998,
      log_every=100,
      save_every=500,
    ),
    evaluate=EvaluateConfig(every=500),
  )


def _paper() -> Config:
  # A batch is 64 rows of 512 tokens. The paper trains for 100 epochs of a corpus that is not available, so `steps`
  # keeps its default here; the learning rate falls to 0 behind the last of them.
  return Config(
    data=DataConfig(corpus=Corpus.TEXT, train="", validation="", row_length=512),
    model=GPTConfig(),
    train=TrainConfig(
      batch_tokens=64 * 512,
      warmup_steps=2000,
      peak_learning_rate=2.5e-4,
      beta2=0.999,
      epsilon=1e-8,
      optimizer=Optimizer.ADAMW,
      weight_decay=0.01,
      schedule=Schedule.COSINE,
      label_smoothing=0,
    ),
  )
