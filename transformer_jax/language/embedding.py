"""A table of learned embeddings; the input of GPT, BERT and ELMo is one of them or a sum of several."""

import flax.linen as nn
import jax


class LearnedEmbedding(nn.Module):
  """A table `[size, model]`, drawn from N(0, 0.02^2) as in GPT and BERT: `[...]` integers -> `[..., model]`.

  Unlike the Transformer's embedding it is not multiplied by sqrt(d_model).
  """

  size: int
  d_model: int

  def setup(self):
    self.table = self.param("table", nn.initializers.normal(0.02), (self.size, self.d_model))

  def __call__(self, ids: jax.Array) -> jax.Array:
    return self.table[ids]
