"""The recurrent models in NumPy and float64, token by token, written from the papers' equations.

Parameters are trees of arrays with the names that the modules give them; a
sentence stands alone, without rows, masks or positions.
"""

from typing import Any

import numpy as np

from transformer_jax.model.config import AnyModelConfig
from transformer_jax.model.special_tokens import BOS
from transformer_jax.paper.formulas import softmax
from transformer_jax.recurrent.config import BahdanauConfig, LuongConfig, Score, SequenceToSequenceConfig

Params = Any
Array = np.ndarray
State = tuple[Array, ...]  # of a layer; its first array is the output


def sigmoid(x: Array) -> Array:
  return 1 / (1 + np.exp(-x))


def lstm_step(params: Params, x: Array, h: Array, c: Array) -> tuple[Array, Array]:
  """One LSTM, one token."""
  n = len(h)

  def gate(k: int) -> Array:
    part = slice(k * n, (k + 1) * n)
    return x @ params["kernel"][:, part] + h @ params["recurrent"][:, part] + params["bias"][part]

  c = sigmoid(gate(1)) * c + sigmoid(gate(0)) * np.tanh(gate(2))
  return sigmoid(gate(3)) * np.tanh(c), c


def gru_step(params: Params, x: Array, s: Array, more: Array | float = 0.0) -> Array:
  """A.1.1; `more` enters the gates besides x."""
  n = len(s)
  xz, xr, xs = np.split(x @ params["kernel"] + params["bias"] + more, 3)
  z = sigmoid(xz + s @ params["recurrent"][:, :n])
  r = sigmoid(xr + s @ params["recurrent"][:, n:])
  return (1 - z) * s + z * np.tanh(xs + (r * s) @ params["proposal"])


def rnn_step(params: Params, x: Array, h: Array) -> Array:
  return np.tanh(x @ params["kernel"] + h @ params["recurrent"] + params["bias"])


def layer_step(params: Params, x: Array, state: State) -> State:
  """One layer, one token; the shape of U tells the kind of its cell."""
  if params["recurrent"].shape[1] == 4 * len(state[0]):
    return lstm_step(params, x, *state)
  return ((gru_step if "proposal" in params else rnn_step)(params, x, state[0]),)


def stack_step(params: Params, x: Array, states: list[State]) -> list[State]:
  """Each layer, one token."""
  cells = {name.rsplit("_")[0] for name in params}
  assert len(cells) == 1
  [cell] = cells
  result = []
  for i, state in enumerate(states):
    result.append(layer_step(params[f"{cell}_{i}"], x, state))
    x = result[-1][0]
  return result


def embedded_source(params: Params, tokens: Array) -> list[Array]:
  return embedded({"embedding": params.get("own_source_embedding", params["embedding"])}, tokens)


def embedded(params: Params, tokens: Array) -> list[Array]:
  table = params["embedding"]["table"]
  return [table[token] * table.shape[1] ** 0.5 for token in tokens]


def shifted(target: Array) -> Array:
  return np.array([BOS, *target[:-1]])


def read(config: Any, params: Params, source: Array) -> tuple[list[Array], list[State]]:
  """Top states in the order in which they were read, and the last states of each layer."""
  states: list[State] = [(np.zeros(config.hidden_size),) * 2] * config.num_layers
  tops = []
  for x in embedded_source(params, source[::-1] if config.reverse_source else source):
    states = stack_step(params["encoder"], x, states)
    tops.append(states[-1][0])
  return tops, states


def seq2seq(config: SequenceToSequenceConfig, params: Params, source: Array, target: Array) -> list[Array]:
  _, states = read(config, params, source)
  outputs, context = [], states[-1][0] if config.feed_context else np.zeros(0)
  for y in embedded(params, shifted(target)):
    states = stack_step(params["decoder"], np.concatenate([y, context]), states)
    outputs.append(np.concatenate([states[-1][0], context]) @ params["output"]["kernel"])
  return outputs


def luong_score(config: LuongConfig, params: Params, h: Array, s: Array) -> float:
  if config.score is Score.DOT:
    return float(h @ s)
  if config.score is Score.GENERAL:
    return float(h @ (s @ params["key"]["kernel"]))
  w = np.concatenate([params["query"]["kernel"], params["key"]["kernel"]])
  return float(params["v"] @ np.tanh(np.concatenate([h, s]) @ w))


def luong(config: LuongConfig, params: Params, source: Array, target: Array) -> list[Array]:
  tops, states = read(config, params, source)
  attention, decoder = params["attention"], params["decoder"]
  attentional = np.zeros(config.d_model)
  outputs = []
  for x in embedded(params, shifted(target)):
    if config.input_feeding:  # x and h~ side by side are the input of the lowest layer
      kernel = np.concatenate([decoder["lstm_0"]["kernel"], params["input_feeding"]["kernel"]])
      fed = decoder | {"lstm_0": decoder["lstm_0"] | {"kernel": kernel}}
      states = stack_step(fed, np.concatenate([x, attentional]), states)
    else:
      states = stack_step(decoder, x, states)
    h = states[-1][0]
    weights = softmax(np.array([luong_score(config, attention, h, s) for s in tops]))
    context = sum(weight * s for weight, s in zip(weights, tops, strict=True))
    attentional = np.tanh(np.concatenate([context, h]) @ attention["combine"]["kernel"])
    outputs.append(attentional)
  return outputs


def bahdanau(config: BahdanauConfig, params: Params, source: Array, target: Array) -> list[Array]:
  n = config.hidden_size
  xs = embedded_source(params, source)
  forward, backward = [], []
  state = np.zeros(n)
  for x in xs:
    state = gru_step(params["encoder_forward"], x, state)
    forward.append(state)
  state = np.zeros(n)
  for x in xs[::-1]:
    state = gru_step(params["encoder_backward"], x, state)
    backward.insert(0, state)
  annotations = [np.concatenate(both) for both in zip(forward, backward, strict=True)]
  s = np.tanh(backward[0] @ params["initial"]["kernel"])
  alignment, deep = params["alignment"], params["output"]["linear"]
  outputs = []
  for y in embedded(params, shifted(target)):
    query = s @ alignment["query"]["kernel"]
    scores = [alignment["v"] @ np.tanh(query + h @ alignment["key"]["kernel"]) for h in annotations]
    context = sum(weight * h for weight, h in zip(softmax(np.array(scores)), annotations, strict=True))
    s = gru_step(params["decoder"], y, s, context @ params["context"]["kernel"])
    t = np.concatenate([s, y, context]) @ deep["kernel"] + deep["bias"]
    outputs.append(np.maximum(t[0::2], t[1::2]))
  return outputs


def logits(config: AnyModelConfig, params: Params, source: Array, target: Array) -> Array:
  """The logits of each token of the target, given the source and the tokens before it: `[target, vocab]`."""
  model: Any = {SequenceToSequenceConfig: seq2seq, LuongConfig: luong, BahdanauConfig: bahdanau}[type(config)]
  return np.array(model(config, params, source, target)) @ params["embedding"]["table"].T
