"""Language models: GPT, which is the Transformer's decoder alone; BERT, which is its encoder alone; and ELMo.

GPT and BERT are built from `transformer_jax.model`, and ELMo from `transformer_jax.recurrent`, which know none of them.
"""
