"""The learning rate: warmup, then the inverse square root of the step (§5.3, eq. 3), or another curve."""

import jax.numpy as jnp
import optax

from transformer_jax.config import Schedule


def inverse_square_root(d_model: int, warmup_steps: int, peak: float | None = None) -> optax.Schedule:
  """lrate = d_model^-0.5 * min(step_num^-0.5, step_num * warmup_steps^-1.5).

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


def after_warmup(kind: Schedule, peak: float, warmup_steps: int, steps: int) -> optax.Schedule:
  r"""A linear warmup, then one of optax's schedules. Steps s count from 1, and T = steps + 1 - warmup_steps.

    up to warmup_steps    peak s / warmup_steps
    constant              peak
    linear                peak (1 - (s - warmup_steps) / T)
    cosine                peak (1 + cos(pi (s - warmup_steps) / T)) / 2

  The linear and the cosine rate would be 0 in the step after the last one. In float32 the cosine is 0 a little earlier:
  in the last 7 of 100,000 updates.

  Args:
    kind: the curve after the warmup, another than the inverse square root.
    peak: the rate at step `warmup_steps`.
    warmup_steps: the updates in which the rate rises.
    steps: the updates of the whole run.

  Returns:
    A function of optax's count of updates.
  """
  length = steps + 1 - warmup_steps
  match kind:
    case Schedule.COSINE:
      rest = optax.cosine_decay_schedule(peak, length)
    case Schedule.LINEAR:
      rest = optax.linear_schedule(peak, 0.0, length)
    case _:
      rest = optax.constant_schedule(peak)
  joined = optax.join_schedules([optax.linear_schedule(0.0, peak, warmup_steps), rest], [warmup_steps])
  return lambda count: jnp.asarray(joined(jnp.asarray(count) + 1), jnp.float32)
