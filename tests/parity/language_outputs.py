"""What the Flax modules of GPT and BERT give for a batch of texts of different lengths."""

import jax
import jax.numpy as jnp
import numpy as np

from transformer_jax.language.bert import BERT, BERTClassifier
from transformer_jax.language.config import BERTClassifierConfig
from transformer_jax.language.gpt import GPT
from transformer_jax.model import masking

LENGTHS = (13, 7, 17)  # of the texts of a batch; the rest of each row is padding


def batch(vocab_size):
  """Rows of random tokens `[rows, length]`, also where nothing should look at them, and which are real."""
  tokens = np.random.default_rng(5).integers(vocab_size, size=(len(LENGTHS), max(LENGTHS)))
  return tokens, np.arange(max(LENGTHS))[None, :] < np.array(LENGTHS)[:, None]


def sides_of_batch():
  """Which of two texts each token of a batch belongs to."""
  return (np.arange(max(LENGTHS))[None, :] >= np.array([[4], [3], [9]])).astype(np.int64)


def gpt_logits(model, params, tokens):
  module, length = GPT(model), tokens.shape[1]

  @jax.jit
  @jax.vmap
  def logits(tokens):
    hidden = module.apply({"params": params}, tokens, jnp.arange(length), masking.causal_mask(length))
    return module.apply({"params": params}, hidden, method="logits")

  return np.asarray(logits(tokens))


def bert_outputs(model, params, tokens, sides, valid):
  """Logits of the tokens, features, and logits of pairs of texts; or logits of classes, and features."""
  classifies = isinstance(model, BERTClassifierConfig)
  module = BERTClassifier(model) if classifies else BERT(model)

  @jax.jit
  @jax.vmap
  def outputs(tokens, sides, valid):
    variables, mask = {"params": params}, masking.padding_mask(valid, valid)
    hidden = module.apply(variables, tokens, sides, mask, method=lambda m, *x: m.trunk(*x, deterministic=True))
    if classifies:
      return module.apply(variables, tokens, sides, mask), hidden
    features, following = module.apply(variables, tokens, sides, mask, jnp.arange(len(tokens)))
    return module.apply(variables, features, method="logits"), hidden, following

  return jax.device_get(outputs(tokens, sides, valid))
