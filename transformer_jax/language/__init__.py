"""What became of the Transformer: GPT, its decoder alone, BERT, its encoder alone, and ELMo beside them.

Everything is built from `transformer_jax.model`, which knows nothing of it.
"""
