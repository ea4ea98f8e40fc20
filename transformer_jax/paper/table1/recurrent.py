"""A recurrent layer (§4, Table 1): n steps, of which each waits for the one before."""

import flax.linen as nn
import jax
import jax.numpy as jnp


class Recurrent(nn.Module):
  """h_t = tanh(W x_t + U h_(t-1) + b) from h_0 = 0 (Elman 1990): `[n, model]` -> `[n, model]`."""

  features: int

  def setup(self):
    self.input = nn.Dense(self.features)  # W and b
    self.state = self.param("state", nn.initializers.glorot_uniform(), (self.features, self.features))  # U

  def __call__(self, x: jax.Array) -> jax.Array:
    def cell(state: jax.Array, entering: jax.Array) -> tuple[jax.Array, jax.Array]:
      state = self.next(state, entering)
      return state, state

    # W x_t + b waits for no state: one matmul computes it for all positions.
    return jax.lax.scan(cell, jnp.zeros(self.features, x.dtype), self.input(x))[1]

  def next(self, state: jax.Array, entering: jax.Array) -> jax.Array:
    """tanh(W x_t + U h_(t-1) + b) of h_(t-1) and W x_t + b: `[..., model]` each."""
    return jnp.tanh(entering + state @ self.state)

  def steps(self, x: jax.Array, count: int) -> jax.Array:
    """The states that all positions have after 1, 2, ... steps from 0, side by side: `[count, n, model]`.

    In each step a position takes over the state that the position before had; after
    n steps they are what `__call__` gives.
    """
    entering = self.input(x)

    def step(states: jax.Array, _: None) -> tuple[jax.Array, jax.Array]:
      before = jnp.concatenate([jnp.zeros_like(states[:1]), states[:-1]])
      states = self.next(before, entering)
      return states, states

    return jax.lax.scan(step, jnp.zeros_like(entering), None, count)[1]
