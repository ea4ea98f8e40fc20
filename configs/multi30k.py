"""Multi30k (Elliott et al. 2016), English to German, with the sizes of Transformer-Tiny (Wu et al. 2021).

    transformer-jax train --config=configs/multi30k.py --workdir=runs/m30k \
      --config.data.train=PREFIX --config.data.validation=PREFIX

PREFIX.en and PREFIX.de are the tokenised, lowercased captions of the corpus.

BLEU on test_2016_flickr (tok:none, lowercase) is 40.88, 40.54 and 40.74 with seeds 1, 2 and 3. The mean is 40.72; Wu et
al. report 41.02. Seed 1 took 59 minutes of updates on 2 cores of an AMD EPYC at commit 8251a90. Seeds 2 and 3 took 83
minutes each on one core of an Intel Xeon at f9816d5. The date is 2026-11-21. `docs/results/multi30k` has all results,
and `benchmarks/multi30k.py` makes them again. The published recipe reads 3.6 times as much text: train.steps=8000,
train.batch_tokens=8192, train.warmup_steps=2000, train.peak_learning_rate=5e-3, model.dropout=0.3, and the mean of the
last ten checkpoints instead of the moving average.
"""

from transformer_jax.config import Config, Corpus, DataConfig, DecodeConfig, EvaluateConfig, LengthPenalty, TrainConfig
from transformer_jax.model.config import ModelConfig


def get_config() -> Config:
  return Config(
    data=DataConfig(corpus=Corpus.TEXT, train="", validation="", row_length=64),
    model=ModelConfig(vocab_size=9700, num_layers=4, d_model=128, d_ff=256, num_heads=4, dropout=0.2),
    train=TrainConfig(
      steps=4500,
      batch_tokens=4096,
      warmup_steps=1000,
      peak_learning_rate=4e-3,
      ema_decay=0.998,
      log_every=50,
      save_every=110,  # an epoch
      keep=10,
    ),
    evaluate=EvaluateConfig(every=440, tokenize="none", lowercase=True),
    decode=DecodeConfig(
      beam_size=5, length_penalty=1.0, penalty=LengthPenalty.FAIRSEQ, patience=1.0, max_source_length=128
    ),
  )
