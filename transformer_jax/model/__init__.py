"""The Transformer (§3). Everything here speaks of one sequence; callers add the batch with `jax.vmap`."""
