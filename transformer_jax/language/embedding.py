"""The sum of learned embeddings with which GPT and BERT begin."""

import flax.linen as nn
import jax


class LearnedEmbedding(nn.Module):
  """A table `[size, model]` of N(0, 0.02^2), as GPT and BERT begin with: `[...]` integers -> `[..., model]`.

  Unlike the Transformer's it is not multiplied by sqrt(d_model).
  """

  size: int
  d_model: int

  def setup(self):
    self.table = self.param("table", nn.initializers.normal(0.02), (self.size, self.d_model))

  def __call__(self, ids: jax.Array) -> jax.Array:
    return self.table[ids]
