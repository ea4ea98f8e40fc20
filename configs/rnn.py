"""The recurrent models before the Transformer on Multi30k, with the size, data and search of `multi30k.py:plain`.

    transformer-jax train --config=configs/rnn.py:bahdanau --workdir=runs/bahdanau \
      --config.data.train=TRAIN --config.data.validation=VALID

The kinds are rnn and gru (an encoder and a decoder of simple recurrent units, or of Cho et al. 2014's), plain (LSTMs,
Sutskever et al. 2014), reversed (plain, but it reads the source from its end), bahdanau (Bahdanau et al. 2015), and
luong-dot, luong-general and luong-concat (Luong et al. 2015).
"""

import dataclasses
from typing import Any

from configs import multi30k
from transformer_jax.config import Config
from transformer_jax.model.config import AnyModelConfig
from transformer_jax.recurrent.config import BahdanauConfig, Cell, LuongConfig, Score, SequenceToSequenceConfig
from transformer_jax.runtime.errors import InputError

# Widths with which a model has about as many parameters as the Transformer of `multi30k.py`, 2.56 million.
_PLAIN = {Cell.RNN: 438, Cell.GRU: 247, Cell.LSTM: 212}
_BAHDANAU, _LUONG = 220, {Score.DOT: 200, Score.GENERAL: 198, Score.CONCAT: 194}


def get_config(kind: str = "bahdanau") -> Config:
  config = multi30k.get_config("plain")
  return dataclasses.replace(
    config,
    model=_model(kind, vocab_size=config.model.vocab_size, d_model=config.model.d_model, dropout=0.2),
    train=dataclasses.replace(config.train, peak_learning_rate=8e-3),
  )


def _model(kind: str, **sizes: Any) -> AnyModelConfig:
  layers: dict[str, Any] = {"num_layers": 2}
  cells = {"rnn": Cell.RNN, "gru": Cell.GRU, "plain": Cell.LSTM, "reversed": Cell.LSTM}
  if kind in cells:
    cell, backwards = cells[kind], kind == "reversed"
    return SequenceToSequenceConfig(**sizes, **layers, cell=cell, hidden_size=_PLAIN[cell], reverse_source=backwards)
  if kind == "bahdanau":
    return BahdanauConfig(**sizes, hidden_size=_BAHDANAU, attention_size=128)
  scores = {f"luong-{score.value}": score for score in Score}
  if kind in scores:
    return LuongConfig(**sizes, **layers, hidden_size=_LUONG[scores[kind]], score=scores[kind])
  raise InputError(f"{kind!r} is not a recurrent model; there are {', '.join([*cells, 'bahdanau', *scores])}")
