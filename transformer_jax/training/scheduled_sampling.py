"""The probability of teacher forcing over the updates of a run (Bengio et al. 2015, §2.4).

Teacher forcing: each target token is predicted from the reference before it, whatever the model would have said. When
it translates, the model reads its own tokens instead. Scheduled sampling moves from the one to the other: the decoder
reads a token of the reference with a probability that decays over the updates, and else one that the model has drawn.
"""

import jax
import jax.numpy as jnp

from transformer_jax.config import Decay, TrainConfig


def forcing_probability(config: TrainConfig, step: jax.Array | int) -> jax.Array:
  r"""The probability that the decoder reads a token of the reference.

    none              1
    linear            max(epsilon, 1 - i / k)
    inverse-sigmoid   k / (k + exp(i / k))

  The paper's linear decay is max(epsilon, k - c i). Here it begins at 1, and c is 1 / k.

  Args:
    config: k is `sampling_k`, epsilon is `sampling_least`.
    step: i, the number of updates so far, an integer scalar.

  Returns:
    A float32 scalar.

  References:
    Bengio et al. 2015, Scheduled Sampling for Sequence Prediction with Recurrent Neural Networks.
  """
  i, k = jnp.asarray(step, jnp.float32), config.sampling_k
  match config.scheduled_sampling:
    case Decay.LINEAR:
      return jnp.maximum(config.sampling_least, 1 - i / k)
    case Decay.INVERSE_SIGMOID:
      return jax.nn.sigmoid(jnp.log(k) - i / k)  # the same quotient, which does not overflow
  return jnp.ones((), jnp.float32)
