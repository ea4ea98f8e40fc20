"""Tiny language models, and NumPy in place of their modules."""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from transformer_jax.data.blocks import pack_blocks
from transformer_jax.data.packing_report import PackingReport
from transformer_jax.language.config import BERTConfig, GPTConfig
from transformer_jax.paper.formulas import feed_forward, layer_norm, multi_head, sublayer

# d_model is even, so it is twice a prime.
GPT = GPTConfig(
  vocab_size=31, num_layers=1, d_model=22, d_ff=29, num_heads=2, max_positions=19, dropout=0.0, attention_dropout=0.0
)

BERT = BERTConfig(
  vocab_size=31, num_layers=1, d_model=22, d_ff=29, num_heads=2, max_positions=19, dropout=0.0, attention_dropout=0.0
)


def options(config: Any, **changes: Any) -> Any:
  return dataclasses.replace(config, **changes)


def gelu_tanh(x: np.ndarray) -> np.ndarray:
  """Hendrycks and Gimpel 2016: the approximation of x P(N(0, 1) < x)."""
  return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def gelu(x: np.ndarray) -> np.ndarray:
  """x P(N(0, 1) < x)."""
  return np.vectorize(lambda y: y * 0.5 * (1 + math.erf(y / math.sqrt(2))))(x)


def dense(params: Any, x: np.ndarray) -> np.ndarray:
  return x @ params["kernel"] + params["bias"]


def block(
  params: Any, names: tuple[str, str], x: np.ndarray, mask: np.ndarray, activation: Any, epsilon: float, pre_norm: bool
) -> np.ndarray:
  """Self-attention and feed-forward, each with its residual connection; `names` are those of the attention."""

  def attend(y: np.ndarray) -> np.ndarray:
    return multi_head(params[names[0]], y, y, mask)

  def feed(y: np.ndarray) -> np.ndarray:
    return feed_forward(params["feed_forward"], y, activation)

  x = sublayer(params[names[1]], x, attend, pre_norm=pre_norm, epsilon=epsilon)
  return sublayer(params["feed_forward_sublayer"], x, feed, pre_norm=pre_norm, epsilon=epsilon)


def gpt(config: GPTConfig, params: Any, tokens: np.ndarray) -> np.ndarray:
  """Radford et al. 2018, eq. 2, of one text `[length]` -> logits `[length, vocab]`."""
  table, length = params["embedding"]["table"], len(tokens)
  x = table[tokens] + params["positions"]["table"][:length]
  for i in range(config.num_layers):
    names = "self_attention", "self_sublayer"
    layer, mask = params["decoder"][f"layers_{i}"], np.tri(length, dtype=bool)
    x = block(layer, names, x, mask, gelu_tanh, 1e-5, config.pre_norm)
  if config.pre_norm:
    x = layer_norm(params["decoder"]["norm"], x, 1e-5)
  return x @ table.T


def trunk(config: BERTConfig, trunk: Any, tokens: np.ndarray, sides: np.ndarray) -> np.ndarray:
  """Devlin et al. 2019 of one row `[length]` -> `[length, model]`."""
  x = trunk["embedding"]["table"][tokens] + trunk["positions"]["table"][: len(tokens)] + trunk["sides"]["table"][sides]
  x = layer_norm(trunk["embedding_norm"], x, 1e-12)
  for i in range(config.num_layers):
    layer, mask = trunk["encoder"][f"layers_{i}"], np.ones((len(tokens), len(tokens)), bool)
    x = block(layer, ("attention", "attention_sublayer"), x, mask, gelu, 1e-12, config.pre_norm)
  if config.pre_norm:
    x = layer_norm(trunk["encoder"]["norm"], x, 1e-12)
  return x


def pooled(config: BERTConfig, params: Any, tokens: np.ndarray, sides: np.ndarray) -> np.ndarray:
  """What the trunk with these parameters gives to a layer that tells classes apart: `[model]`."""
  return np.tanh(dense(params["pooler"], trunk(config, params, tokens, sides)[0]))


def bert(config: BERTConfig, params: Any, tokens: np.ndarray, sides: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
  """Masked-token logits `[length, vocab]` and next-sentence logits `[2]` of one row."""
  x, table = trunk(config, params["trunk"], tokens, sides), params["trunk"]["embedding"]["table"]
  features = layer_norm(params["transform_norm"], gelu(dense(params["transform"], x)), 1e-12)
  following = dense(params["next"], pooled(config, params["trunk"], tokens, sides))
  return features @ table.T + params["output_bias"], following


def row_of(texts: Sequence[Sequence[int]], row_length: int) -> np.ndarray:
  """The one row `[2, row_length]` that holds these texts."""
  chunks = [(np.array(text), True) for text in texts]
  (row,) = next(iter(pack_blocks(chunks, row_length, PackingReport(), np.int32)))
  return row
