"""The paper's base model (Table 3) on WMT14 English to German (§5): 37,000 shared pieces, 100,000 steps.

    python train.py --config=configs/base.py --workdir=runs/base

About 25,000 source and 25,000 target tokens a batch, as in §5.1; newstest2013
is the validation set and newstest2014 the test set. Not run here.
"""

from transformer_jax.config import (
  Config,
  Corpus,
  DataConfig,
  DecodeConfig,
  Dtype,
  EvaluateConfig,
  ModelConfig,
  TrainConfig,
)


def get_config() -> Config:
  return Config(
    data=DataConfig(
      corpus=Corpus.TFDS,
      dataset="wmt14_translate/de-en",
      source_language="en",
      target_language="de",
      train="train",
      validation="validation",
      test="test",
      row_length=256,
    ),
    model=ModelConfig(
      vocab_size=37_000, num_layers=6, d_model=512, d_ff=2048, num_heads=8, dropout=0.1, dtype=Dtype.BFLOAT16
    ),
    train=TrainConfig(
      # 98 rows of 256 are 25,088 tokens on each side.
      steps=100_000,
      batch_tokens=98 * 256,
      warmup_steps=4000,
      label_smoothing=0.1,
      save_every=1000,
      keep=5,
    ),
    evaluate=EvaluateConfig(every=5000, sentences=3000),
    decode=DecodeConfig(beam_size=4, length_penalty=0.6, extra_length=50),
  )
