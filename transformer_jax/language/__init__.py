"""Language models: GPT, which is the Transformer's decoder alone; BERT, which is its encoder alone; and ELMo.

All are built from `transformer_jax.model`, which knows none of them.
"""
