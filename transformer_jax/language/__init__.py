"""What became of the Transformer: GPT, its decoder alone, and BERT, its encoder alone.

Everything is built from `transformer_jax.model`, which knows nothing of it.
"""
