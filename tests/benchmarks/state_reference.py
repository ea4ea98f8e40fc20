"""The gradients of a simple recurrent encoder-decoder with respect to its states in NumPy: products of Jacobians."""

from typing import Any, NamedTuple

import numpy as np

from tests.recurrent.reference import embedded, rnn_step, shifted
from transformer_jax.paper.formulas import softmax


class Gradients(NamedTuple):
  """d loss(t) / d h(s).

  Attributes:
    source: for the states of the source, `[target, source, hidden]`.
    target: for the states of the decoder, `[target, target, hidden]`; 0 where s >= t.
    bound: |d loss(t)/d h(t)| times the largest singular values of the steps from s to t, `[target, target]`.
  """

  source: np.ndarray
  target: np.ndarray
  bound: np.ndarray


def rnn_gradients(params: Any, source: np.ndarray, target: np.ndarray) -> Gradients:
  """One layer of h_i = tanh(x_i W + h_(i-1) U + b) on each side; a loss sees only the decoder's last state."""
  table, output = params["embedding"]["table"], params["output"]["kernel"]
  hidden, read = len(output), len(source)
  states, jacobians = [np.zeros(hidden)], []
  for side, tokens in (("encoder", source), ("decoder", shifted(target))):
    layer = params[side]["rnn_0"]
    for x in embedded(params, tokens):
      states.append(rnn_step(layer, x, states[-1]))
      jacobians.append(np.diag(1 - states[-1] ** 2) @ layer["recurrent"].T)  # d h_i / d h_(i-1)
  found = np.zeros((len(target), read + len(target), hidden))
  bound = np.zeros((len(target), len(target)))
  for t, token in enumerate(target):
    p = softmax(states[1 + read + t] @ output @ table.T)
    gradient = output @ (table.T @ (p - np.eye(len(table))[token]))
    product = np.linalg.norm(gradient)
    for s in reversed(range(read + t)):
      gradient = jacobians[s + 1].T @ gradient
      product *= np.linalg.norm(jacobians[s + 1], 2)
      found[t, s] = gradient
      if s >= read:
        bound[t, s - read] = product
  return Gradients(found[:, :read], found[:, read:], bound)
