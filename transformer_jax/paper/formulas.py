"""The paper's equations in NumPy and float64: the truth of the checks and of the tests. Nothing here calls the code.

Parameters are trees of arrays with the names that the modules give them. Loops stand where the modules have einsums, so
that the two have little in common.
"""

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from transformer_jax.model.params import Params

Function = Callable[[np.ndarray], np.ndarray]

PADDING, _, BEGIN, END = range(4)  # tokens: what fills rows, and what is before the first and behind the last one
LogProbs = Callable[[tuple[int, ...]], np.ndarray]  # from the tokens so far, log P(next token): `[vocab]`
Output = tuple[float, tuple[int, ...]]  # score and tokens


def softmax(z: np.ndarray) -> np.ndarray:
  """Over the last axis."""
  e = np.exp(z - z.max(axis=-1, keepdims=True))
  return e / e.sum(axis=-1, keepdims=True)


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray, mask: np.ndarray) -> np.ndarray:
  """Eq. 1 for one head: `[query, d_k]`, `[key, d_k]`, `[key, d_v]`, `[query, key]` -> `[query, d_v]`.

  It is 0 for a query that may look at nothing.
  """
  result = np.zeros((len(q), v.shape[1]))
  for i, allowed in enumerate(mask):
    if allowed.any():
      result[i] = softmax(k[allowed] @ q[i] / math.sqrt(q.shape[1])) @ v[allowed]
  return result


def multi_head(params: Params, x: np.ndarray, source: np.ndarray, mask: np.ndarray) -> np.ndarray:
  """§3.2.2: Concat(head_1, ..., head_h) W^O; biases are added where there are any."""

  def project(name: str, x: np.ndarray, head: int) -> np.ndarray:
    bias = params[name].get("bias")
    return x @ params[name]["kernel"][:, head] + (0 if bias is None else bias[head])

  output = params["output"]
  heads = [
    attention(project("query", x, i), project("key", source, i), project("value", source, i), mask)
    for i in range(len(output["kernel"]))
  ]
  return np.concatenate(heads, axis=1) @ np.concatenate(output["kernel"]) + output.get("bias", 0)


def relu(x: np.ndarray) -> np.ndarray:
  return np.maximum(0, x)


def feed_forward(params: Params, x: np.ndarray, activation: Function = relu) -> np.ndarray:
  """Eq. 2."""
  inner, outer = params["inner"], params["outer"]
  return activation(x @ inner["kernel"] + inner["bias"]) @ outer["kernel"] + outer["bias"]


def layer_norm(params: Params, x: np.ndarray, epsilon: float = 1e-6) -> np.ndarray:
  """Ba et al. 2016, eq. 4, over the last axis."""
  centred = x - x.mean(axis=-1, keepdims=True)
  return centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + epsilon) * params["scale"] + params["bias"]


def sinusoids(positions: Sequence[int] | np.ndarray, d_model: int) -> np.ndarray:
  """§3.5, number by number: `[positions, d_model]`."""
  table = np.empty((len(positions), d_model))
  for row, position in zip(table, positions, strict=True):
    for i in range(d_model // 2):
      angle = position / 10_000 ** (2 * i / d_model)
      row[2 * i], row[2 * i + 1] = math.sin(angle), math.cos(angle)
  return table


def _unchanged(x: np.ndarray) -> np.ndarray:
  return x


def sublayer(
  params: Params,
  x: np.ndarray,
  f: Function,
  dropout: Function = _unchanged,
  *,
  pre_norm: bool = False,
  epsilon: float = 1e-6,
) -> np.ndarray:
  """§3.1 and §5.4: LayerNorm(x + Dropout(f(x))); with `pre_norm`, as in later work, x + Dropout(f(LayerNorm(x)))."""
  if pre_norm:
    return x + dropout(f(layer_norm(params["norm"], x, epsilon)))
  return layer_norm(params["norm"], x + dropout(f(x)), epsilon)


def encoder_layer(
  params: Params, x: np.ndarray, mask: np.ndarray, dropout: Function = _unchanged, *, pre_norm: bool = False
) -> np.ndarray:
  """§3.1, Figure 1, left: `[source, model]` -> `[source, model]`."""

  def attend(x: np.ndarray) -> np.ndarray:
    return multi_head(params["attention"], x, x, mask)

  x = sublayer(params["attention_sublayer"], x, attend, dropout, pre_norm=pre_norm)
  feed = functools.partial(feed_forward, params["feed_forward"])
  return sublayer(params["feed_forward_sublayer"], x, feed, dropout, pre_norm=pre_norm)


def decoder_layer(
  params: Params,
  x: np.ndarray,
  memory: np.ndarray,
  self_mask: np.ndarray,
  cross_mask: np.ndarray,
  dropout: Function = _unchanged,
  *,
  pre_norm: bool = False,
) -> np.ndarray:
  """§3.1, Figure 1, right: `[target, model]` over memory `[source, model]` -> `[target, model]`."""

  def attend(x: np.ndarray) -> np.ndarray:
    return multi_head(params["self_attention"], x, x, self_mask)

  def attend_to_memory(x: np.ndarray) -> np.ndarray:
    return multi_head(params["cross_attention"], x, memory, cross_mask)

  x = sublayer(params["self_sublayer"], x, attend, dropout, pre_norm=pre_norm)
  x = sublayer(params["cross_sublayer"], x, attend_to_memory, dropout, pre_norm=pre_norm)
  feed = functools.partial(feed_forward, params["feed_forward"])
  return sublayer(params["feed_forward_sublayer"], x, feed, dropout, pre_norm=pre_norm)


def transformer(
  params: Params, source: Sequence[int], target: Sequence[int], dropout: Function = _unchanged
) -> np.ndarray:
  """Figure 1 for one sentence pair, nothing padded: logits of each target token, `[target, vocab]`.

  `dropout` is called for the sums of embeddings and positions and for each sub-layer, from the encoder's first to the
  decoder's last.
  """
  table = params["target_embedding"]["table"]
  n, m, d_model = len(source), len(target), table.shape[1]

  def enter(tokens: Sequence[int]) -> np.ndarray:
    return dropout(table[list(tokens)] * math.sqrt(d_model) + sinusoids(range(len(tokens)), d_model))

  memory = enter(source)
  for i in range(len(params["encoder"])):
    memory = encoder_layer(params["encoder"][f"layers_{i}"], memory, np.ones((n, n), bool), dropout)
  x = enter([BEGIN, *target[:-1]])
  for i in range(len(params["decoder"])):
    layer = params["decoder"][f"layers_{i}"]
    x = decoder_layer(layer, x, memory, np.tri(m, dtype=bool), np.ones((m, n), bool), dropout)
  return x @ table.T


def cross_entropy(logits: np.ndarray, targets: Sequence[int], smoothing: float) -> float:
  """-sum_v q_v log p_v, summed over the tokens; q is 1 - eps + eps / V on the target and eps / V elsewhere."""
  tokens, vocab = logits.shape
  q = np.full((tokens, vocab), smoothing / vocab)
  q[np.arange(tokens), np.asarray(targets, int)] += 1 - smoothing
  return -float(np.sum(q * np.log(softmax(logits))))


def learning_rate(step: int, d_model: int, warmup_steps: int) -> float:
  """Eq. 3."""
  return d_model**-0.5 * min(step**-0.5, step * warmup_steps**-1.5)


def adam(
  params: np.ndarray, gradients: np.ndarray, rates: list[float], beta1: float, beta2: float, epsilon: float
) -> Iterator[np.ndarray]:
  """Algorithm 1 of Kingma and Ba 2015: the parameters after each update."""
  m, v = np.zeros_like(params), np.zeros_like(params)
  for t, (gradient, rate) in enumerate(zip(gradients, rates, strict=True), 1):
    m = beta1 * m + (1 - beta1) * gradient
    v = beta2 * v + (1 - beta2) * gradient**2
    params = params - rate * (m / (1 - beta1**t)) / (np.sqrt(v / (1 - beta2**t)) + epsilon)
    yield params


def length_penalty(length: int, alpha: float) -> float:
  """Wu et al. 2016, eq. 14: a hypothesis is scored by log P / length_penalty.

  >>> [round(length_penalty(length, 0.6), 3) for length in (1, 7, 25)]
  [1.0, 1.516, 2.627]
  """
  return (5 + length) ** alpha / (5 + 1) ** alpha


def beam_search(
  log_probs: LogProbs, limit: int, beam_size: int, penalty: Callable[[int], float], patience: float = math.inf
) -> list[Output]:
  """§6.1 with lists: every output that the beam meets, the best first.

  Args:
    log_probs: the model.
    limit: the most tokens of an output, its end included.
    beam_size: hypotheses that are kept.
    penalty: maps an output's number of tokens to what its log-probability is divided by.
    patience: the search ends when `patience * beam_size` outputs have ended.
  """
  beam, finished = [(0.0, ())], []
  for length in range(1, limit + 1):
    extensions = []
    for log_prob, tokens in beam:
      after = log_probs(tokens)
      allowed = [END] if length == limit else [token for token in range(len(after)) if token not in (PADDING, BEGIN)]
      extensions += [(log_prob + float(after[token]), (*tokens, token)) for token in allowed]
    extensions.sort(reverse=True)
    finished += [extension for extension in extensions[:beam_size] if extension[1][-1] == END]
    beam = [extension for extension in extensions if extension[1][-1] != END][:beam_size]
    if len(finished) >= patience * beam_size:
      break
  return sorted(((log_prob / penalty(len(tokens)), tokens) for log_prob, tokens in finished), reverse=True)


def exhaustive_search(log_probs: LogProbs, limit: int, vocab: int, penalty: Callable[[int], float]) -> list[Output]:
  """Every output of at most `limit` tokens, the best first."""

  def score(tokens: tuple[int, ...]) -> float:
    return sum(float(log_probs(tokens[:i])[token]) for i, token in enumerate(tokens)) / penalty(len(tokens))

  words = [token for token in range(vocab) if token not in (PADDING, BEGIN, END)]
  every = [(*begin, END) for length in range(limit) for begin in itertools.product(words, repeat=length)]
  return sorted(((score(tokens), tokens) for tokens in every), reverse=True)
