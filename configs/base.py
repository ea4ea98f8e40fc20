"""The paper's base model (Table 3) on WMT14 (§5): English to German, or with `:en-fr` English to French.

    transformer-jax train --config=configs/base.py --workdir=runs/base
    transformer-jax average --workdir=runs/base --last=5 --output=runs/base-average
    sacrebleu -t wmt14/full -l en-de --echo src > newstest2014.en
    sacrebleu -t wmt14/full -l en-de --echo ref > newstest2014.de
    transformer-jax evaluate --workdir=runs/base-average --source=newstest2014.en --reference=newstest2014.de --report

The first command downloads and prepares WMT14 by TensorFlow Datasets, and at its end scores the test text with the last
checkpoint. The paper's score needs another reference text (docs/scores.md).

A run makes 100,000 updates of about 25,000 source and 25,000 target tokens. The shared vocabulary has 37,000 tokens for
German and 32,000 for French. newstest2013 is the validation text, and newstest2014 is the test text. §6.1 averages the
last five checkpoints, which are written every ten minutes. At the paper's 0.4 s per step that is every 1,500 steps.

This config has not been run to the end; `docs/accelerators.md` has its speed on an H200. `transformer-jax plan
--config=configs/base.py` counts 63,045,632 parameters and 1.02e18 operations for the whole run. The paper took 12 hours
on 8 P100 and reports a BLEU of 27.3 (German) and 38.1 (French).
"""

from transformer_jax.config import Config, Corpus, DataConfig, DecodeConfig, EvaluateConfig, TrainConfig
from transformer_jax.model.config import Dtype, ModelConfig
from transformer_jax.runtime.errors import InputError

# By direction: the dataset's name for the pair, and the tokens of the vocabulary.
DIRECTIONS = {"en-de": ("de-en", 37_000), "en-fr": ("fr-en", 32_000)}


def get_config(direction: str = "en-de") -> Config:
  if direction not in DIRECTIONS:
    raise InputError(f"{direction!r} is not a direction of the paper; there are {' and '.join(DIRECTIONS)}")
  pair, pieces = DIRECTIONS[direction]
  source, target = direction.split("-")
  return Config(
    data=DataConfig(
      corpus=Corpus.TFDS,
      dataset=f"wmt14_translate/{pair}",
      source_language=source,
      target_language=target,
      train="train",
      validation="validation",
      test="test",
      row_length=256,
    ),
    model=ModelConfig(
      vocab_size=pieces, num_layers=6, d_model=512, d_ff=2048, num_heads=8, dropout=0.1, dtype=Dtype.BFLOAT16
    ),
    train=TrainConfig(
      # 98 rows of 256 are 25,088 tokens on each side.
      steps=100_000,
      batch_tokens=98 * 256,
      warmup_steps=4000,
      label_smoothing=0.1,
      save_every=1500,
      keep=5,
    ),
    evaluate=EvaluateConfig(every=4500, sentences=3000),
    decode=DecodeConfig(beam_size=4, length_penalty=0.6, extra_length=50),
  )
