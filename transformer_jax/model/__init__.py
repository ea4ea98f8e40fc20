"""The Transformer (§3). Everything here takes one sequence; callers make the batch with `jax.vmap`."""
