"""Losses as sums and counts, never means.

Means are taken once, at the end, over the tokens of all devices, hosts and
micro-batches: a mean of means would weigh tokens by their neighbours.
"""

import math
from dataclasses import field

import flax.struct
import jax
import jax.numpy as jnp


@flax.struct.dataclass
class Sums:
  """Sums over real tokens; each a float32 scalar.

  Attributes:
    loss: smoothed cross entropy in nats; what is minimised.
    negative_log_likelihood: without smoothing; exp of its mean is the perplexity.
    correct: tokens to which the model gave the largest probability.
    tokens: how many there are.
    others: the sums of losses beside this one, by name; each becomes a mean over its own count.
  """

  loss: jax.Array
  negative_log_likelihood: jax.Array
  correct: jax.Array
  tokens: jax.Array
  others: dict[str, "Sums"] = field(default_factory=dict)


def joint_loss(sums: Sums, counts: dict[str, jax.Array]) -> jax.Array:
  """The sum to minimise: divided by the first loss' count it is the sum of all losses' means.

  Args:
    sums: of some rows.
    counts: of the whole batch: how many terms the first loss ("tokens") and each other has; empty without others.
  """
  return sum(
    (other.loss * (counts["tokens"] / jnp.maximum(counts[name], 1)) for name, other in sums.others.items()), sums.loss
  )


def means(sums: Sums) -> dict[str, float]:
  """Loss in nats a token, perplexity (unsmoothed, a token), and the share of tokens guessed right.

  The means of another loss have its name before them.
  """
  line = _means(sums)
  for other, its_sums in sums.others.items():
    line |= {f"{other}_{name}": value for name, value in _means(its_sums).items()}
  return line


def _means(sums: Sums) -> dict[str, float]:
  tokens = max(float(sums.tokens), 1.0)
  negative_log_likelihood = float(sums.negative_log_likelihood) / tokens
  return {
    "loss": float(sums.loss) / tokens,
    "perplexity": math.exp(min(negative_log_likelihood, 700.0)),
    "accuracy": float(sums.correct) / tokens,
  }
