"""The Transformer's recurrent ancestors; as everywhere, of one sequence: callers add the batch with `jax.vmap`."""
