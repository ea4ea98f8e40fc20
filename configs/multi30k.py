"""Multi30k (Elliott et al. 2016), English to German, with the sizes of Transformer-Tiny.

The sizes are those of Wu et al. 2021, *Good for Misconceived Reasons*.

    transformer-jax train --config=multi30k --workdir=runs/m30k \
      --config.data.train=TRAIN --config.data.validation=VALID
    transformer-jax average --workdir=runs/m30k --last 10 --output=runs/m30k-average

TRAIN.en and TRAIN.de are the tokenised, lowercased captions of the corpus.

BLEU on test_2016_flickr (tok:none, lowercase) is 42.25, 42.13 and 42.19 with seeds 1, 2 and 3, 42.19 in the mean; Wu et
al. report 41.02. Seed 1 took 3.7 hours of one core of an Intel Xeon (2026-11-26, commit a1f06ef), seeds 2 and 3 took
2.4 and 2.3 hours of one core of an AMD EPYC (2026-11-28, commit cfcb342). There were two candidates: the moving average
at the end, and the mean of the last ten checkpoints. The one that is better on the validation text translated the test
text.

With `--config.data.target_language=fr` or `cs` it has 63.15 and 63.51 to French, and 35.30 and 35.21 to Czech, with
seeds 1 and 2 (in bfloat16; one core of an Intel Xeon with AMX, 2026-11-29, commit caaa2e6).

`multi30k:plain` is the recipe without R-Drop and AdamW. It has 40.88, 40.54 and 40.74 with seeds 1, 2 and 3, 40.72 in
the mean. Seed 1 took 59 minutes of updates on 2 cores of an AMD EPYC at commit 8251a90, seeds 2 and 3 took 83 minutes
each on one core of an Intel Xeon at f9816d5 (2026-11-21).

`docs/results/multi30k` has all results, and `benchmarks/multi30k.py` makes them again.
"""

import dataclasses

from transformer_jax.config import (
  Config,
  Corpus,
  DataConfig,
  DecodeConfig,
  EvaluateConfig,
  LengthPenalty,
  Optimizer,
  TrainConfig,
)
from transformer_jax.model.config import ModelConfig
from transformer_jax.runtime.errors import InputError

RECIPES = ("r-drop", "plain")


def get_config(recipe: str = "r-drop") -> Config:
  if recipe not in RECIPES:
    raise InputError(f"{recipe!r} is not a recipe; there are {' and '.join(RECIPES)}")
  plain = Config(
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
  if recipe == "plain":
    return plain
  train = dataclasses.replace(plain.train, steps=6000, r_drop=5.0, optimizer=Optimizer.ADAMW, weight_decay=0.05)
  return dataclasses.replace(plain, model=dataclasses.replace(plain.model, dropout=0.1), train=train)
