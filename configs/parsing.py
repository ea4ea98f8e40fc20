"""English constituency parsing (§6.3): the words of a sentence become its linearised tree (`data/trees.py`).

    transformer-jax train --config=configs/parsing.py --workdir=runs/parsing

trains a small model on the grammar of `data/grammar.py`, which needs no download.

    transformer-jax train --config=configs/parsing.py:paper --workdir=runs/wsj \
      --config.data.train=FILE;FILE --config.data.validation=FILE --config.data.test=FILE

is the paper's model, for treebanks in Penn's format: sections 2-21, 22 and 23 of the Wall Street Journal. It has not
been run, because the Penn Treebank is licensed. The paper reports an F1 of 91.3 for it.
"""

from transformer_jax.config import Config, Corpus, DataConfig, DecodeConfig, EvaluateConfig, TrainConfig
from transformer_jax.model.config import Dtype, ModelConfig
from transformer_jax.runtime.errors import InputError


def get_config(which: str = "grammar") -> Config:
  match which:
    case "grammar":
      return Config(
        data=DataConfig(
          corpus=Corpus.GRAMMAR,
          target_language="tree",
          train="train",
          validation="validation",
          test="test",
          row_length=192,
        ),
        # The target has 260 pieces for bytes and the like, a space, and 30 brackets and tags.
        model=ModelConfig(
          vocab_size=291,
          source_vocab_size=600,
          share_embeddings=False,
          num_layers=2,
          d_model=128,
          d_ff=512,
          num_heads=4,
        ),
        train=TrainConfig(
          steps=2000,
          batch_tokens=8 * 192,
          warmup_steps=400,
          peak_learning_rate=2e-3,
          ema_decay=0.99,
          log_every=50,
          save_every=500,
        ),
        evaluate=EvaluateConfig(every=500, sentences=100, tokenize="none"),
        decode=DecodeConfig(beam_size=4, length_penalty=0.3, extra_length=300, max_source_length=64),
      )
    case "paper":
      return Config(
        data=DataConfig(corpus=Corpus.TREES, target_language="tree", train="", validation="", row_length=512),
        model=ModelConfig(
          vocab_size=384,
          source_vocab_size=16_000,
          share_embeddings=False,
          num_layers=4,
          d_model=1024,
          d_ff=4096,
          num_heads=16,
          dropout=0.1,
          dtype=Dtype.BFLOAT16,
        ),
        train=TrainConfig(),
        evaluate=EvaluateConfig(),
        decode=DecodeConfig(beam_size=21, length_penalty=0.3, extra_length=300),
      )
  raise InputError(f"{which!r} is not a config of parsing; there are grammar and paper")
