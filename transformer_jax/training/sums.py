"""Losses as sums and counts instead of means.

Means are computed once, at the end, over the tokens of all devices, hosts and
micro-batches. A mean of means would weigh tokens unequally, as the parts have
different numbers of tokens.
"""

import math
from collections.abc import Mapping
from dataclasses import field

import flax.struct
import jax
import jax.numpy as jnp

from transformer_jax.runtime.values import Json


@flax.struct.dataclass
class Sums:
  """Sums over the tokens that are not padding; each is a float32 scalar.

  Attributes:
    loss: the smoothed cross entropy in nats, which training minimises.
    negative_log_likelihood: the cross entropy without smoothing; exp of its mean is the perplexity.
    correct: the number of tokens to which the model gave the largest probability.
    tokens: the number of tokens.
    others: the sums of further losses, by name; each becomes a mean over its own count.
  """

  loss: jax.Array
  negative_log_likelihood: jax.Array
  correct: jax.Array
  tokens: jax.Array
  others: dict[str, "Sums"] = field(default_factory=dict)


def joint_loss(sums: Sums, counts: dict[str, jax.Array]) -> jax.Array:
  """The sum to minimise; divided by the first loss' count, it is the sum of the means of all losses.

  Args:
    sums: the sums of some rows.
    counts: the number of terms in the whole batch, of the first loss ("tokens") and of each other loss by its name;
      empty if there is one loss.
  """
  return sum(
    (other.loss * (counts["tokens"] / jnp.maximum(counts[name], 1)) for name, other in sums.others.items()), sums.loss
  )


def means(sums: Sums) -> dict[str, float]:
  """The loss in nats per token, the unsmoothed perplexity per token, and the share of tokens predicted correctly.

  The means of another loss have its name as a prefix.
  """
  line = _means(sums)
  for other, its_sums in sums.others.items():
    line |= {f"{other}_{name}": value for name, value in _means(its_sums).items()}
  return line


def total_loss(means: Mapping[str, Json]) -> float:
  """The sum of all losses among `means`, which training minimises."""
  return sum(float(value) for name, value in means.items() if name == "loss" or name.endswith("_loss"))


def _means(sums: Sums) -> dict[str, float]:
  tokens = max(float(sums.tokens), 1.0)
  negative_log_likelihood = float(sums.negative_log_likelihood) / tokens
  return {
    "loss": float(sums.loss) / tokens,
    "perplexity": math.exp(min(negative_log_likelihood, 700.0)),
    "accuracy": float(sums.correct) / tokens,
  }
