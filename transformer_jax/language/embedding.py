"""A table of learned embeddings; GPT, BERT and ELMo begin with one or the sum of several."""

import flax.linen as nn
import jax


class LearnedEmbedding(nn.Module):
  """A table `[size, model]` of N(0, 0.02^2), as for GPT and BERT: `[...]` integers -> `[..., model]`.

  Unlike the Transformer's it is not multiplied by sqrt(d_model).
  """

  size: int
  d_model: int

  def setup(self):
    self.table = self.param("table", nn.initializers.normal(0.02), (self.size, self.d_model))

  def __call__(self, ids: jax.Array) -> jax.Array:
    return self.table[ids]
