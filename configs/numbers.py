"""Numbers written out in English to German, from 0 to 999,999: a first run that needs no download.

transformer-jax train
echo "forty-two" | transformer-jax translate --workdir runs/numbers

--config.data.target_language=ko, or another language of num2words, trains for that language.
docs/results/numbers/README.md has the results.

The recipe differs from the paper's in these points:
- Numbers of one digit to six digits are equally frequent (`data/numbers.py`). Of all numbers below a million, nine in
  ten have six digits.
- There are 360 tokens, 256 of them bytes. The others are letters and a few syllables. With whole words as tokens, some
  tokens would be in no number that is trained on.
- A moving average of the parameters is used (§6.1 takes the mean of checkpoints). From one update to the next the
  parameters lose some numbers and find others, but their mean does not.
- Rows have 64 tokens, in which every number fits. Attention costs half as much as in rows of 128.
"""

from transformer_jax.config import Config, Corpus, DataConfig, DecodeConfig, EvaluateConfig, TrainConfig
from transformer_jax.model.config import ModelConfig


def get_config() -> Config:
  return Config(
    data=DataConfig(corpus=Corpus.NUMBERS, train="train", validation="validation", test="test", row_length=64),
    model=ModelConfig(vocab_size=360, num_layers=2, d_model=128, d_ff=512, num_heads=4),
    train=TrainConfig(
      steps=700,
      batch_tokens=2048,
      warmup_steps=200,
      peak_learning_rate=2e-3,
      ema_decay=0.99,
      log_every=50,
      save_every=200,
    ),
    # Most German numbers are one word: BLEU is of characters.
    evaluate=EvaluateConfig(every=200, sentences=200, tokenize="char"),
    decode=DecodeConfig(max_source_length=64),
  )
