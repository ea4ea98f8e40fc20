"""Numbers written out in English to German, from 0 to 999,999: a first run that needs no download.

transformer-jax train
echo "forty-two" | transformer-jax translate --workdir runs/numbers

--config.data.target_language=ko, or another of num2words, trains for another language. What runs reach:
docs/results/numbers/README.md.

What differs from the paper's recipe, and why:
- numbers of one digit to six are equally frequent (`data/numbers.py`): of all below a million, nine in ten have six;
- 360 pieces, 256 of them bytes: letters and a few syllables. Of whole words some are in no number that is trained on;
- a moving average of the parameters (§6.1 takes the mean of checkpoints): from one update to the next the parameters
  lose some numbers and find others, and their mean does not;
- rows of 64 tokens, as no number is longer than 45: attention costs half of that in rows of 128.
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
