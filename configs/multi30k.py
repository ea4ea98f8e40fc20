"""Multi30k (Elliott et al. 2016), English to German, with the sizes of Transformer-Tiny (Wu et al. 2021).

    python train.py --config=configs/multi30k.py --workdir=runs/m30k \
      --config.data.train=PREFIX --config.data.validation=PREFIX

PREFIX.en and PREFIX.de are the tokenised, lowercased captions of the corpus.
Stopped after 2,435 of the 8,000 steps, 50 minutes on 2 cores of an x86-64 CPU
that other programs used too (2026-11-21, trained at commit 63f9a83): BLEU 38.05 on test_2016_flickr,
nrefs:1|case:lc|eff:no|tok:none|smooth:exp|version:2.6.0, searched with --patience 0. The whole
recipe of 8,000 steps has not been run yet; Wu et al. report 41.02 for it.
"""

from transformer_jax.config import (
  Config,
  Corpus,
  DataConfig,
  DecodeConfig,
  EvaluateConfig,
  LengthPenalty,
  ModelConfig,
  TrainConfig,
)


def get_config() -> Config:
  return Config(
    data=DataConfig(corpus=Corpus.TEXT, train="", validation="", row_length=64),
    model=ModelConfig(vocab_size=9700, num_layers=4, d_model=128, d_ff=256, num_heads=4, dropout=0.3),
    train=TrainConfig(
      steps=8000,
      batch_tokens=8192,
      warmup_steps=2000,
      peak_learning_rate=5e-3,
      log_every=50,
      save_every=500,
    ),
    evaluate=EvaluateConfig(every=500, tokenize="none", lowercase=True),
    decode=DecodeConfig(
      beam_size=5, length_penalty=1.0, penalty=LengthPenalty.FAIRSEQ, patience=1.0, max_source_length=128
    ),
  )
