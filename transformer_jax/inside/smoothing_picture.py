"""A picture of label smoothing (§5.4): the targets of one token, and the loss by the probability of the right token."""

import functools
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from transformer_jax.inside import charts
from transformer_jax.training.loss import token_sums

_POINTS = 1001
_MOST = 4.5  # of the loss that is drawn, in nats


def targets(vocab: int, smoothing: float) -> np.ndarray:
  """The distribution q that the loss has as its target if the right token is token 0: `[vocab]`.

  It is taken from the gradient of the loss that training uses: d loss / d z = softmax(z) - q, here at z = 0.
  """

  # Rounding leaves some 1e-9 in the place of 0.
  gradient = jax.jit(jax.grad(functools.partial(_loss, smoothing=smoothing)))(np.zeros(vocab))
  return np.maximum(1 / vocab - np.asarray(gradient, np.float64), 0).round(7)


def losses(probabilities: np.ndarray, vocab: int, smoothing: float) -> np.ndarray:
  """The loss of a token if the right one has probability p and the others share 1 - p equally: `[n]` -> `[n]`."""
  others = np.broadcast_to(((1 - probabilities) / (vocab - 1))[:, None], (len(probabilities), vocab - 1))
  logits = np.log(np.concatenate([probabilities[:, None], others], axis=1))  # [n, vocab]
  return np.asarray(jax.jit(jax.vmap(functools.partial(_loss, smoothing=smoothing)))(logits))


def _loss(logits: jax.Array, smoothing: float) -> jax.Array:
  """The loss of a token if the right one is token 0."""
  return token_sums(logits[None], jnp.array([0]), jnp.array([True]), smoothing).loss


def draw(vocab: int, smoothings: Sequence[float]) -> Figure:
  """The targets as bars, and the loss as lines with a point where it is lowest.

  Args:
    vocab: V, the number of tokens.
    smoothings: several eps.
  """
  figure, [[left, right]] = charts.chart(3.1, 1, 2)
  _bars(left, vocab, smoothings)
  p = np.linspace(0, 1, _POINTS + 2)[1:-1]
  for number, smoothing in enumerate(smoothings):
    loss, lowest = losses(p, vocab, smoothing), 1 - smoothing + smoothing / vocab
    label = f"ε = {smoothing:g}: lowest at p = {lowest:.3g}"
    marker = {"marker": charts.MARKERS[number % 8], "ms": 5, "markevery": [int(np.argmin(loss))]}
    right.plot(p, loss, label=label, lw=1.3, **charts.style(number), **marker)
  right.set(xlabel="probability p of the right token", ylabel="loss", xlim=(0, 1.02), ylim=(-0.1, _MOST))
  charts.title(right, "loss, the other tokens share 1 - p")
  charts.legend(right, loc="best")  # a curve of a large eps goes through any one place
  return figure


def _bars(axis: Axes, vocab: int, smoothings: Sequence[float]) -> None:
  """The targets of each token, of which the first one is right."""
  width = 0.84 / len(smoothings)
  for number, smoothing in enumerate(smoothings):
    q = targets(vocab, smoothing)
    places = np.arange(vocab) - 0.42 + width * (number + 0.5)
    colour, hatch = "white" if number % 2 else charts.PALE, charts.HATCHES[number % 4]
    label = f"ε = {smoothing:g}: {q[0]:.3g} and {q[1]:.3g}"
    axis.bar(places, q, width, label=label, lw=0.8, color=colour, hatch=hatch, edgecolor="black")
  axis.set_xticks(range(vocab), [str(token) for token in range(1, vocab + 1)])
  axis.set(xlabel=f"token, of which 1 is right; V = {vocab}", ylabel="target q", ylim=(0, 1.02))
  charts.title(axis, "targets: the right token and each other")
  charts.legend(axis, loc="upper right")
