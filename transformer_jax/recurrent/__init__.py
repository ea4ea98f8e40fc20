"""Recurrent models from before the Transformer. All take one sequence; callers make the batch with `jax.vmap`."""
