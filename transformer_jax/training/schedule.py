"""The learning rate: warmup, then the inverse square root of the step (§5.3, eq. 3)."""

import jax.numpy as jnp
import optax


def inverse_square_root(d_model: int, warmup_steps: int, peak: float | None = None) -> optax.Schedule:
  """lrate = d_model^-0.5 * min(step^-0.5, step * warmup_steps^-1.5).

  It peaks at step `warmup_steps` with (d_model * warmup_steps)^-0.5: 6.98771e-4
  for the base model. optax counts updates from 0; the first is step 1 here.

  Args:
    d_model: the model's width.
    warmup_steps: the updates in which the rate rises.
    peak: the rate at step `warmup_steps`, for the same curve scaled; None means the formula above.

  Returns:
    A function of optax's count of updates.

  Example:
    >>> rate = inverse_square_root(d_model=512, warmup_steps=4000)
    >>> print(f"{rate(1999):.6g} {rate(3999):.6g} {rate(15999):.6g}")
    0.000349386 0.000698771 0.000349386
  """
  scale = d_model**-0.5 if peak is None else peak * warmup_steps**0.5

  def schedule(count):
    step = jnp.asarray(count, jnp.float32) + 1
    return scale * jnp.minimum(step**-0.5, step * warmup_steps**-1.5)

  return schedule
