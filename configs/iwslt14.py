"""IWSLT14 German to English, 160,000 sentence pairs of talks, with the sizes that are usual for it.

    transformer-jax train --config=configs/iwslt14.py --workdir=runs/iwslt14 \
      --config.data.train=TRAIN --config.data.validation=VALID

TRAIN.de and TRAIN.en are the tokenised, lowercased talks of the campaign, as the preparation script of fairseq's
examples writes them. The model has 6+6 layers of 512 with 4 heads, a feed-forward layer of 1,024, dropout 0.3 and
10,000 shared tokens. A batch has about 4,096 tokens, and the peak learning rate is 5e-4.

This config has not been run, because the corpus was not available. `transformer-jax plan --config=configs/iwslt14.py`
counts 36,626,432 parameters and 4.9e16 operations for the whole run.
"""

from transformer_jax.config import Config, Corpus, DataConfig, DecodeConfig, EvaluateConfig, LengthPenalty, TrainConfig
from transformer_jax.model.config import ModelConfig


def get_config() -> Config:
  return Config(
    data=DataConfig(
      corpus=Corpus.TEXT, source_language="de", target_language="en", train="", validation="", row_length=192
    ),
    model=ModelConfig(vocab_size=10_000, num_layers=6, d_model=512, d_ff=1024, num_heads=4, dropout=0.3),
    train=TrainConfig(
      steps=50_000, batch_tokens=4096, warmup_steps=4000, peak_learning_rate=5e-4, save_every=1000, keep=10
    ),
    evaluate=EvaluateConfig(every=2000, tokenize="none", lowercase=True),
    decode=DecodeConfig(
      beam_size=5, length_penalty=1.0, penalty=LengthPenalty.FAIRSEQ, patience=1.0, max_source_length=192
    ),
  )
