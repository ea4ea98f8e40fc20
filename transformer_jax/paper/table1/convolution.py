"""Convolutional layers (§4, Table 1): full, dilated and separable, of width k; the output is as long as the input."""

import flax.linen as nn
import jax


def convolution(features: int, width: int) -> nn.Conv:
  """y_i = sum_j W_j x_(i + j - (k - 1) / 2) + b with zeros beyond the ends: `[n, model]` -> `[n, model]`."""
  return nn.Conv(features, (width,))


def dilated_convolution(features: int, width: int, dilation: int) -> nn.Conv:
  """y_i = sum_j W_j x_(i - dilation (k - 1 - j)) + b, of past positions: `[n, model]` -> `[n, model]`.

  With a dilation of k^l in layer l each past position has one path, along the digits of its distance. To both sides
  some paths would lead beyond the ends, and positions near them would not be joined. ByteNet, which §4 cites
  (Kalchbrenner et al. 2017), doubles the dilation from layer to layer.
  """
  return nn.Conv(features, (width,), kernel_dilation=dilation, padding="CAUSAL")


class SeparableConvolution(nn.Module):
  """A convolution of each feature by itself, then a product at each position (Chollet 2017).

  `[n, model]` -> `[n, model]` in O(k n d + n d^2) in place of O(k n d^2).
  """

  features: int
  width: int

  @nn.compact
  def __call__(self, x: jax.Array) -> jax.Array:
    depthwise = nn.Conv(self.features, (self.width,), feature_group_count=self.features, use_bias=False)
    return nn.Dense(self.features)(depthwise(x))
